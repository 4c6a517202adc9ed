"""The checks, and what is left behind. Each raises AssertionError with what the adapter did, and should have done."""

from __future__ import annotations

import asyncio
import codecs
import contextlib
import hashlib
import json
import os
import stat
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import psutil
from attrs import frozen

from msp_bridge.adapter import Adapter, Mutant, Project, ReportsSurroundings, Result, Scope
from msp_bridge.concurrency import all_of
from msp_bridge.processes.sweep import RUN_ID, alive, members
from msp_bridge.source import SourceText

MAX_LOOKS = 250  # 20 ms apart, until what was reported dead must be gone from the process table, too
PAUSE_S = 0.5  # in which an adapter that doesn't wait for the next request of a result starts more mutants


@frozen
class TreeState:
    """State of every file of a tree: kind, permissions, time of the last change (ns), and content, by path."""

    entries: dict[str, tuple[int, int, str]]

    @classmethod
    def of(cls, root: Path) -> TreeState:
        """The present state of everything at and below `root`."""
        entries = {}
        for directory, names, files in os.walk(root):
            for name in [".", *names, *files]:
                path = os.path.join(directory, name)
                status = os.lstat(path)
                entries[os.path.relpath(path, root)] = (
                    status.st_mode,
                    status.st_mtime_ns,
                    _content(path, status.st_mode),
                )
        return cls(entries)

    def differences(self, later: TreeState) -> list[str]:
        """Return a line for each path that has appeared, vanished or changed since."""
        before, after = self.entries, later.entries
        return sorted(
            [f"{path} has appeared" for path in after.keys() - before.keys()]
            + [f"{path} has vanished" for path in before.keys() - after.keys()]
            + [f"{path} has changed" for path in before.keys() & after.keys() if before[path] != after[path]]
        )


def _content(path: str, mode: int) -> str:
    if stat.S_ISLNK(mode):
        return os.readlink(path)
    if stat.S_ISREG(mode):
        return hashlib.sha256(Path(path).read_bytes()).hexdigest()
    return ""


class RunningProcesses:
    """Looks at the processes below ours that were not there when it was made; remembers their runs, to find strays."""

    def __init__(self) -> None:
        self._before = {process.pid for process in psutil.Process().children(recursive=True)}
        self._runs: set[str] = set()

    def look(self) -> list[psutil.Process]:
        """The living processes below ours, or of a run that was seen earlier."""
        found = {process.pid: process for process in psutil.Process().children(recursive=True)}
        for process in found.values():
            with contextlib.suppress(psutil.Error, OSError):
                if run := process.environ().get(RUN_ID):
                    self._runs.add(run)
        for run in self._runs:
            found.update((process.pid, process) for process in members(run, None))
        return [process for pid, process in found.items() if pid not in self._before and alive(process)]

    async def settled(self, at_most: int) -> list[str]:
        """The command lines of what is alive once no more than `at_most` processes are, or after `MAX_LOOKS`."""
        left: list[psutil.Process] = []
        for _ in range(MAX_LOOKS):
            left = self.look()
            if len(left) <= at_most:
                break
            await asyncio.sleep(0.02)
        return [_command(process) for process in left]


def _command(process: psutil.Process) -> str:
    try:
        return f"{process.pid}: {' '.join(process.cmdline())[:200]}"
    except psutil.Error:
        return f"{process.pid}: gone meanwhile"


async def check_adapter(
    adapter_class: type[Adapter],
    project: Project,
    *,
    sample: int = 12,
    encoding: str = "utf-8",
    started: Callable[[], int] | None = None,
    listings: Callable[[], int] | None = None,
    workers: int = 1,
) -> None:
    """Check all that `Adapter` promises, on a project whose tool is set up and which has two mutants or more.

    `project.root` must be a copy that nobody needs: the last check edits a file in it. At most `sample` mutants, spread
    over the project, are tested in each check. `encoding` is that of the project's sources.
    Where they can be counted, `started` says how many mutants have been started so far (it shows back-pressure), and
    `listings` how often the tool has listed its mutants (it shows that `test` doesn't discover again).
    `workers` share the tests of one request; each starts a tool, and keeps it, when it gets its first mutants.
    """
    running = RunningProcesses()
    tree = TreeState.of(project.root)
    adapter = adapter_class.detect(project)
    assert adapter is not None, f"{adapter_class.name} does not detect itself in {project.root}"
    async with contextlib.aclosing(adapter):
        mutants = await check_discovery(adapter, project, encoding)
        chosen = _spread(mutants, sample)
        await check_scope(adapter, mutants)
        await check_results(adapter, chosen)
        await check_snapshot(adapter, mutants, chosen, listings)
        await check_closing(adapter, chosen, running, workers)
        if started is not None:
            await check_back_pressure(adapter, project, chosen, started)
        await check_concurrent_requests(adapter, chosen)
        await check_surroundings(adapter, project)
        _check_untouched(tree, project.root)
        await check_edit(adapter, project, chosen)
    left = await running.settled(0)
    assert not left, f"aclose left processes behind: {left}"


async def check_discovery(adapter: Adapter, project: Project, encoding: str = "utf-8") -> list[Mutant]:
    """Mutants are the same each time, of claimed files, at places that exist, and change something. Returns them."""
    mutants = await _discovered(adapter, Scope())
    assert len(mutants) > 1, "discover found fewer than two mutants: take another project"
    assert await _discovered(adapter, Scope()) == mutants, "discover gave other mutants the second time"
    sources: dict[str, SourceText] = {}
    for mutant in mutants:
        assert adapter.claims(mutant.path), f"discover gave a mutant of {mutant.path}, which claims() denies"
        assert not mutant.path.startswith(("/", "./", "../")), f"{mutant.path} is not relative to the root"
        assert "\\" not in mutant.path, f"{mutant.path} is not written with /"
        assert mutant.mutator, f"a mutant of {mutant.path} names no mutator"
        if mutant.path not in sources:
            sources[mutant.path] = SourceText.read(project.root / mutant.path, encoding)
        _check_place(mutant, sources[mutant.path])
    return mutants


async def check_scope(adapter: Adapter, mutants: Sequence[Mutant]) -> None:
    """A scope gives the mutants of its files: all of them, and no others."""
    for path in {mutants[0].path, mutants[-1].path}:
        expected = [mutant for mutant in mutants if mutant.path == path]
        assert await _discovered(adapter, Scope(frozenset([path]))) == expected, f"discover in the scope {path} differs"
        directory = path[: path.rfind("/") + 1] or "/"
        below = Scope(frozenset([directory]))
        expected = [mutant for mutant in mutants if below.covers(mutant.path)]
        assert await _discovered(adapter, below) == expected, f"discover in the scope {directory} differs"
    for nothing in (Scope(frozenset()), Scope(frozenset(["no/such/file"])), Scope(frozenset(["no/such/directory/"]))):
        assert await _discovered(adapter, nothing) == [], f"discover in {nothing} found mutants"


async def check_results(adapter: Adapter, chosen: Sequence[Mutant]) -> None:
    """Exactly one result for each mutant, for all of them and for one; none for none."""
    assert await _tested(adapter, []) == [], "test of no mutants gave results"
    _check_each_once(await _tested(adapter, chosen), chosen)
    _check_each_once(await _tested(adapter, chosen[:1]), chosen[:1])


async def check_snapshot(
    adapter: Adapter, mutants: Sequence[Mutant], chosen: Sequence[Mutant], listings: Callable[[], int] | None = None
) -> None:
    """`test` runs on the mutants of an earlier `discover`, whatever was discovered since, and lists none itself."""
    await _discovered(adapter, Scope(frozenset([mutants[-1].path])))
    before = 0 if listings is None else listings()
    _check_each_once(await _tested(adapter, chosen), chosen)
    again = 0 if listings is None else listings() - before
    assert again == 0, f"test() made the tool list its mutants again, {again} times"


async def check_surroundings(adapter: Adapter, project: Project) -> None:
    """An adapter that says what surrounds its tool says the same twice, in JSON, and names no path of this checkout."""
    if not isinstance(adapter, ReportsSurroundings) or (first := await adapter.surroundings()) is None:
        return
    assert await adapter.surroundings() == first, "surroundings() said something else the second time"
    text = json.dumps(first.values)
    assert str(project.root) not in text, "surroundings() has the path of the project in it"
    assert all(tree.is_absolute() for tree in first.trees), "surroundings() names a tree that is not absolute"


async def check_closing(
    adapter: Adapter, chosen: Sequence[Mutant], running: RunningProcesses, workers: int = 1
) -> None:
    """Closing a generator half-way ends its processes; the next request is served as if nothing had been.

    What runs while the adapter is idle may stay: it is counted first. Each worker but the first may have got its first
    mutants only then, and keeps the tool that it has started for them; when it gets the next ones, also what that keeps
    ready for more, such as test runners. A process that is left at each request is one too many in the end.
    """
    idle = len(running.look())
    for ended, how in (
        (_closed_half_way, "closing test()"),
        (_cancelled_at_its_start, "cancelling test() at its start"),
    ):
        for others in reversed(range(2 * workers - 1)):
            await ended(adapter, chosen)
            left = await running.settled(idle)
            if len(left) <= idle:
                break
            assert others, f"{how} left processes behind: {left} ({idle} were there when it was idle)"
            idle = len(left)
    async with contextlib.aclosing(adapter.discover(Scope())) as mutants:
        await anext(mutants)
    _check_each_once(await _tested(adapter, chosen[-1:]), chosen[-1:])


async def _closed_half_way(adapter: Adapter, chosen: Sequence[Mutant]) -> None:
    async with contextlib.aclosing(adapter.test(chosen)) as results:
        await anext(results)


async def _cancelled_at_its_start(adapter: Adapter, chosen: Sequence[Mutant]) -> None:
    testing = asyncio.create_task(_tested(adapter, chosen))
    await asyncio.sleep(0)
    testing.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await testing


async def check_back_pressure(
    adapter: Adapter, project: Project, chosen: Sequence[Mutant], started: Callable[[], int]
) -> None:
    """While the next result is not awaited, no more mutants are started than may run at once."""
    before = started()
    async with contextlib.aclosing(adapter.test(chosen)) as results:
        await anext(results)
        await asyncio.sleep(PAUSE_S)
        begun = started() - before
    most = 2 * project.jobs  # mutants that ran when the first result came, and one more in the place of each
    assert begun <= most, f"test() started {begun} mutants, though no second result was awaited"


async def check_concurrent_requests(adapter: Adapter, chosen: Sequence[Mutant]) -> None:
    """Two runs and a discovery at the same time don't disturb one another."""
    first, second, discovered = await asyncio.gather(
        _tested(adapter, chosen), _tested(adapter, chosen[::-1]), _discovered(adapter, Scope())
    )
    _check_each_once(first, chosen)
    _check_each_once(second, chosen)
    assert set(chosen) <= set(discovered), "discover lost mutants while tests ran"


async def check_edit(adapter: Adapter, project: Project, chosen: Sequence[Mutant]) -> None:
    """After an edit, discovery finds what is there now, and mutants of the file as it was get no result."""
    path = chosen[0].path
    file, scope = project.root / path, Scope(frozenset([path]))
    content = file.read_bytes()
    mark = codecs.BOM_UTF8 if content.startswith(codecs.BOM_UTF8) else b""
    file.write_bytes(mark + b"\n" + content[len(mark) :])
    tree = TreeState.of(project.root)
    before = [mutant for mutant in chosen if mutant.path == path]
    now = await _discovered(adapter, scope)
    assert set(now) != set(before), "discover missed an edit"
    moved = [mutant for mutant in before if mutant not in now]
    assert await _tested(adapter, moved) == [], "test gave results for mutants that no longer exist"
    _check_each_once(await _tested(adapter, now[:1]), now[:1])
    _check_untouched(tree, project.root)
    file.write_bytes(file.read_bytes() + b"\n")  # every mutant still exists, and its verdict may be another
    results = await _tested(adapter, now[:1])
    assert results == [], "test gave results for mutants whose file is not as it was discovered"
    assert await _discovered(adapter, scope) == now, "discover lost mutants when a line was added below them"
    _check_each_once(await _tested(adapter, _spread(await _discovered(adapter, scope), 2)), _spread(now, 2))


def _check_place(mutant: Mutant, source: SourceText) -> None:
    where = f"{mutant.path}:{mutant.location.start} ({mutant.mutator})"
    assert mutant.location.start <= mutant.location.end, f"{where} ends before it starts"
    try:
        original = source.at(mutant.location)
    except ValueError as error:
        raise AssertionError(f"{where} is no place in the file: {error}") from None
    assert original or mutant.replacement, f"{where} replaces nothing by nothing"
    assert original != mutant.replacement, f"{where} replaces {original!r} by itself"


def _check_each_once(results: Iterable[Result], mutants: Sequence[Mutant]) -> None:
    counts = Counter(result.mutant for result in results)
    for mutant in mutants:
        place = f"{mutant.path}:{mutant.location.start.line} ({mutant.mutator})"
        assert counts[mutant] == 1, f"{place} was reported {counts[mutant]} times instead of once"
    assert len(counts) == len(set(mutants)), (
        f"results for other mutants than those to test: {set(counts) - set(mutants)}"
    )


def _check_untouched(tree: TreeState, root: Path) -> None:
    differences = tree.differences(TreeState.of(root))
    assert not differences, f"the project was written to: {differences}"


def _spread(mutants: Sequence[Mutant], count: int) -> list[Mutant]:
    """At most `count` different mutants, from the first to the last."""
    different = list(dict.fromkeys(mutants))
    if len(different) <= count:
        return different
    return [different[at * (len(different) - 1) // (count - 1)] for at in range(count)]


async def _discovered(adapter: Adapter, scope: Scope) -> list[Mutant]:
    return [item for item in await all_of(adapter.discover(scope)) if isinstance(item, Mutant)]


async def _tested(adapter: Adapter, mutants: Sequence[Mutant]) -> list[Result]:
    return [item for item in await all_of(adapter.test(mutants)) if isinstance(item, Result)]
