"""CompiledCopy: what Maven has made of a copy, used again by the next bridge where nothing has changed.

Maven compiles a whole module for each change, which takes half a minute where it is large. When a bridge starts and the
files are as they were, what lies in `target` is what Maven would make of them, if all else is the same, too: the JDK,
the variables of Maven, the jars, the effective pom, and `target` itself, where tests may write that are not isolated.
Maven is asked for the pom, since a parent may lie elsewhere. Where a build writes beside `target` it is done anew: a
copy loses that when it is brought up to date.
"""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from attrs import frozen

from msp_bridge.concurrency import in_thread
from msp_bridge.toolkit import Sandbox, walk
from msp_bridge.toolkit.kept_answers import KeptAnswers, key_of
from msp_bridge.toolkit.tree import stamps

from .installation import java
from .kept import surroundings
from .maven import CLASS_PATH, Module, modules_of, read_poms

PARTS = {"made", "around", "class_paths"}


@frozen
class CompiledCopy:
    """The copy `sandbox` as it is now. `pom` becomes the effective one; `version`: PIT's where no pom names it."""

    answers: KeptAnswers
    sandbox: Sandbox
    pom: Path
    version: str | None

    async def modules(self) -> tuple[Module, ...] | None:
        """Return the modules, if they need not be compiled; raises `ToolError`, `ConfigurationError`."""
        known = await in_thread(self.answers.get, self._key, _record)
        if known is None or await in_thread(self._made) != known["made"]:
            return None
        await read_poms(self._root, self.pom)
        return await in_thread(self._unchanged, known)

    def _unchanged(self, known: Mapping[str, Any]) -> tuple[Module, ...] | None:
        for name, text in known["class_paths"].items():
            (self._root / name / CLASS_PATH).write_text(text, "utf-8")
        modules = modules_of(self._root, self.pom, self.version)
        return modules if self._around(modules) == known["around"] else None

    def save(self, modules: Sequence[Module]) -> None:
        """Keep what Maven has made, for the next bridge. Blocks."""
        around = self._around(modules)
        if around is None or self._is_written_beside():
            return
        class_paths = {module.name: ":".join(module.class_path) for module in modules}
        self.answers.save({self._key: {"made": self._made(), "around": around, "class_paths": class_paths}})

    @property
    def _root(self) -> Path:
        return self.sandbox.path.resolve()

    @property
    def _key(self) -> bytes:
        return key_of("PIT's compiled copy", str(self._root), self.sandbox.digest, self.version)

    def _made(self) -> str:
        """Name the state of all files that Maven has made. Blocks."""
        places = [self._root / place for place in (*self.sandbox.left_out, *self.sandbox.overlaid)]
        return key_of(sorted((path, tuple(stamp)) for path, stamp in stamps(places).items())).hex()

    def _around(self, modules: Sequence[Module]) -> str | None:
        jars = {jar for module in modules for jar in module.class_path}
        found = surroundings(Path(java()), self._root, self.pom, jars)
        return None if found is None else key_of(str(found.values)).hex()

    def _is_written_beside(self) -> bool:
        """Whether the copy has files that are neither the project's nor in a directory that Maven builds in."""
        root = self.sandbox.path
        files = (
            os.path.relpath(os.path.join(directory, name), root)
            for directory, _, names in walk(root)
            for name in names
            if name != CLASS_PATH
        )
        left_out = tuple(f"{name}/" for name in self.sandbox.left_out)
        return any(
            file not in self.sandbox.records and not file.startswith(left_out) and not self.sandbox.is_overlaid(file)
            for file in files
        )


def _record(value: Any) -> Mapping[str, Any]:
    if not isinstance(value, dict) or value.keys() != PARTS:
        raise ValueError("that is no compiled copy")
    return value
