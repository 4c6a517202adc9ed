"""`msp-bridge watch`: tests the mutants of what is saved, while the user works.

The files are looked at twice a second (`FileVersions`). What is saved of a mutated file is tested line by line, the
newest first: another save ends the test that runs, and what that has not finished is tested with what is new. After a
change of another file, as of a test, those mutants are tested again that have survived since the watch began.
"""

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterable
from typing import Any

import click
from attrs import define, evolve, field
from rich.console import Console

from msp_bridge.cli.options import Options, bridge_options
from msp_bridge.concurrency import cancel_all
from msp_bridge.errors import BridgeError
from msp_bridge.last_results import KeptRun
from msp_bridge.model import Location, Mutant, Position, Result, Status
from msp_bridge.notices import Told
from msp_bridge.phases import batches
from msp_bridge.reports.accepted import AcceptedSurvivors
from msp_bridge.reports.terminal import Sources, missed
from msp_bridge.source import Changed
from msp_bridge.text import counted, one_line
from msp_bridge.workspace.selection import Selection, Target
from msp_bridge.workspace.targets import select
from msp_bridge.workspace.versions import FileVersions
from msp_bridge.workspace.workspace import Workspace

LOOK_S = 0.5  # between two looks at the files


@click.command("watch", context_settings={"show_default": True})
@click.argument("paths", nargs=-1, type=click.Path(), metavar="[PATHS]…")
@bridge_options
def command(paths: tuple[str, ...], **values: Any) -> None:
    """Test the mutants of what you save, until Ctrl-C.

    Lines that you have changed are tested when you save them; only survivors are shown. When you save a test, the
    mutants that have survived are tested again. What is tested is kept for `show`, `accept` and others. PATHS are those
    of `run`.

    \b
    Exit codes; stderr has the reason:
      2    the command line or the configuration is wrong
      130  ended by Ctrl-C
    """
    options = Options.of_command(values, "warning")
    asyncio.run(_watch(options, select(options.root, paths).takes))


async def _watch(options: Options, takes: Callable[[Mutant], bool]) -> None:
    async with contextlib.aclosing(options.open_workspace()) as workspace:
        watch = Watch(workspace, takes, Console(highlight=False, markup=False))
        await watch.run()


@define(eq=False)
class Watch:
    """The files that were saved and are not tested yet, and what has survived."""

    workspace: Workspace
    takes: Callable[[Mutant], bool]  # whether a mutant is wanted
    console: Console
    _texts: dict[str, str] = field(factory=dict)  # of mutated files, as they were looked at last
    _lines: dict[str, set[int]] = field(factory=dict)  # saved and not tested
    _survivors: set[Mutant] = field(factory=set)
    _again: set[Mutant] = field(factory=set)  # survivors to test again
    _kept: KeptRun = field(init=False)

    def __attrs_post_init__(self) -> None:
        """Begin a run, for `msp-bridge show`, `accept` and others."""
        self._kept = KeptRun(self.workspace.root)

    async def run(self) -> None:
        """Watch until cancelled. An error that the user can fix is printed, and the watch goes on."""
        versions = FileVersions(self.workspace.root)
        version = await versions.look()
        self._note(versions.touched(0), first=True)
        click.echo(f"watching {one_line(str(self.workspace.root))}: save a file, or end with Ctrl-C")
        testing: asyncio.Task[None] | None = None
        try:
            while True:
                await asyncio.sleep(LOOK_S)
                now = await versions.look()
                saved, version = versions.touched(version), now
                if saved and self._note(saved):
                    if testing is not None:
                        await cancel_all([testing])
                    testing = asyncio.create_task(self._test_saying_errors(), name="test of what is saved")
        finally:
            if testing is not None:
                await cancel_all([testing])

    def _note(self, paths: Iterable[str], *, first: bool = False) -> bool:
        """Note what of `paths` is to be tested, but not at the `first` look. Returns whether anything is."""
        sources = Sources(self.workspace.root)
        others = False
        for path in paths:
            source = sources.of(path) if self.workspace.projects.owner(path) is not None else None
            if source is None:
                others = True
                self._texts.pop(path, None)
                continue
            if path in self._texts:
                self._move(path, Changed.between(self._texts[path], source.text))
            elif not first:
                self._lines[path] = set(range(1, source.line_count + 1))
            self._texts[path] = source.text
        if others:
            self._again |= self._survivors
        return bool(any(self._lines.values()) or self._again)

    def _move(self, path: str, changed: Changed) -> None:
        """Note the changed lines of the file, and where the survivors in the others are now."""
        self._lines[path] = changed.moved_lines(self._lines.get(path, set())) | changed.line_numbers
        here = {mutant for mutant in self._survivors if mutant.path == path}
        moved = {evolve(mutant, location=to) for mutant in here if (to := changed.moved(mutant.location)) is not None}
        self._survivors = (self._survivors - here) | moved
        self._again = {mutant for mutant in self._again if mutant.path != path} | (moved if self._again else set())

    async def _test_saying_errors(self) -> None:
        try:
            await self._test()
        except BridgeError as error:
            click.echo(f"msp-bridge: {one_line(str(error))}", err=True)

    async def _test(self) -> None:
        lines = {path: set(numbers) for path, numbers in self._lines.items() if numbers}
        again = set(self._again)
        targets = tuple(
            Target(path, Location(Position(line, 1), Position(line + 1, 1)), partly=True)
            for path, numbers in lines.items()
            for line in sorted(numbers)
        )
        counts = 0
        for selection in (Selection(targets=targets), Selection.of(again)):
            if not selection.empty:
                counts += await self._test_selection(selection)
        self._lines.clear()
        self._again.clear()
        if counts:
            text = f"{time.strftime('%H:%M:%S')}  {counted(counts, 'mutant')} tested, {len(self._survivors)} survive"
            self.console.print(text, style="dim")

    async def _test_selection(self, selection: Selection) -> int:
        """Test, show the survivors, and keep the results; not of a test that a save ends: they are of another text."""
        tested: list[Result] = []
        testing, told = self.workspace.test(selection, anew=selection.mutants is not None), Told()
        accepted, sources = AcceptedSurvivors.of(self.workspace.root), Sources(self.workspace.root)
        async with contextlib.aclosing(batches(testing, told.tell)) as found:
            async for batch in found:
                for result in batch:
                    if self.takes(result.mutant) and accepted.judged(result).status is not Status.IGNORED:
                        tested.append(result)
                        self._show(result, sources)
        self._kept.add(tested)
        return len(tested)

    def _show(self, result: Result, sources: Sources) -> None:
        self._survivors.discard(result.mutant)
        if result.status.undetected:
            self._survivors.add(result.mutant)
            text = missed(self.workspace.root, result, sources.of(result.mutant.path))
            self.console.print(text, soft_wrap=True)
