"""Random interleavings of several clients' requests: each is answered exactly once, each mutant reported exactly once."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from attrs import define, field, frozen
from hypothesis import given, settings
from hypothesis import strategies as st
from support.memory_stream import MemoryStream
from support.msp_client import LONG, Client
from support.servers import DIGIT, ScriptedProject, mutants_of, place

from msp_bridge.dialects.msp import Msp
from msp_bridge.server import serve_client
from msp_bridge.workspace.configuration import Configuration
from msp_bridge.workspace.open_workspaces import OpenWorkspaces

EXAMPLES = int(os.environ.get("MSP_BRIDGE_INTERLEAVINGS", "150"))
CLIENTS = 3
GATED = {"mutator": "gated", "find": "7", "replacement": "8", "after": "gate"}
FILES = {"a.py": "1 1\n1\n", "slow/b.py": "1 7\n", "web/src/c.py": "1\n7 1\n"}
SELECTIONS: dict[str, dict[str, Any]] = {
    "everything": {},
    "a file": {"files": [{"path": "a.py"}]},
    "a directory": {"files": [{"path": "web/"}, {"path": "web/src/c.py"}]},
    "a range": {"files": [{"path": "a.py", "range": place(1, 1, 1, 4)}, {"path": "gone.py"}]},
    "nothing": {"files": []},
}


@frozen
class Ask:
    """A request of one of the clients."""

    client: int
    method: str
    selection: str = "everything"


@frozen
class Cancel:
    """Of one of a client's requests, which may have been answered already."""

    client: int
    which: int


@frozen
class Leave:
    """A client goes, and another one comes."""

    client: int
    politely: bool


@frozen
class Pause:
    """The others go on for a while."""

    turns: int


@frozen
class Open:
    """What waited may go on."""


clients = st.integers(0, CLIENTS - 1)
steps = st.one_of(
    st.builds(Ask, clients, st.just("mutationTest"), st.sampled_from([*SELECTIONS, "mutants"])),
    st.builds(Ask, clients, st.just("discover"), st.sampled_from([*SELECTIONS])),
    st.builds(Ask, clients, st.just("configure")),
    st.builds(Cancel, clients, st.integers(0, 5)),
    st.builds(Leave, clients, st.booleans()),
    st.builds(Pause, st.integers(1, 40)),
    st.builds(Open),
)


@define
class Party:
    """A client, what it has sent, and the task that serves it."""

    client: Client
    wire: MemoryStream
    serving: asyncio.Task[None]
    sent: dict[int, Ask] = field(factory=dict)
    cancelled: set[int] = field(factory=set)


class World:
    """A server with several clients, and what each mutant of its project is called."""

    def __init__(self, project: ScriptedProject) -> None:
        self._project = project
        self._workspaces = OpenWorkspaces(project.root, Configuration(adapters=("scripted",), jobs=2))
        self._parties: list[Party] = []
        self._left: list[Party] = []
        self._known: dict[str, dict[str, Any]] = {}  # the mutants of a DiscoverResult

    @classmethod
    @asynccontextmanager
    async def of(cls, project: ScriptedProject) -> AsyncIterator[World]:
        world = cls(project)
        try:
            async with asyncio.timeout(LONG):
                for _ in range(CLIENTS):
                    world._parties.append(world._comes())
                world._known = (await world._parties[0].client.request("discover"))["files"]
                assert world._known.keys() == FILES.keys()
                yield world
        finally:
            for party in world._parties:
                await party.wire.vanish()
            for party in (*world._parties, *world._left):
                await party.serving
            await world._workspaces.aclose()

    async def take(self, step: Any) -> None:
        match step:
            case Ask(number, method, selection):
                party = self._parties[number]
                params = {"mutants": self._known} if selection == "mutants" else SELECTIONS[selection]
                party.sent[await party.client.ask(method, params if method != "configure" else {})] = step
            case Cancel(number, which):
                party = self._parties[number]
                if party.sent:
                    id = list(party.sent)[which % len(party.sent)]
                    party.cancelled.add(id)
                    await party.client.cancel(id)
            case Leave(number, politely):
                party = self._parties[number]
                await (party.wire.aclose() if politely else party.wire.vanish())
                self._left.append(party)
                self._parties[number] = self._comes()
            case Pause(turns):
                for _ in range(turns):
                    await asyncio.sleep(0)
            case Open():
                self._project.open("gate")

    async def settle(self) -> None:
        """Everything that waits goes on; all answers that are due have come, and they are right."""
        self._project.open("gate")
        for party in self._parties:
            answers = {id: await party.client.answer(id) for id in party.sent}
            await party.client.request("configure", {})  # whatever came twice would be before this answer
            self._check(party, answers)

    def _check(self, party: Party, answers: dict[int, dict[str, Any]]) -> None:
        least: Counter[tuple[str, str]] = Counter()
        most: Counter[tuple[str, str]] = Counter()
        for id, ask in party.sent.items():
            answer = answers[id]
            if "error" in answer:
                assert answer["error"]["code"] == -32800, answer
                assert id in party.cancelled
            elif ask.method == "configure":
                assert answer["result"] == {"version": "0.4.0"}
            elif ask.method == "discover":
                found = {(path, mutant["id"]) for path, mutant in mutants_of(answer["result"])}
                assert found == self._selected(ask.selection)
            else:
                assert answer["result"] == {"files": {}}
                least.update(self._selected(ask.selection))
            if ask.method == "mutationTest":
                most.update(self._selected(ask.selection))
        reported = Counter((path, mutant["id"]) for path, mutant in party.client.take_results())
        assert reported >= least
        assert reported <= most

    def _selected(self, selection: str) -> set[tuple[str, str]]:
        everything = {(path, mutant["id"]): mutant for path, mutant in mutants_of({"files": self._known})}
        match selection:
            case "everything" | "mutants":
                return set(everything)
            case "a file":
                return {key for key in everything if key[0] == "a.py"}
            case "a directory":
                return {key for key in everything if key[0].startswith("web/")}
            case "a range":
                start = {"line": 1, "column": 1}, {"line": 1, "column": 3}
                return {
                    key
                    for key, mutant in everything.items()
                    if key[0] == "a.py" and mutant["location"]["start"] in start
                }
        return set()

    def _comes(self) -> Party:
        ours, theirs = MemoryStream.pair()
        return Party(Client(theirs), theirs, asyncio.create_task(serve_client(ours, self._workspaces, Msp)))


async def played(directory: Path, script: list[Any]) -> None:
    os.environ["MSP_BRIDGE_CACHE"] = str(directory / "cache")
    project = ScriptedProject(directory / "project", directory / "events")
    project.root.mkdir()
    project.events.mkdir()
    for path, text in FILES.items():
        project.write(path, text)
    project.script(DIGIT, GATED)
    (project.root / "web" / "scripted.json").write_text((project.root / "scripted.json").read_text())
    async with World.of(project) as world:
        for step in script:
            await world.take(step)
        await world.settle()


@given(st.lists(steps, max_size=25))
@settings(max_examples=EXAMPLES, deadline=None)
def test_each_request_gets_one_answer_and_each_mutant_one_result(script: list[Any]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        asyncio.run(played(Path(directory), script))
