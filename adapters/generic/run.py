"""Run: one run of a tool's command, and the reports that it writes meanwhile."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import glob
import os
import shlex
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from pathlib import Path

from attrs import define, field, frozen

from msp_bridge.adapter import Mutant, Result, ToolError
from msp_bridge.concurrency import cancel_all
from msp_bridge.processes import ProcessTree

from .command import Command, filled
from .paths import Paths
from .places import Place
from .report import read_report
from .tool import Tool

CALM = 0.25  # s between two looks at a report that may be growing
TAIL = 600  # characters of output in an error message
Stamp = tuple[int, int, int]  # modified (ns since the epoch), size in bytes, inode


@frozen
class Run:
    """What is to be run: a command of `tool`, on some of its files."""

    tool: Tool
    command: Command
    files: Sequence[str]
    ranges: Sequence[str]  # path:first line-last line
    jobs: int
    root: Path  # the user's project

    async def reports(self, place: Place) -> AsyncGenerator[tuple[dict[Mutant, Result], bool], None]:
        """Each complete report as it appears, and whether it is the last: the tool has ended by itself then.

        Closing it ends the tool. Raises `ToolError` when the tool ends without a report.
        """
        listed = await asyncio.to_thread(self.tool.listed, self.root)
        appearing = _Appearing(self._pattern(place), Paths(place.root, self.root, listed))
        argv, said = self._argv(place), bytearray()
        async with self._running(argv, place) as tree:
            async with contextlib.aclosing(_looks(tree, said)) as looks:
                async for _ in looks:
                    report = await asyncio.to_thread(appearing.changed)
                    if report is not None:
                        yield report, False
            code = await tree.exited()
            try:
                report = await asyncio.to_thread(appearing.last)
            except (OSError, ValueError) as error:
                raise self._failure(argv, code, f"its report can't be read: {error}", tree, said) from error
            if report is None:
                raise self._failure(argv, code, f"there is no new report {self.tool.report}", tree, said)
            if code != 0 and not {mutant.path for mutant in report}.intersection(self.files):
                raise self._failure(argv, code, "its report has no mutant of the files in question", tree, said)
            yield report, True

    def _argv(self, place: Place) -> list[str]:
        words = self.command.words(
            {**_values(place), "jobs": str(self.jobs), "files": self.files, "ranges": self.ranges}
        )
        program = Path(words[0])
        if "/" in words[0] and not program.is_absolute():  # environments are no part of a copy
            words[0] = str((place.root if (place.root / program).exists() else self.root) / program)
        return words

    @contextlib.asynccontextmanager
    async def _running(self, argv: Sequence[str], place: Place) -> AsyncIterator[ProcessTree]:
        try:
            tree = await ProcessTree.start(argv, cwd=place.root)
        except OSError as error:
            if error.errno != errno.E2BIG:
                raise
            raise ToolError(
                f"{self.tool.name}: {len(self.files)} files are too many for one command: leave {{files}} and "
                "{ranges} out of it, so that it is about all files, or ask for fewer files"
            ) from error
        try:
            yield tree
        finally:
            await tree.end()

    def _pattern(self, place: Place) -> str:
        escaped = {name: glob.escape(value) for name, value in _values(place).items()}
        return os.path.join(glob.escape(str(place.root)), filled(self.tool.report, escaped))

    def _failure(self, argv: Sequence[str], code: int, what: str, tree: ProcessTree, said: bytearray) -> ToolError:
        tail = (tree.errors.strip() or said.decode("utf-8", "replace").strip())[-TAIL:] or "it said nothing"
        command = shlex.join([self.command.program, *argv[1:]])
        command = command if len(command) <= TAIL else f"{command[:TAIL]} …"
        return ToolError(
            f"{self.tool.name}: {what}; `{command}` ended with exit code {code}: {tail}; "
            "try the command by hand, and correct it in the settings"
        )


@define
class _Appearing:
    """The newest report that wasn't there when the run began."""

    pattern: str
    paths: Paths
    _before: Mapping[str, Stamp] = field(init=False)
    _read: tuple[str, Stamp] | None = field(default=None, init=False)

    def __attrs_post_init__(self) -> None:
        self._before = _stamps(self.pattern)

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
        fresh = [item for item in _stamps(self.pattern).items() if self._before.get(item[0]) != item[1]]
        return max(fresh, key=lambda item: item[1], default=None)


async def _looks(tree: ProcessTree, said: bytearray) -> AsyncGenerator[None, None]:
    """A look every now and then, until the tool closes its stdout, whose tail goes to `said`."""
    now = asyncio.get_running_loop().time
    reading, due = asyncio.create_task(tree.read(), name="stdout of a tool"), now() + CALM
    try:
        while True:
            await asyncio.wait([reading], timeout=max(0, due - now()))
            if reading.done():
                data = reading.result()
                if not data:
                    return
                said += data
                del said[: -4 * TAIL]
                reading = asyncio.create_task(tree.read(), name="stdout of a tool")
            if now() >= due:  # also when the tool says something all the time
                yield
                due = now() + CALM
    finally:
        await cancel_all([reading])


def _values(place: Place) -> dict[str, str]:
    return {"root": str(place.root), "directory": str(place.directory), "report": str(place.directory / "report.json")}


def _stamps(pattern: str) -> dict[str, Stamp]:
    found = {}
    for path in glob.glob(pattern, recursive=True):
        with contextlib.suppress(FileNotFoundError):
            status = os.stat(path)
            found[path] = (status.st_mtime_ns, status.st_size, status.st_ino)
    return found
