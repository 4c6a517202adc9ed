"""Diagnosis: what `msp-bridge doctor` shows: the configuration, each tool of each folder, and what is missing.

It reads the map of the projects (`ProjectMap`), as requests do. What is wrong is shown with the problem and the remedy
of the error; only `SEE_DOCTOR` is left out, the remedy that sends users here.

The tools for the same files are rivals: in each folder one of them is proposed, one that is set up there already or
else the one that needs least. A folder around it that has a tool for these files has all of them.
"""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain, islice
from pathlib import Path

from attrs import evolve, frozen

from msp_bridge.adapter import Adapter, ChecksTests, Finding, SetsUp, Setup
from msp_bridge.concurrency import all_of
from msp_bridge.errors import SEE_DOCTOR, BridgeError, ShellCommand
from msp_bridge.model import Scope, Status
from msp_bridge.notices import FailingTest, Told, UnusableFile
from msp_bridge.phases import batches
from msp_bridge.text import counted
from msp_bridge.workspace.configuration import OWN_FILE, PYPROJECT, Configuration
from msp_bridge.workspace.detection import detect_projects
from msp_bridge.workspace.projects import Candidate, ProjectFolder, ProjectMap
from msp_bridge.workspace.tree import files_below, matcher

TRIED = 20  # mutants, of which the first one that the tool does not ignore is tested


async def diagnose(
    root: Path, options: Configuration, named: str | None, *, run: bool = False
) -> AsyncGenerator[Finding, None]:
    """One finding after another; a broken part doesn't hide the others. `run`: each tool tests a mutant."""
    async with contextlib.aclosing(_findings(root, options, named, run=run)) as findings:
        async for finding in findings:
            yield evolve(finding, remedy=None) if finding.remedy == SEE_DOCTOR else finding


async def _findings(
    root: Path, options: Configuration, named: str | None, *, run: bool
) -> AsyncGenerator[Finding, None]:
    yield Finding(True, "project", str(root))
    try:
        projects = detect_projects(root, options, named)
    except BridgeError as error:
        yield Finding.of_error("msp-bridge", error)
        return
    yield Finding(True, "msp-bridge", _source(root, named, projects.configuration, options))
    for folder in projects.folders:
        heading = Finding(True, "project", str(root / folder.path)) if folder.path else None
        async with contextlib.aclosing(_of_folder(folder, run=run)) as findings:
            async for finding in findings:
                if heading is not None:
                    yield heading
                    heading = None
                yield _typed_at_root(finding, folder)
    for name, fault in projects.broken.items():
        yield Finding.of_error(name, fault)
    missing = _Missing(projects)
    if projects.configuration.adapters == () and not missing.found:
        yield Finding(False, "msp-bridge", "`adapter` is empty: no tool is used", "name one, or leave `adapter` out")
    for fault in projects.misplaced:
        yield Finding.of_error("msp-bridge", fault)
    for finding in (*_shared_files(projects), *missing.findings()):
        yield finding


def next_command(wrong: Sequence[Finding]) -> ShellCommand | None:
    """The first command that cures one of the findings `wrong`; None where each is to be fixed by hand."""
    return next((one.remedy for one in wrong if isinstance(one.remedy, ShellCommand)), None)


def _typed_at_root(finding: Finding, folder: ProjectFolder) -> Finding:
    """The finding on `folder`, with a command that can be typed in the workspace's root."""
    if not isinstance(finding.remedy, ShellCommand):
        return finding
    return evolve(finding, remedy=typed_at_root(finding.remedy, folder.path))


async def _of_folder(folder: ProjectFolder, *, run: bool) -> AsyncGenerator[Finding, None]:
    """The findings on the tools that may be used in `folder`."""
    if folder.error is not None:
        yield Finding.of_error("msp-bridge", folder.error)
    for one in folder.candidates:
        if one.error is not None:
            yield Finding.of_error(one.name, one.error)
        elif one.idle_because is not None:
            yield Finding(True, one.name, f"not used: nothing here configures it, and {one.idle_because}")
        elif one.adapter is not None:
            said: set[str] = set()
            try:
                async with contextlib.aclosing(one.adapter), contextlib.aclosing(one.adapter.diagnose()) as findings:
                    async for finding in findings:
                        said.add(finding.text)
                        yield finding
                    if run:
                        async with contextlib.aclosing(_trial(one.adapter)) as trial:
                            async for finding in trial:
                                if finding.text not in said:  # the tests that fail
                                    yield finding
                    if run and isinstance(one.adapter, ChecksTests):
                        async with contextlib.aclosing(one.adapter.check_tests()) as checks:
                            async for finding in checks:
                                yield finding
            except BridgeError as error:
                yield Finding.of_error(one.name, error)
        elif folder.path and folder.exclusive:
            yield one.adapter_class.absent(one.project)


async def _trial(adapter: Adapter) -> AsyncGenerator[Finding, None]:
    """One mutant is tested, which takes all that a request takes: the tool, the tests without a mutant, a verdict."""
    began = time.monotonic()
    told = Told()
    try:
        found = await all_of(batches(adapter.discover(Scope()), told.tell))
        for file in told.of(UnusableFile):
            yield Finding.of_error("files", file.error)
        mutants = list(islice(chain.from_iterable(found), TRIED))
        testing = batches(adapter.test(mutants), told.tell)
        async with contextlib.aclosing(testing):
            async for result in (result async for batch in testing for result in batch):
                if result.status is not Status.IGNORED:
                    place = f"{result.mutant.path}:{result.mutant.location.start}"
                    text = f"{place} was tested within {time.monotonic() - began:.1f} s"
                    for test in told.of(FailingTest):
                        yield Finding(False, "tests", str(test), "fix it")
                    yield Finding(True, "run", f"{text}: {result.status.value}")
                    return
    except BridgeError as error:
        yield Finding.of_error("run", error)
        return
    yield Finding(True, "run", "there is no mutant that could be tested")


def _shared_files(projects: ProjectMap) -> Iterator[Finding]:
    """Which of two tools gets the files that both could mutate, and why."""
    if len({tool.adapter.name for tool in projects.tools}) < 2:
        return
    claimants = (list(projects.claimants(path)) for path in files_below(str(projects.root)))
    shared = Counter(
        (tools[0], other) for tools in claimants for other in tools[1:] if other.adapter.name != tools[0].adapter.name
    )
    for (owner, other), count in shared.items():
        files = counted(count, "file")
        if owner.folder != other.folder:
            why = f"{owner.folder} is the nearest project around them"
        elif projects.configuration.adapters is None:
            why = "its name comes first; `adapter` sets another order"
        else:
            why = "`adapter` lists it first"
        yield Finding(True, "files", f"{owner.label} gets {files} that {other.label} could mutate, too: {why}")


@frozen(eq=False)
class _Missing:
    """The tools that are set up nowhere."""

    projects: ProjectMap

    @cached_property
    def found(self) -> set[str]:
        """The adapters of the tools that are set up somewhere, used or not."""
        return {one.name for folder in self.projects.folders for one in folder.candidates if one.adapter is not None}

    def findings(self) -> Iterator[Finding]:
        """Yield first the findings of tools that most files are for; a single one where no file is for any."""
        chosen = self.projects.configuration.adapters is not None
        at_root = self.projects.folders[0].candidates
        absent = [one for one in at_root if one.adapter is None and one.error is None and one.name not in self.found]
        files = {} if chosen else self._counts(absent)
        if not (chosen or self.found or any(files.values())):
            yield _nothing_to_test(absent)
            return
        fitting = absent
        if any(files.values()):  # those of most files first; tools for any file come last
            fitting = [one for one in absent if files.get(one.name) != 0]
            fitting.sort(key=lambda one: (one.sources == (), -files.get(one.name, 0)))
        needed = [] if self.found else [one for one in fitting if one.sources != ()]
        if needed and not chosen:
            by_hand = "set up what follows" if len(needed) == 1 else "set up one of:"
            remedy = ShellCommand("msp-bridge init") if len(self._proposed) > 1 else by_hand
            yield Finding(False, "tools", "no tool found", remedy)
        for one in fitting:
            finding = self._absent(one)
            wrong = chosen or one in needed
            yield finding if wrong else Finding(True, finding.subject, f"not used: {finding.text}")
        if others := [one.name for one in absent if one not in fitting]:
            yield Finding(True, "others", f"no matching files: {', '.join(others)}")

    @cached_property
    def _proposed(self) -> Sequence[ToolSetup]:
        """The tools that `msp-bridge init` proposes, each in its folder."""
        try:
            return tool_setups(self.projects)
        except BridgeError:  # which has a line of its own
            return ()

    def _absent(self, at_root: Candidate) -> Finding:
        """The finding on a tool that is set up nowhere, about the first folder with a project for it."""
        kinds = set(at_root.sources or ())
        path = next((one.folder for one in self._proposed if kinds & set(one.sources)), "")
        folder = next(folder for folder in self.projects.folders if folder.path == path)
        one = folder.candidate(at_root.name) or at_root
        return _typed_at_root(one.adapter_class.absent(one.project), folder)

    def _counts(self, candidates: Sequence[Candidate]) -> Mapping[str, int]:
        """How many files here each is for; nothing of one that is for anything, or doesn't say."""
        matching = {one.name: matcher(patterns) for one in candidates if (patterns := one.sources)}
        counts = dict.fromkeys(matching, 0)
        for path in files_below(str(self.projects.root)):
            for name, matches in matching.items():
                counts[name] += matches(path.rpartition("/")[2]) is not None
        return counts


def _nothing_to_test(absent: Sequence[Candidate]) -> Finding:
    """Say what was looked for in a folder that has no file for any of the tools."""
    kinds = (f"{one.name} ({', '.join(one.sources)})" for one in absent if one.sources)
    text = f"none is set up here, and there are no files for any of {', '.join(kinds)}"
    remedy = "name the project's directory with `--root`; for other languages, write a table [generic.NAME]"
    return Finding(False, "tools", text, remedy)


def _source(root: Path, named: str | None, configuration: Configuration, options: Configuration) -> str:
    if configuration == Configuration():
        return "no configuration, and none needed"
    if configuration == options:
        return "configuration of the command line"
    if named is not None:
        return f"configuration of {named}"
    files = [name for name in (OWN_FILE, PYPROJECT) if (root / name).is_file()]
    return f"configuration of {files[0]}"


@frozen
class ToolSetup:
    """One tool in one folder, which is relative to the workspace's root, with a `/` at the end; "" is the root."""

    folder: str
    name: str  # the adapter's
    setup: Setup
    sources: tuple[str, ...]  # the patterns of its files
    files: int  # that are there, tests included

    @property
    def texts(self) -> Mapping[str, str]:
        """The files to write, relative to the workspace's root."""
        return {f"{self.folder}{name}": text for name, text in self.setup.files.items()}

    @property
    def install(self) -> ShellCommand | None:
        """The command that installs the tool, typed in the workspace's root."""
        return None if self.setup.install is None else typed_at_root(self.setup.install, self.folder)

    @property
    def checkout(self) -> Sequence[ShellCommand]:
        """The commands of a job of CI, typed in the workspace's root."""
        return [typed_at_root(command, self.folder) for command in self.setup.checkout]


def typed_at_root(command: ShellCommand, folder: str) -> ShellCommand:
    """The command for `folder` as it is typed in the workspace's root."""
    return command.inside(folder) if folder else command


def tool_setups(projects: ProjectMap) -> list[ToolSetup]:
    """The tools of all languages, that of most files first. Raises BridgeError where a folder or a tool has a fault."""
    paths = list(files_below(str(projects.root)))
    found: list[ToolSetup] = []
    for folder in projects.folders:
        if folder.error is not None:
            raise folder.error
        for rivals in _rivals(folder):
            sources = rivals[0].sources or ()
            if any(folder.path.startswith(one.folder) and set(one.sources) & set(sources) for one in found):
                continue
            is_source, others = matcher(sources), _own_folders(projects, folder, rivals)
            count = sum(
                path.startswith(folder.path)
                and not path.startswith(others)
                and is_source(path.rpartition("/")[2]) is not None
                for path in paths
            )
            if count and (best := _best(rivals)):
                found.append(ToolSetup(folder.path, best[0].name, best[1], sources, count))
    return sorted(found, key=lambda one: -one.files)


def _own_folders(projects: ProjectMap, folder: ProjectFolder, rivals: Sequence[Candidate]) -> tuple[str, ...]:
    """The folders below `folder` in which a tool for the files of `rivals` is set up, if none of these is."""
    if any(one.is_used for one in rivals):
        return ()
    kind = {pattern for one in rivals for pattern in one.sources or ()}
    return tuple(
        other.path
        for other in projects.folders
        if other.path.startswith(folder.path)
        and any(one.is_used and kind & set(one.sources or ()) for one in other.candidates)
    )


def _rivals(folder: ProjectFolder) -> Iterator[Sequence[Candidate]]:
    """The tools that may be used in `folder`, grouped by their files; a tool for any file is left out."""
    pending = [one for one in folder.candidates if one.sources]
    while pending:
        kind = set(pending[0].sources or ())
        yield [one for one in pending if kind & set(one.sources or ())]
        pending = [one for one in pending if not kind & set(one.sources or ())]


def _best(rivals: Sequence[Candidate]) -> tuple[Candidate, Setup] | None:
    """The tool to use in a folder, with what it lacks; None where it is a project for none of them."""
    used = [one for one in rivals if one.is_used]
    setups = [(one, _setup_of(one)) for one in used or rivals]
    possible = [(one, setup) for one, setup in setups if setup is not None]

    def cost(each: tuple[Candidate, Setup]) -> tuple[bool, int]:  # whether to install, and how much to configure
        lines = sum(text.count("\n") for text in each[1].files.values()) + len(each[1].settings)
        return each[1].install is not None, lines

    return min(possible, key=cost, default=None)


def _setup_of(candidate: Candidate) -> Setup | None:
    if candidate.error is not None:
        raise candidate.error
    if isinstance(candidate.adapter_class, SetsUp):
        return candidate.adapter_class.setup(candidate.project)
    return Setup() if candidate.is_used else None
