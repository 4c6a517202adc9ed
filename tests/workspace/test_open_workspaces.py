"""Clients share warm tools, a changed configuration gets fresh ones, and none is lost on the way."""

import asyncio
import contextlib
import itertools
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from support.msp_client import LONG

from msp_bridge.adapter import Project
from msp_bridge.errors import ConfigurationError
from msp_bridge.workspace.configuration import Configuration
from msp_bridge.workspace.detection import detect_projects
from msp_bridge.workspace.open_workspaces import MAX_IDLE, OpenWorkspaces
from msp_bridge.workspace.projects import Candidate, ProjectFolder, ProjectMap
from msp_bridge.workspace.workspace import Workspace


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    root.mkdir()
    (root / "scripted.json").write_text(json.dumps({"mutations": []}))
    for number in range(5):
        (root / f"{number}.json").write_text(json.dumps({"mutations": []}))
    return root


@pytest.fixture
def closed(monkeypatch: pytest.MonkeyPatch) -> list[Workspace]:
    """The workspaces that have been closed, in order."""
    closed = []
    aclose = Workspace.aclose

    async def noted(self: Workspace) -> None:
        await aclose(self)
        closed.append(self)

    monkeypatch.setattr(Workspace, "aclose", noted)
    return closed


@pytest.fixture
async def workspaces(root: Path) -> AsyncIterator[OpenWorkspaces]:
    workspaces = OpenWorkspaces(root, Configuration(adapters=("scripted",)))
    yield workspaces
    await workspaces.aclose()


async def opened(workspaces: OpenWorkspaces, named: str | None = None) -> Workspace:
    async with workspaces.use(named) as workspace:
        return workspace


async def test_the_same_configuration_is_the_same_workspace(workspaces: OpenWorkspaces, closed: list[Any]) -> None:
    async with workspaces.use(None) as one, workspaces.use(None) as other:
        assert one is other
    assert await opened(workspaces) is one
    assert closed == []


async def test_another_configuration_is_another_workspace(workspaces: OpenWorkspaces) -> None:
    assert await opened(workspaces) is not await opened(workspaces, "1.json")


async def test_a_wrong_configuration_is_an_error_and_opens_nothing(workspaces: OpenWorkspaces) -> None:
    with pytest.raises(ConfigurationError, match="no configuration file"):
        await workspaces.check("gone.json")


async def test_a_changed_configuration_makes_a_new_workspace_and_ends_the_old(
    workspaces: OpenWorkspaces, closed: list[Any], root: Path
) -> None:
    old = await opened(workspaces)
    (root / "msp-bridge.toml").write_text("jobs = 1")
    new = await opened(workspaces)
    assert new is not old
    assert closed == [old]
    (root / "msp-bridge.toml").write_text("jobs = 2")
    assert await opened(workspaces) is not new
    assert closed == [old, new]


async def test_an_outdated_workspace_ends_only_when_its_last_request_does(
    workspaces: OpenWorkspaces, closed: list[Any], root: Path
) -> None:
    async with workspaces.use(None) as old:
        async with workspaces.use(None):
            (root / "msp-bridge.toml").write_text("jobs = 1")
            assert await opened(workspaces) is not old
        assert closed == []
    assert closed == [old]


async def test_few_idle_workspaces_stay_warm_the_most_recent_ones(
    workspaces: OpenWorkspaces, closed: list[Any]
) -> None:
    seen = [await opened(workspaces, f"{number}.json") for number in range(5)]
    assert closed == seen[:-MAX_IDLE]
    assert [await opened(workspaces, f"{number}.json") for number in range(5 - MAX_IDLE, 5)] == seen[-MAX_IDLE:]


async def test_a_workspace_in_use_is_never_ended_for_being_one_too_many(
    workspaces: OpenWorkspaces, closed: list[Any]
) -> None:
    async with workspaces.use("0.json") as used:
        for number in range(1, 5):
            await opened(workspaces, f"{number}.json")
        assert used not in closed


async def test_closing_ends_all_of_them_once(workspaces: OpenWorkspaces, closed: list[Any], root: Path) -> None:
    seen = [await opened(workspaces, named) for named in (None, "1.json")]
    await workspaces.aclose()
    await workspaces.aclose()
    assert closed == seen


async def test_a_tool_that_was_set_up_meanwhile_is_found_at_the_next_check(tmp_path: Path, closed: list[Any]) -> None:
    (tmp_path / "web").mkdir()
    (tmp_path / "web" / "package.json").write_text("{}")
    (tmp_path / "scripted.json").write_text(json.dumps({"mutations": []}))
    workspaces = OpenWorkspaces(tmp_path, Configuration(adapters=("scripted", "stryker-js")))
    (tmp_path / "package.json").write_text('{"devDependencies": {"@stryker-mutator/core": "^9"}}')
    async with contextlib.aclosing(workspaces):
        before = await opened(workspaces)
        await workspaces.check(None)
        assert await opened(workspaces) is before
        (tmp_path / "web" / "package.json").write_text('{"devDependencies": {"@stryker-mutator/core": "^9"}}')
        await workspaces.check(None)
        after = await opened(workspaces)
        assert [tool.label for tool in before.tools] == ["scripted", "stryker-js"]
        assert [tool.label for tool in after.tools] == ["scripted", "stryker-js", "stryker-js in web/"]
        assert closed == [before]


class SlowLook:
    """A script whose tool is looked for until the gate is opened."""

    def __init__(self, script: Path) -> None:
        self._gate, self._log = script.parent / "gate", script.parent / "log"
        script.write_text(json.dumps({"mutations": [], "events": str(script.parent), "detected": "gate"}))

    async def begun(self) -> None:
        async with asyncio.timeout(LONG):
            while not self._log.exists():
                await asyncio.sleep(0.005)

    def end(self) -> None:
        self._gate.touch()


async def test_clients_that_come_while_a_workspace_is_being_opened_share_it(
    workspaces: OpenWorkspaces, closed: list[Any], root: Path
) -> None:
    look = SlowLook(root / "scripted.json")
    coming = [asyncio.create_task(opened(workspaces)) for _ in range(2)]
    checking = asyncio.create_task(workspaces.check(None))
    await look.begun()
    look.end()
    one, other = await asyncio.gather(*coming)
    await checking
    assert one is other
    assert await opened(workspaces) is one
    assert closed == []


@pytest.mark.parametrize("folder", ["", "web/"])
async def test_a_configuration_saved_during_detection_is_read(
    workspaces: OpenWorkspaces, root: Path, folder: str
) -> None:
    (root / folder).mkdir(exist_ok=True)
    file = root / folder / "msp-bridge.toml"
    file.write_text("scripted = {number = 3}")
    look = SlowLook(root / folder / "scripted.json")
    opening = asyncio.create_task(opened(workspaces))
    await look.begun()
    file.write_text("scripted = {number = 7}")
    look.end()
    workspace = await opening
    assert workspace.tools[-1].folder == folder
    assert workspace.tools[-1].adapter._project.settings == {"number": 7}  # type: ignore[attr-defined]
    assert await opened(workspaces) is workspace


async def test_a_configuration_saved_at_every_look_is_read_by_the_next_request(
    workspaces: OpenWorkspaces, closed: list[Any], root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    numbers = itertools.count(1)

    def saved_meanwhile(*arguments: Any) -> ProjectMap:
        projects = detect_projects(*arguments)
        (root / "msp-bridge.toml").write_text(f"jobs = {next(numbers)}")
        return projects

    with monkeypatch.context() as patch:
        patch.setattr("msp_bridge.workspace.open_workspaces.detect_projects", saved_meanwhile)
        before = await opened(workspaces)
    last = next(numbers) - 1
    after = await opened(workspaces)
    assert after.tools[0].adapter._project.jobs == last  # type: ignore[attr-defined]
    assert closed == [before]


async def test_a_client_that_leaves_during_detection_leaves_nothing_behind(
    workspaces: OpenWorkspaces, closed: list[Any], root: Path
) -> None:
    look = SlowLook(root / "scripted.json")
    leaving, staying = asyncio.create_task(opened(workspaces)), asyncio.create_task(opened(workspaces))
    await look.begun()
    leaving.cancel()
    look.end()
    with pytest.raises(asyncio.CancelledError):
        await leaving
    assert await opened(workspaces) is await staying
    assert closed == []


async def test_a_workspace_that_ends_during_a_check_is_not_used_again(
    workspaces: OpenWorkspaces, closed: list[Any], root: Path
) -> None:
    old = await opened(workspaces, "0.json")
    async with workspaces.use("1.json"), workspaces.use("2.json"):
        look = SlowLook(root / "0.json")
        checking = asyncio.create_task(workspaces.check("0.json"))
        await look.begun()
    assert closed == [old]
    look.end()
    await checking
    assert await opened(workspaces, "0.json") is not old


class SlowClosing:
    """Workspaces that end only when they are let."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.begun, self.may_end = asyncio.Event(), asyncio.Event()
        self.closing: list[Workspace] = []
        self.closed: list[Workspace] = []

        async def slowly(workspace: Workspace) -> None:
            self.closing.append(workspace)
            self.begun.set()
            await self.may_end.wait()
            self.closed.append(workspace)

        monkeypatch.setattr(Workspace, "aclose", slowly)


async def test_a_request_that_waits_for_another_tool_to_end_gets_a_living_one(
    workspaces: OpenWorkspaces, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def alive() -> bool:
        async with workspaces.use("0.json") as workspace:
            return workspace not in closing.closing

    await opened(workspaces, "0.json")
    closing = SlowClosing(monkeypatch)
    (root / "msp-bridge.toml").write_text("jobs = 1")
    request = asyncio.create_task(alive())
    await closing.begun.wait()
    others = [asyncio.create_task(opened(workspaces, f"{number}.json")) for number in (1, 2, 3, 4)]
    for _ in range(10):
        await asyncio.sleep(0)
    closing.may_end.set()
    await asyncio.gather(*others)
    assert await request


async def test_a_cancel_while_tools_are_being_closed_loses_none_of_them(
    workspaces: OpenWorkspaces, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("msp_bridge.workspace.open_workspaces.MAX_IDLE", 10)
    idle = [await opened(workspaces, f"{number}.json") for number in range(3)]
    monkeypatch.setattr("msp_bridge.workspace.open_workspaces.MAX_IDLE", 1)
    closing = SlowClosing(monkeypatch)
    request = asyncio.create_task(opened(workspaces, "3.json"))
    await closing.begun.wait()
    for _ in range(3):
        request.cancel()
        await asyncio.sleep(0)
    assert not request.done()
    closing.may_end.set()
    with pytest.raises(asyncio.CancelledError):
        await request
    assert {*idle[:2]} <= {*closing.closed}


async def test_a_tool_that_can_not_be_closed_keeps_no_other_from_it(
    root: Path, caplog: pytest.LogCaptureFixture
) -> None:
    class Tool:
        name = "tool"

        def __init__(self, fails: bool) -> None:
            self.fails, self.closed = fails, False

        async def aclose(self) -> None:
            await asyncio.sleep(0)
            if self.fails:
                raise LookupError("stuck")
            await asyncio.sleep(0)
            self.closed = True

    tools = [Tool(False), Tool(True), Tool(False)]
    candidates: Any = [Candidate("tool", Tool, Project(root, root), tool) for tool in tools]  # type: ignore[arg-type]
    await Workspace(ProjectMap(root, (ProjectFolder("", tuple(candidates)),))).aclose()
    assert [tool.closed for tool in tools] == [True, False, True]
    assert "stuck" in caplog.text


async def test_what_the_last_client_of_a_folder_leaves_ends(
    workspaces: OpenWorkspaces, closed: list[Any], root: Path
) -> None:
    folder = root / "folder"
    folder.mkdir()
    (folder / "scripted.json").write_text(json.dumps({"mutations": []}))
    ours, others = workspaces.acquire(folder), workspaces.acquire(folder)
    workspace = await opened(ours)
    await workspaces.release(ours)
    assert await opened(others) is workspace
    assert closed == []
    async with others.use(None):  # a request that still runs keeps its tools
        await workspaces.release(others)
        assert closed == []
    assert closed == [workspace]
    assert workspaces.acquire(folder) is not ours
