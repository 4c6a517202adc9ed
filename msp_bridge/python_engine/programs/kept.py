"""Measurements kept for servers that begin anew when Python files or documents have changed.

Theory of operation
-------------------
The problem: somebody writes a test for a survivor, or edits what ran at import. The servers begin anew, and measuring
all tests again takes as long as the suite. What most tests run has not changed. `reload` says that of a live server;
here the old files are those of the record, so it holds for the next process, too.

The record has the digests of all Python files and documents, and the sources and test files themselves. Compared are:

- *A test file*, new, edited or deleted: its tests are measured again, and those of test files that mention it: they may
  import it or inherit from its classes, also by way of other files. Where a conftest.py, a source or the project's
  configuration mentions it, it may be a plug-in, and what it changes is not known. So it is where
  importing it may do something for tests of other files (`import_effects`), and its code is not the same, and where
  importing the tests loads other files than it did, or calls other functions of sources: what ran then, a test may run
  now.
- *A source*, edited within functions that did not run at import: the tests that ran one of these functions, and tests
  that start processes. The rule is that of `live_code`, but for what it says about live functions: none is replaced.
  What only one version defines, and only what was edited can refer to, is left out of both (`additions`).
- *A document* (Markdown, reStructuredText): the tests that are in it, and those of test files that may read it, which
  name it, its suffix or its directory. Where a source or a conftest.py does, all tests are.

Tests that have read one of these files as text, or listed a directory in which one is new or gone, are measured again.

Anything else, such as another conftest.py, a data file, or a statement at module level, has everything measured again.

What this may miss is what it may miss in a live server: a changed test leaves something behind (an entry in a cache)
with which a later one goes another way. A line that no test runs any more has all tests measured (`has_lost_lines`),
and a kill is confirmed by a run without the mutant all the same.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path, PurePosixPath

from .additions import reduced
from .baseline import Baseline, file_of
from .channel import TargetPlan
from .file_edit import PythonText, digest_of, normal_text
from .import_effects import CLASSES, MODULES, ImportEffects
from .made_files import remove
from .mentions import encoded, reading, without_comments, word_of
from .process_starts import PROCESSES
from .reload import UNCOMPILED, EditedFunctions

UNMENTIONED = {"conftest", "__init__"}  # what imports them does not name them
Versions = Mapping[str, tuple[str, str]]  # path to the normal text of then and of now
SELECTED = re.compile(rb"[\w./-]+\.py\b")  # test files that are collected, in a configuration: a plug-in is a module
DOCUMENTS = (".md", ".rst")
CONFIGURATION = ("pyproject.toml", "pytest.ini", ".pytest.ini", "setup.cfg", "tox.ini")


class KeptSources:
    """The sources and test files as they were measured, each in a file that its digest names."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def save(self, plan: TargetPlan, tests: Iterable[str]) -> None:
        """Keep the sources of `plan` and the files of `tests`, and no others. Raises OSError."""
        if not self._directory.is_dir():
            self._directory.unlink(missing_ok=True)  # somebody has been at the cache
            self._directory.mkdir()
        paths = {*plan.sources, *map(file_of, tests)}
        digests = {plan.files[path]: path for path in paths if path in plan.files}
        there = {file.name for file in self._directory.iterdir()}
        remove(str(self._directory), [*(there - digests.keys())])
        for digest in digests.keys() - there:
            fresh = self._directory / "new"
            shutil.copyfile(Path(plan.place, digests[digest]), fresh)
            fresh.rename(self._directory / digest)

    def text(self, digest: str) -> str:
        """The normal text of the file with this digest. Raises OSError, SyntaxError or UnicodeDecodeError."""
        data = (self._directory / digest).read_bytes()
        if digest_of(data) != digest:  # it was being changed when it was read, or somebody has been at the cache
            raise OSError(f"{digest} is damaged")
        return PythonText(data).normal


class Changes:
    """Changes since the project's Python files had the digests `old`."""

    def __init__(
        self, plan: TargetPlan, old: Mapping[str, str], sources: KeptSources, imported: Mapping[str, Sequence[str]]
    ) -> None:
        """`imported`: the `Baseline.imported` of then."""
        self._plan, self._old, self._sources, self._imported = plan, old, sources, imported
        changed = {path for path in old.keys() | plan.files.keys() if old.get(path) != plan.files.get(path)}
        self._edited = sorted(changed.intersection(plan.sources))
        self._others = changed.difference(plan.sources)  # test files and documents, or nothing is kept
        self._documents = {path for path in self._others if path.endswith(DOCUMENTS)}

    def kept(self, baseline: Baseline, tests: Sequence[str]) -> Baseline | None:
        """Return what still holds of `baseline`, that of the old files, for the `tests` of now; None: nothing."""
        current = baseline.of_tests(tests)
        if self._old != self._plan.files and self._imported != baseline.imported:
            return None
        try:
            versions = {path: self._versions(path) for path in self._edited}
            for path in self._edited:
                current = None if current is None else self._with_source(current, path, versions)
            if current is None or not self._others:
                return current
            if any(map(self._acts_otherwise, self._others - self._documents)):
                return None
            having_tests = {file_of(test) for test in (*baseline.tests, *tests)}
            files = self._mentioning(having_tests, versions)
            loaded = having_tests.union(self._imported.get(MODULES, ()))
            if files is not None and any(map(self._registers, loaded & files - self._others)):
                return None
        except (OSError, KeyError, *UNCOMPILED):
            return None
        if files is None:
            return None
        concerned = sum(1 << number for number, test in enumerate(tests) if file_of(test) in files)
        readers = current.readers(PROCESSES, *self._others, *self._directories)
        return current.edited(min(files), None, {}, concerned | readers)

    def _versions(self, path: str) -> tuple[str, str]:
        """Return the file as it was and as it is; a file that is not there is empty."""
        now = normal_text(Path(self._plan.place, path)) if path in self._plan.files else ""
        return self._sources.text(self._old[path]) if path in self._old else "", now

    @property
    def _directories(self) -> set[str]:
        """The directories in which a file is new or gone, with those above them; `""` is the project."""
        moved = self._others.difference(self._old.keys() & self._plan.files.keys())
        return {"", *(f"{each}/" for path in moved for each in PurePosixPath(path).parents[:-1])} if moved else set()

    def _acts_otherwise(self, path: str) -> bool:
        """Whether importing the test file may do something else than it did for tests of other files."""
        old, new = map(ImportEffects, self._versions(path))
        return (self._inherits(path) or old.any or new.any) and old.code != new.code

    def _registers(self, path: str) -> bool:
        """Whether importing the file, which has not changed, may do something for tests of other files."""
        return self._inherits(path) or ImportEffects(normal_text(Path(self._plan.place, path))).any

    def _inherits(self, path: str) -> bool:
        return any(each.startswith(f"{path}:") for each in self._imported.get(CLASSES, ()))

    def _with_source(self, baseline: Baseline, path: str, versions: Versions) -> Baseline | None:
        facts = baseline.facts.get(path)
        if path not in baseline.late and (facts is None or path in baseline.unseen):
            return None
        old, new = versions[path]
        before, after = reduced(old, new), reduced(new, old)
        edit = EditedFunctions.of(os.path.join(self._plan.place, path), before.text, after.text)
        if edit.change.not_live is not None or (facts is not None and edit.ran_at_import(facts)):
            return None
        if not self._modules.isdisjoint(before.names | after.names):
            return None  # an import of this name may run a module
        then, now = ([encoded(texts[side]) for name, texts in versions.items() if name != path] for side in (0, 1))
        unchanged = self._unchanged.values() if before.text != old or after.text != new else ()
        if after.may_be_used(path, old, [*unchanged, *then]) or before.may_be_used(path, new, [*unchanged, *now]):
            return None
        return replace(edit, texts=(old, new)).applied(baseline, path, facts)

    @cached_property
    def _unchanged(self) -> dict[str, bytes]:
        """The files that may name others, but for Python files that have changed."""
        changed = {*self._edited, *self._others}
        python = (path for path in self._plan.files if path.endswith(".py") and path not in changed)
        texts = {path: Path(self._plan.place, path).read_bytes() for path in python}
        for name in CONFIGURATION:
            with contextlib.suppress(FileNotFoundError):
                texts[name] = SELECTED.sub(b"", Path(self._plan.place, name).read_bytes())
        return {**texts, "": SELECTED.sub(b"", os.fsencode("\n".join(self._plan.arguments)))}

    @cached_property
    def _modules(self) -> set[str]:
        """Names that modules and packages of the project may have."""
        paths = map(PurePosixPath, self._plan.files)
        return {name for path in paths for name in (path.stem, *path.parent.parts)}

    def _mentioning(self, tests: Collection[str], versions: Versions) -> set[str] | None:
        """The files that have changed or mention one that has, and so on. Raises OSError.

        None: one that has changed is no file of `tests`, or one is mentioned where that may concern all tests.
        """
        if not self._others.issubset({*tests, *self._documents}):
            return None
        texts = {**self._unchanged, **{path: encoded(new) for path, (_, new) in versions.items()}}
        everywhere = {"", *CONFIGURATION, *self._plan.sources}
        due = self._others - self._documents | self._reading(texts, tests)
        found = self._others | due
        while due:
            names = {PurePosixPath(path).stem for path in due}
            if not due.isdisjoint(everywhere) or not names.isdisjoint(UNMENTIONED):
                return None
            word = word_of(names, rb"(?<!def )")
            named = {path for path, text in texts.items() if path not in found and word.search(text)}
            due = {path for path in named if word.search(without_comments(texts[path]))}
            found = found | due
        return found

    def _reading(self, texts: Mapping[str, bytes], tests: Collection[str]) -> set[str]:
        """The Python files that may read a document that has changed: a script far from sources and tests does not."""
        if not self._documents:
            return set()
        word = reading(self._documents)
        near = {PurePosixPath(path).parent for path in (*tests, *self._plan.sources)}
        return {path for path in texts if _is_near(path, near) and word.search(without_comments(texts[path]))}


def _is_near(path: str, directories: Collection[PurePosixPath]) -> bool:
    file = PurePosixPath(path)
    return file.suffix == ".py" and (file.stem in UNMENTIONED or not set(file.parents).isdisjoint(directories))
