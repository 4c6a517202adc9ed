"""A request discovers once, tests the mutants of that, and looks again only at files that change meanwhile."""

import contextlib
import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from pathlib import Path

import pytest
from support.scripted.scripted_adapter import Scripted

from msp_bridge.adapter import Mutant, Result
from msp_bridge.model import Scope
from msp_bridge.workspace.configuration import Configuration
from msp_bridge.workspace.request import ROUNDS
from msp_bridge.workspace.selection import Selection, Target
from msp_bridge.workspace.workspace import Workspace

MUTATIONS = [
    {"mutator": "digit", "find": "1", "replacement": "2"},
    {"mutator": "word", "find": "one", "replacement": "", "status": "Survived"},
]
FOLDERS = ["", "below/"]  # where the project is: mutants of a project below are mounted, and keep their handles

Edit = Callable[[Callable[[], None]], None]


@pytest.fixture(params=FOLDERS)
def root(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The root of the project with two files, of two mutants each."""
    monkeypatch.setenv("MSP_BRIDGE_CACHE", str(tmp_path / "cache"))
    root = tmp_path / "tree" / request.param
    root.mkdir(parents=True)
    script = {"mutations": MUTATIONS, "events": str(tmp_path)}
    (root / "scripted.json").write_text(json.dumps(script))
    (root / "a.py").write_text("1 one")
    (root / "b.py").write_text("1 one")
    return root


@pytest.fixture
async def workspace(root: Path, tmp_path: Path) -> AsyncIterator[Workspace]:
    assert root.is_dir()
    async with contextlib.aclosing(Workspace.open(tmp_path / "tree", Configuration(adapters=("scripted",)))) as opened:
        yield opened


@pytest.fixture
def edit(monkeypatch: pytest.MonkeyPatch) -> Edit:
    """Sets what happens to the project just before each `test` of the adapter."""

    def on_testing(change: Callable[[], None]) -> None:
        test = Scripted.test

        async def changed(self: Scripted, mutants: Sequence[Mutant]) -> AsyncGenerator[Result, None]:
            change()
            async with contextlib.aclosing(test(self, mutants)) as results:
                async for result in results:
                    yield result

        monkeypatch.setattr(Scripted, "test", changed)

    return on_testing


async def outcomes(workspace: Workspace, selection: Selection | None = None) -> dict[str, tuple[str, str | None]]:
    async with contextlib.aclosing(workspace.test(selection or Selection())) as results:
        found = [result async for result in results]
    answer = {
        f"{Path(result.mutant.path).name} {result.mutant.mutator}": (result.status.value, result.status_reason)
        for result in found
    }
    assert len(answer) == len(found), "a mutant was reported twice"
    return answer


def count(tmp_path: Path, line: str) -> int:
    return (tmp_path / "log").read_text().splitlines().count(line)


ALL = {
    "a.py digit": ("Killed", None),
    "a.py word": ("Survived", None),
    "b.py digit": ("Killed", None),
    "b.py word": ("Survived", None),
}


async def test_a_request_discovers_once(workspace: Workspace, tmp_path: Path) -> None:
    assert await outcomes(workspace) == ALL
    assert count(tmp_path, "discovering") == 1
    async with contextlib.aclosing(workspace.discover(Selection())) as mutants:
        assert len([mutant async for mutant in mutants]) == 4
    assert count(tmp_path, "discovering") == 2


async def test_the_adapter_gets_the_handles_that_it_gave(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[object] = []
    discover, test = Scripted.discover, Scripted.test

    async def recorded(self: Scripted, scope: Scope) -> AsyncGenerator[Mutant, None]:
        async for mutant in discover(self, scope):
            given.append(mutant.handle)
            yield mutant

    async def compared(self: Scripted, mutants: Sequence[Mutant]) -> AsyncGenerator[Result, None]:
        assert [id(mutant.handle) for mutant in mutants] == list(map(id, given))
        async for result in test(self, mutants):
            yield result

    monkeypatch.setattr(Scripted, "discover", recorded)
    monkeypatch.setattr(Scripted, "test", compared)
    assert await outcomes(workspace) == ALL
    assert len(given) == 4


async def test_what_still_exists_in_a_changed_file_is_tested(
    root: Path, workspace: Workspace, tmp_path: Path, edit: Edit
) -> None:
    edit(lambda: (root / "b.py").write_text("1 two") and None)
    gone = "not tested: its file has changed since, and it no longer exists: discover again"
    assert await outcomes(workspace) == ALL | {"b.py word": ("Ignored", gone)}
    assert count(tmp_path, "discovering") == 2
    assert [count(tmp_path, f"testing {mutants}") for mutants in (4, 1)] == [1, 1], "only what is left is tested again"


async def test_mutants_that_an_edit_adds_are_not_in_the_request(root: Path, workspace: Workspace, edit: Edit) -> None:
    edit(lambda: (root / "a.py").write_text("1 one 1 1") and None)
    selection = Selection(targets=(Target(str(root / "a.py")),))
    assert await outcomes(workspace, selection) == {"a.py digit": ("Killed", None), "a.py word": ("Survived", None)}


async def test_a_file_that_changes_all_the_time_has_an_answer(
    root: Path, workspace: Workspace, tmp_path: Path, edit: Edit
) -> None:
    def append() -> None:
        with (root / "b.py").open("a") as file:
            file.write(" ")

    edit(append)
    found = await outcomes(workspace)
    for name in ("b.py digit", "b.py word"):
        status, reason = found.pop(name)
        assert status == "Ignored"
        assert reason is not None
        assert f"no result for it in {ROUNDS} attempts" in reason
    assert found == {name: result for name, result in ALL.items() if name.startswith("a.py")}
    assert count(tmp_path, "discovering") == ROUNDS


async def test_a_file_that_vanishes_has_an_answer(root: Path, workspace: Workspace, tmp_path: Path, edit: Edit) -> None:
    edit(lambda: (root / "b.py").unlink(missing_ok=True))
    found = await outcomes(workspace)
    assert [found[name][0] for name in sorted(found)] == ["Killed", "Survived", "Ignored", "Ignored"]
    assert count(tmp_path, "discovering") == 2
