"""The conformance suite passes an adapter that keeps its promises, and says of every other what it did wrong."""

import json
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve
from support.scripted.scripted_adapter import Scripted

from msp_bridge.adapter import Adapter, Mutant, Project, Result, Scope, Status
from msp_bridge.testing import RunningProcesses, TreeState, check_adapter

MUTATIONS = [
    {"mutator": "digit", "find": "1", "replacement": "2"},
    {"mutator": "name", "find": "é😀", "replacement": "", "status": "Survived"},
]


@pytest.fixture
def project(tmp_path: Path) -> Project:
    root = tmp_path / "project"
    (root / "pkg").mkdir(parents=True)
    (root / "a.py").write_bytes("x = 1\r\ny = 'é😀' + 1 1 1\r\n".encode())
    (root / "pkg" / "b.py").write_text("1 1\n")
    (root / "none.py").touch()
    return Project(root=root, cache=tmp_path / "cache")


def script(project: Project, **entries: Any) -> None:
    (project.root / "scripted.json").write_text(json.dumps({"mutations": MUTATIONS, **entries}))


@pytest.mark.parametrize("entries", [{}, {"tool": "daemon"}, {"warm": "hang", "tool": "stubborn"}], ids=str)
async def test_an_adapter_that_keeps_its_promises_passes(project: Project, entries: dict[str, Any]) -> None:
    script(project, **entries)
    await check_adapter(Scripted, project)
    assert RunningProcesses().look() == []


@pytest.mark.parametrize(
    ("entries", "says"),
    [
        ({"discovery": {"columns": 100}}, "is no place in the file: line 1 has no column 105"),
        ({"discovery": {"columns": -5}}, "a.py:1:0 .* is no place in the file"),
        ({"discovery": {"invents": True}}, "of/another/tool.txt, which claims"),
        ({"discovery": {"writes": "new.txt"}}, "the project was written to: .*new.txt has appeared"),
        ({"testing": {"writes": "new.txt"}}, "the project was written to: .*new.txt has appeared"),
        ({"testing": {"writes": "none.py"}}, "the project was written to: .*none.py has changed"),
        ({"testing": {"invents": True}}, "test of no mutants gave results"),
        ({"testing": {"leaks": True}, "tool": "stubborn"}, "left processes behind"),
        ({"mutations": [MUTATIONS[0] | {"times": 2}]}, "was reported 2 times instead of once"),
        ({"mutations": [MUTATIONS[0] | {"times": 0}]}, "was reported 0 times instead of once"),
        ({"mutations": [MUTATIONS[0] | {"replacement": "1"}]}, "replaces '1' by itself"),
        ({"mutations": [MUTATIONS[0] | {"mutator": ""}]}, "names no mutator"),
        ({"mutations": []}, "fewer than two mutants"),
    ],
    ids=str,
)
async def test_a_broken_promise_is_reported(
    project: Project, entries: dict[str, Any], says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("msp_bridge.testing.conformance.MAX_LOOKS", 10)
    script(project, **entries)
    with pytest.raises(AssertionError, match=says):
        await check_adapter(Scripted, project)
    assert RunningProcesses().look() == [], "the suite closes the adapter that it refuses"


class ClaimsNothing(Scripted):
    def claims(self, path: str) -> bool:
        return False

    async def discover(self, scope: Scope) -> AsyncGenerator[Mutant, None]:
        async for mutant in Scripted(self._project).discover(scope):
            yield mutant


class IgnoresScope(Scripted):
    async def discover(self, scope: Scope) -> AsyncGenerator[Mutant, None]:
        async for mutant in super().discover(Scope()):
            yield mutant


class ForgetsDirectories(Scripted):
    async def discover(self, scope: Scope) -> AsyncGenerator[Mutant, None]:
        paths = scope.paths
        async for mutant in super().discover(Scope()):
            if paths is None or mutant.path in paths:
                yield mutant


class NeverTheSame(Scripted):
    count = 0

    async def discover(self, scope: Scope) -> AsyncGenerator[Mutant, None]:
        NeverTheSame.count += 1
        async for mutant in super().discover(scope):
            yield evolve(mutant, mutator=f"{mutant.mutator} {NeverTheSame.count}")


class AbsolutePaths(Scripted):
    def claims(self, path: str) -> bool:
        return True

    async def discover(self, scope: Scope) -> AsyncGenerator[Mutant, None]:
        async for mutant in Scripted(self._project).discover(scope):
            yield evolve(mutant, path=str(self._project.root / mutant.path))


class ReportsWhatIsGone(Scripted):
    async def test(self, mutants: Sequence[Mutant]) -> AsyncGenerator[Result, None]:
        for mutant in mutants:
            yield Result(mutant, Status.KILLED)


class AcceptsChangedFiles(Scripted):
    async def test(self, mutants: Sequence[Mutant]) -> AsyncGenerator[Result, None]:
        if mutants:
            now = {mutant: mutant async for mutant in super().discover(Scope())}
            async for result in super().test([now[mutant] for mutant in mutants if mutant in now]):
                yield result


class RemembersOnlyTheLastDiscovery(Scripted):
    async def discover(self, scope: Scope) -> AsyncGenerator[Mutant, None]:
        self.found = []
        async for mutant in super().discover(scope):
            self.found.append(mutant)
            yield mutant

    async def test(self, mutants: Sequence[Mutant]) -> AsyncGenerator[Result, None]:
        async for result in super().test([mutant for mutant in mutants if mutant in self.found]):
            yield result


class RemembersOldFiles(Scripted):
    async def discover(self, scope: Scope) -> AsyncGenerator[Mutant, None]:
        self.found: list[Mutant]
        if not hasattr(self, "found"):
            self.found = [mutant async for mutant in super().discover(Scope())]
        for mutant in self.found:
            if scope.covers(mutant.path):
                yield mutant


class ReportsEverything(Scripted):
    async def test(self, mutants: Sequence[Mutant]) -> AsyncGenerator[Result, None]:
        if mutants:
            everything = [mutant async for mutant in self.discover(Scope())]
            async for result in super().test(everything):
                yield result


@pytest.mark.parametrize(
    ("adapter", "says"),
    [
        (ClaimsNothing, "discover gave a mutant of a.py, which claims\\(\\) denies"),
        (IgnoresScope, "discover in the scope .* differs"),
        (ForgetsDirectories, "discover in the scope .* differs"),
        (NeverTheSame, "other mutants the second time"),
        (AbsolutePaths, "is not relative to the root"),
        (ReportsWhatIsGone, "results for mutants that no longer exist"),
        (AcceptsChangedFiles, "results for mutants whose file is not as it was discovered"),
        (RemembersOnlyTheLastDiscovery, "was reported 0 times instead of once"),
        (RemembersOldFiles, "discover missed an edit"),
        (ReportsEverything, "other mutants than those to test"),
    ],
)
async def test_a_broken_adapter_is_refused(project: Project, adapter: type[Adapter], says: str) -> None:
    script(project)
    with pytest.raises(AssertionError, match=says):
        await check_adapter(adapter, project)
    assert RunningProcesses().look() == []


def started(project: Project) -> int:
    log = project.cache / "log"
    return sum(line.startswith("started") for line in log.read_text().splitlines()) if log.exists() else 0


@pytest.mark.parametrize("eager", [True, False])
async def test_starting_mutants_too_early_is_reported_where_it_can_be_counted(project: Project, eager: bool) -> None:
    project.cache.mkdir()
    script(project, events=str(project.cache), testing={"eager": eager})
    checking = check_adapter(Scripted, project, started=lambda: started(project))
    if eager:
        with pytest.raises(AssertionError, match="started 7 mutants, though no second result was awaited"):
            await checking
    else:
        await checking


async def test_discovering_again_is_reported_where_it_can_be_counted(project: Project) -> None:
    project.cache.mkdir()
    script(project, events=str(project.cache))

    def listings() -> int:
        return (project.cache / "log").read_text().splitlines().count("discovering")

    await check_adapter(Scripted, project, listings=listings)
    with pytest.raises(AssertionError, match=r"test\(\) made the tool list its mutants again, 1 times"):
        await check_adapter(AcceptsChangedFiles, project, listings=listings)


async def test_an_adapter_that_does_not_detect_itself_is_reported(project: Project) -> None:
    with pytest.raises(AssertionError, match="scripted does not detect itself"):
        await check_adapter(Scripted, project)


def test_tree_states_differ_in_what_appeared_vanished_and_changed(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    for name in ("same", "content", "mode", "gone", "sub/deep"):
        (tmp_path / name).write_text(name)
    (tmp_path / "link").symlink_to("same")
    before = TreeState.of(tmp_path)
    assert before.differences(TreeState.of(tmp_path)) == []
    (tmp_path / "content").write_text("CONTENT")
    (tmp_path / "mode").chmod(0o755)
    (tmp_path / "gone").unlink()
    (tmp_path / "sub" / "new").touch()
    (tmp_path / "link").unlink()
    (tmp_path / "link").symlink_to("content")
    differences = set(before.differences(TreeState.of(tmp_path)))
    assert {
        "content has changed",
        "mode has changed",
        "gone has vanished",
        "sub/new has appeared",
        "link has changed",
    } <= differences
    assert differences <= {
        "content has changed",
        "mode has changed",
        "gone has vanished",
        "sub/new has appeared",
        "link has changed",
    } | {
        ". has changed",
        "sub has changed",
        "sub/. has changed",
    }
