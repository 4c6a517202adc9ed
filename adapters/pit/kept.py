"""KeptCoverage: what the tests of one module cover, kept over edits and for later bridges.

Which of it still holds, class by class, is decided where the class files are read (`programs/Measurement.java`). All
that may matter besides the project's sources stands in the key: the JDK, the effective pom, all jars, PIT and our own
program, what is isolated, every file of the project that is no source, what the build has made besides class files, and
the environment variables that the code of the project names: a condition of a test may read them.
A plug-in of PIT that is not known may want to see what was measured itself: then nothing is kept. Nor is it where tests
may fail (`skipFailingTests`): an earlier test may decide which of them do.
"""

import os
import re
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any, Self

from attrs import frozen

from msp_bridge import reading
from msp_bridge.adapter import Surroundings
from msp_bridge.toolkit import Sandbox
from msp_bridge.toolkit.kept_answers import KeptAnswers, key_of
from msp_bridge.toolkit.variables import variables

from .installation import java
from .maven import Module
from .tool import JUNIT5_PLUGIN, Tool

SOURCE = re.compile(r"(^|/)src/[^/]+/(java|kotlin)/.*\.(java|kt)$")  # others are files that tests may read
PLUGINS = frozenset({JUNIT5_PLUGIN.name, "pitest-testng-plugin"})  # they look for tests alone
PARTS = {"classes", "blocks", "digests", "tree"}
VARIABLES = ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "MAVEN_ARGS", "MAVEN_OPTS")
COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)  # has the time in older versions of Maven's help plug-in
BUILT = re.compile(
    r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?(Z|[+-]\d\d:?\d\d)?"
)  # ${maven.build.timestamp}, in properties


@frozen
class KeptCoverage:
    """Where the coverage of one module is kept. Methods block."""

    answers: KeptAnswers
    key: bytes
    tree: str  # a digest of all files of the project

    @classmethod
    def of(
        cls,
        answers: KeptAnswers,
        sandbox: Sandbox,
        pom: Path,
        module: Module,
        tool: Tool,
        parts: frozenset[str],
        named: Collection[str] = (),
    ) -> Self | None:
        """That of `module` in the compiled copy `sandbox`, with these parts of isolation; None where it can't be kept.

        `named` are variables that the tests read, as the user says. Blocks.
        """
        configuration = module.configuration
        if configuration.flags["skipFailingTests"] or any(each.name not in PLUGINS for each in configuration.plugins):
            return None
        root = sandbox.path.resolve()
        around = surroundings(Path(java()), root, pom, {*module.class_path, *tool.class_path})
        if around is None:
            return None
        digests = {path: record.digest for path, record in sandbox.records.items() if record.digest}  # but directories
        others = sorted(each for each in digests.items() if not SOURCE.search(each[0]))
        entries = (configuration.classes, configuration.test_classes, *map(Path, module.class_path))
        directories = [entry for entry in entries if entry.is_dir()]
        made = list(map(_made, directories))
        read = variables(os.environ, {*named, *named_variables(directories)})
        program = tool.program.parent.name
        key = key_of("PIT's coverage", module.name, sorted(parts), str(around.values), program, others, made, read)
        return cls(answers, key, sandbox.digest)

    def find(self) -> Mapping[str, Any] | None:
        """Find what `save` got last; None where nothing is kept."""
        return self.answers.get(self.key, _coverage)

    def save(self, coverage: Mapping[str, Any]) -> None:
        """Keep it in place of what was kept before."""
        self.answers.save({self.key: coverage})


def _coverage(value: Any) -> Mapping[str, Any]:
    if not isinstance(value, dict) or value.keys() != PARTS:
        raise ValueError("that is no coverage")
    return value


def _made(directory: Path) -> list[tuple[str, str | None]]:
    files: Iterable[Path] = (file for file in directory.rglob("*") if file.suffix != ".class" and file.is_file())
    return sorted((file.relative_to(directory).as_posix(), reading.digest(file)) for file in files)


def named_variables(directories: Iterable[Path]) -> list[str]:
    """The variables that are set, of those whose names are constants of the class files in `directories`. Blocks."""
    content = b"".join(reading.content(file) for directory in directories for file in directory.rglob("*.class"))
    return [name for name in os.environ if _constant(os.fsencode(name)) in content]


def _constant(text: bytes) -> bytes:
    """The entry of a class file for it: one of type 1, with the length (JVMS 4.4.7)."""
    return b"\1" + (len(text) & 0xFFFF).to_bytes(2, "big") + text


def surroundings(java: Path, root: Path, pom: Path, class_path: Iterable[str]) -> Surroundings | None:
    """Name the content of everything outside of the copy at `root`; None where the JDK can't be named. Blocks.

    `pom` is the effective one, which has the versions of Maven's plug-ins, and paths of the copy.
    """
    release = reading.text_or_empty(java.resolve().parent.parent / "release")
    if not release:
        return None
    text = BUILT.sub("", COMMENT.sub("", reading.text(pom))).replace(str(root), "")
    jars = (Path(entry) for entry in class_path if not Path(entry).is_relative_to(root))
    values = {
        "jdk": sorted(release.splitlines()),
        "pom": reading.digest_of(text.encode()),
        "jars": sorted([jar.name, reading.digest(jar) or ""] for jar in jars),
        "environment": {name: os.environ.get(name) for name in VARIABLES},
    }
    return Surroundings(values)
