"""GenericRun: one run of a tool's command in a place of its own, and the reports that it writes meanwhile."""

import asyncio
import contextlib
import errno
import glob
import os
import shlex
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from attrs import define, field, frozen

from msp_bridge.adapter import Mutant, Project, Result, ToolError
from msp_bridge.concurrency import cancel_all, in_thread
from msp_bridge.processes import ProcessTree
from msp_bridge.toolkit import CommandOfTests, RunPlace, ToolOutput, shown
from msp_bridge.toolkit.tree import Stamp, stamps

from .report import Paths, read_report
from .settings import CommandTemplate, Tool, filled

LOOK_EVERY_S = 0.25  # at a report that may be growing


@frozen
class GenericRun:
    """A run of a command of `tool`, on some of its files."""

    project: Project
    tool: Tool
    command: CommandTemplate
    files: Sequence[str]
    ranges: Sequence[str] = ()  # path:first line-last line
    ids: Sequence[str] = ()  # the tool's own, of the mutants

    def reports(self, place: RunPlace) -> AsyncGenerator[tuple[dict[Mutant, Result], bool], None]:
        """Each complete report as it appears, and whether it is the last: the tool has ended by itself then.

        Closing it ends the tool. Raises `ToolError` when the tool ends without a report. A run that fails isolated is
        made again without isolation, and has fewer parts from then on if it passes there.
        """
        isolation = place.isolation
        return self._reports(place) if isolation is None else isolation.run(partial(self._attempt, place))

    async def _attempt(
        self, place: RunPlace, isolated: bool
    ) -> AsyncGenerator[tuple[dict[Mutant, Result], bool], None]:
        if not isolated and place.isolated:  # such a run has failed here
            await place.renew()
        async with contextlib.aclosing(self._reports(place if isolated else place.outside)) as reports:
            async for report in reports:
                yield report

    async def _reports(self, place: RunPlace) -> AsyncGenerator[tuple[dict[Mutant, Result], bool], None]:
        listed = await in_thread(self.tool.listed, self.project.root)
        appearing = _Appearing(self._pattern(place), Paths(place.root, self.project.root, listed))
        argv, said = self.argv(place), ToolOutput()
        async with self._running(argv, place) as tree:
            async with contextlib.aclosing(_looks(tree, said)) as looks:
                async for _ in looks:
                    report = await in_thread(appearing.changed)
                    if report is not None:
                        yield report, False
            code = await tree.exited()
            try:
                report = await in_thread(appearing.last)
            except (OSError, ValueError) as error:
                raise self._failure(argv, code, f"its report can't be read: {error}", tree, said) from error
            if report is None:
                raise self._failure(argv, code, f"there is no new report {self.tool.report}", tree, said)
            if code != 0 and not {mutant.path for mutant in report}.intersection(self.files):
                raise self._failure(argv, code, "its report has no mutant of the files in question", tree, said)
            yield report, True

    def argv(self, place: RunPlace) -> list[str]:
        """The words of the command in `place`."""
        lists = {"files": self.files, "ranges": self.ranges, "ids": self.ids}
        words = self.command.words({**self._values(place), "jobs": str(self.project.jobs), **lists})
        program = Path(words[0])
        if "/" in words[0] and not program.is_absolute():  # environments are no part of a copy
            words[0] = str((place.seen if (place.root / program).exists() else self.project.root) / program)
        return words

    @contextlib.asynccontextmanager
    async def _running(self, argv: Sequence[str], place: RunPlace) -> AsyncIterator[ProcessTree]:
        async with contextlib.AsyncExitStack() as stack:
            try:
                tree = await stack.enter_async_context(place.running(argv))
            except OSError as error:
                if error.errno != errno.E2BIG:
                    raise
                raise ToolError(
                    f"{self.tool.name}: {len(self.files)} files are too many for one command",
                    "leave {files}, {ranges} and {ids} out of it, so that it is about all files, or select fewer files",
                ) from error
            yield tree

    def _pattern(self, place: RunPlace) -> str:
        escaped = {name: glob.escape(value) for name, value in self._values(place.outside).items()}
        return os.path.join(glob.escape(str(place.root)), filled(self.tool.report, escaped))

    def _failure(self, argv: Sequence[str], code: int, what: str, tree: ProcessTree, said: ToolOutput) -> ToolError:
        printed = shown(tree.errors.strip() or str(said)) or "it printed nothing"
        command = shown(shlex.join([self.command.program, *argv[1:]]))
        return ToolError(
            f"{self.tool.name}: {what}; `{command}` ended with exit code {code}: {printed}",
            "run the command by hand, and correct it in the settings",
        )

    def _values(self, place: RunPlace) -> dict[str, str]:
        python = self.project.python
        return {
            "root": str(place.seen),
            "directory": str(place.directory),
            "report": str(place.directory / "report.json"),
            "project": str(self.project.root),
            "python": "python3" if python is None else str(python),
        }


def baseline_of(project: Project, tool: Tool, baseline: CommandTemplate, files: Sequence[str]) -> CommandOfTests:
    """The `baseline` of a tool, for the proof that its tests test the copy; `files` are all of the tool's."""
    words = [word.replace("{root}", "{project}") for group in baseline.groups for word in group]
    return CommandOfTests(
        key=tool.name,  # the settings of a project never change
        shown=shlex.join(filled(word, {"project": str(project.root)}) for word in words),
        setting=f"`baseline` and `files` of {tool.name}",
        sources=files,
        name_of_sources="file of `files`",
        argv=GenericRun(project, tool, baseline, files).argv,
        subject=f"{tool.name}: the tests",
    )


@define
class _Appearing:
    """The newest report that wasn't there when the run began."""

    pattern: str
    paths: Paths
    _before: Mapping[str, Stamp] = field(init=False)
    _read: tuple[str, Stamp] | None = field(default=None, init=False)

    def __attrs_post_init__(self) -> None:
        self._before = self._stamps()

    def changed(self) -> dict[Mutant, Result] | None:
        """The report, if it is another than at the last look and complete."""
        newest = self._newest()
        if newest is None or newest == self._read:
            return None
        self._read = newest
        try:
            return self.last()
        except (OSError, ValueError):  # half-written: what it is when the tool has ended counts
            return None

    def last(self) -> dict[Mutant, Result] | None:
        """The report as it is now; raises `OSError` and `ValueError`."""
        newest = self._newest()
        return None if newest is None else read_report(Path(newest[0]).read_bytes(), self.paths.locate)

    def _newest(self) -> tuple[str, Stamp] | None:
        fresh = [item for item in self._stamps().items() if self._before.get(item[0]) != item[1]]
        return max(fresh, key=lambda item: item[1], default=None)

    def _stamps(self) -> dict[str, Stamp]:
        return stamps(glob.glob(self.pattern, recursive=True))


async def _looks(tree: ProcessTree, said: ToolOutput) -> AsyncGenerator[None, None]:
    """A look every now and then, until the tool closes its stdout, whose tail goes to `said`."""
    now = asyncio.get_running_loop().time
    reading, due = asyncio.create_task(tree.read(), name="stdout of a tool"), now() + LOOK_EVERY_S
    try:
        while True:
            await asyncio.wait([reading], timeout=max(0, due - now()))
            if reading.done():
                data = reading.result()
                if not data:
                    return
                said.add(data)
                reading = asyncio.create_task(tree.read(), name="stdout of a tool")
            if now() >= due:  # also when the tool prints all the time
                yield
                due = now() + LOOK_EVERY_S
    finally:
        await cancel_all([reading])
