"""What holds in every dialect, and in MCP: cancel, back-pressure, access, and one answer and one result each, however requests mix."""

import asyncio
import contextlib
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Self

import pytest
from attrs import define, field, frozen
from hypothesis import given, settings
from hypothesis import strategies as st
from support.dialects import Report, Speech, Talker, every_dialect, every_protocol, greeted, opened, spoken_to
from support.msp_client import LONG, Refused, framed
from support.servers import DIGIT, LOOK, ScriptedProject, environment, mutants_of, over_memory, until
from support.socket_servers import TOKEN, socket_server, the_token, tls_of_both

from msp_bridge.dialects.dialect import load
from msp_bridge.text import UNSAFE
from msp_bridge.workspace.open_workspaces import OpenWorkspaces

EXAMPLES = int(os.environ.get("MSP_BRIDGE_INTERLEAVINGS", "40"))
GATED = {"mutator": "gated", "find": "7", "replacement": "8", "after": "gate"}
SURVIVES = {**DIGIT, "status": "Survived"}
FILES = {"a.py": "1 1\n1\n", "slow/b.py": "1 7\n"}
OTHER_PROJECT = {"web/src/c.py": "1\n7 1\n"}
MANY = 3000


@every_protocol
async def test_a_cancel_is_answered_by_its_own_code_when_the_tool_is_gone(
    speech: Speech, project: ScriptedProject
) -> None:
    project.write("a.py", "1")
    project.script(tool="hang", lines=True)
    async with greeted(speech, project) as client:
        id = await client.ask(*speech.testing(1, None))
        await project.started("hang")
        await speech.cancel(client, id)
        if speech.cancelled is None:
            await until(lambda: project.alive() == [])
        else:
            assert (await client.answer(id))["error"]["code"] == speech.cancelled
            assert project.alive() == []
        project.script()
        await client.request(*speech.testing(2, None))
        assert len(speech.tested(client.notified)) == 1
        assert id not in client._answers, "answered, though the protocol has no answer to what is cancelled"


@every_dialect
async def test_a_client_that_reads_nothing_stops_its_tool_and_leaves_at_once(
    speech: Speech, project: ScriptedProject
) -> None:
    project.write("many.py", "1\n" * MANY)
    project.script({**SURVIVES, "details": {"status_reason": "x" * 1000}}, tool="flood", lines=True)
    async with greeted(speech, project) as client:
        await client.ask(*speech.testing(1, None))
        begun = [-1]
        while len(begun) < 5 or len(set(begun[-4:])) > 1:  # looking too early only weakens the test
            await asyncio.sleep(10 * LOOK)
            begun.append(sum(line.startswith("started") for line in project.log))
        assert begun[-1] < MANY
    assert project.alive() == []


@every_dialect
async def test_a_token_and_tls_are_wanted_first(speech: Speech, project: ScriptedProject, tmp_path: Path) -> None:
    project.write("a.py", "1")
    speech.root = project.root
    tls, client_tls = tls_of_both(tmp_path)
    async with socket_server(project, dialect=load(speech.name), token=the_token(tmp_path), tls=tls) as server:
        unauthenticated = Talker((await server.connect(client_tls)).wire)
        with pytest.raises(Refused) as refused:
            await speech.greet(unauthenticated)
        assert refused.value.code == -32000
        client = Talker((await server.connect(client_tls)).wire)
        assert await client.request("authenticate", {"token": TOKEN}) == {}
        await speech.greet(client)
        await client.request(*speech.testing(1, None))
        assert len(speech.tested(client.notified)) == 1
        await client.wire.aclose()


@every_protocol
async def test_what_is_malformed_is_answered_by_its_own_code_and_the_session_goes_on(
    speech: Speech, project: ScriptedProject
) -> None:
    project.write("a.py", "1")
    async with greeted(speech, project) as client:
        before = client.notified.copy()
        for body, code in (
            (b"{", -32700),
            (b"\xff", -32700),
            (b"[]", -32600),
            (b"7", -32600),
            (b'{"jsonrpc": "2.0", "id": 70}', -32600),
            (b'{"jsonrpc": "2.0", "id": {}, "method": "x"}', -32600),
        ):
            await client.send(framed(body))
            answer = await client.receive()
            assert (answer.get("id") in (None, 70), answer["error"]["code"]) == (True, code), body
        for id in (81, "82"):
            await client.send({"id": id, "method": "unheard of", "params": {}})
            assert (await client.answer(id))["error"]["code"] == -32601
        await client.send({"method": "unheard of"}, {"id": 999, "result": {"of": "nothing that was asked"}})
        assert client.notified == before
        await client.request(*speech.testing(1, None))
        assert len(speech.tested(client.notified)) == 1


@every_dialect
async def test_a_fault_of_ours_is_an_internal_error_and_the_session_goes_on(
    speech: Speech, project: ScriptedProject
) -> None:
    project.write("a.py", "1")
    async with greeted(speech, project) as client:
        project.script(testing={"raises": ["RuntimeError", "/home/me/secret.py, line 3"]})
        answer = await client.answer(await client.ask(*speech.testing(1, None)))
        assert answer["error"]["code"] == -32603
        assert "secret" not in str(answer)
        project.script()
        await client.request(*speech.testing(2, None))
        assert len(speech.tested(client.notified)) == 1


MANY_FAULTS = {  # by protocol: a request with as many faults as it may have elements
    "msp": ("discover", {"files": [0] * 100_000}),
    "msp-alpha": ("mutate", {"globPatterns": [0] * 100_000}),
    "mtp": ("testing/runTests", {"runId": "1", "tests": [0] * 100_000}),
    "lsp": ("msp-bridge/test", {"uris": [0] * 100_000}),
    "mcp": ("tools/call", {"name": "list_mutants", "arguments": {"paths": [0] * 50_000}}),
}


@every_protocol
async def test_of_many_faults_a_few_are_named(speech: Speech, project: ScriptedProject) -> None:
    method, params = MANY_FAULTS.get(speech.name, ("testrunner/run", {"id": 7, **dict.fromkeys(map(str, range(99)))}))
    project.write("a.py", "1")
    async with greeted(speech, project) as client:
        answer = await client.answer(await client.ask(method, params))
        assert len(str(answer)) < 1500, str(answer)[:3000]
        assert "must be" in str(answer) or "should be" in str(answer)
        await client.request(*speech.testing(1, None))
        assert len(speech.tested(client.notified)) == 1


HOSTILE = "\x1b[2J\x07\n\u202e"
SHOWN = {"message", "title", "display-name", "displayName", "error.message", "text", "contents", "effect", "reason"}


def shown(value: Any, key: str = "") -> list[str]:
    """The texts in a message that its client shows to people, or an agent reads."""
    match value:
        case str():
            return [value] if key in SHOWN else []
        case dict():
            return [text for name, item in value.items() if name != "structuredContent" for text in shown(item, name)]
        case list():
            return [text for item in value for text in shown(item, key)]
    return []


@every_protocol
async def test_no_text_for_people_has_a_control_character(speech: Speech, project: ScriptedProject) -> None:
    path = f"a{HOSTILE}.py"
    project.write(path, "1")
    project.script({**SURVIVES, "mutator": HOSTILE, "details": {"status_reason": HOSTILE}})
    heard: list[Any] = []
    async with greeted(speech, project) as client:
        heard.append(await client.answer(await client.ask(*speech.testing(1, None))))
        assert len(speech.tested(client.notified)) == 1
        project.script(testing={"raises": ["ToolError", f"it fails {HOSTILE}"]})
        heard.append(await client.answer(await client.ask(*speech.testing(2, None))))
        heard += [params for _, params in client.notified]
    texts = [text for message in heard for text in shown(message)]
    assert any("it fails \\x1b" in text for text in texts)
    assert [text for text in texts if UNSAFE.search(text) or "\x1b" in text] == []
    names = [text for text in texts if "a\\x1b" in text]
    assert [text for text in names if "\u202e.py" in text or "a\\x1b[2J\\x07\n" in text] == []


LONG_PATHS = ["x" * 300, "d/" * 3000, "y" * 100_000]


@every_protocol
@pytest.mark.parametrize("path", LONG_PATHS, ids=lambda path: str(len(path)))
async def test_a_path_that_is_too_long_for_a_file_is_no_fault_of_ours(
    speech: Speech, project: ScriptedProject, path: str
) -> None:
    project.write("a.py", "1")
    async with greeted(speech, project) as client:
        answer = await client.answer(await client.ask(*speech.testing(1, path)))
        assert "-32603" not in str(answer)
        assert "fault of msp-bridge" not in str(answer)
        assert len(str(answer)) < 1500, str(answer)[:3000]


PARENT = "import subprocess, sys, time; subprocess.Popen(sys.argv[1:]); time.sleep(600)"


@pytest.mark.parametrize(
    ("dialect", "initialize"),
    [("mtp", {"clientInfo": {"name": "test", "version": "1.0.0"}}), ("lsp", {"capabilities": {}})],
)
async def test_the_server_ends_with_the_process_that_has_started_it(
    dialect: str, initialize: Any, project: ScriptedProject
) -> None:
    """Also when its stdin does not: here it is the test's, too."""
    server_in, ours_out = os.pipe()
    ours_in, server_out = os.pipe()
    serve = (sys.executable, "-m", "msp_bridge", "serve", "stdio", "--dialect", dialect, "--adapter", "scripted")
    parent = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", PARENT, *serve),
        stdin=server_in,
        stdout=server_out,
        cwd=project.root,
        env=environment(project.root),
    )
    for theirs in (server_in, server_out):
        os.close(theirs)
    body = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"processId": parent.pid, **initialize}}
    os.write(ours_out, framed(body))
    async with asyncio.timeout(LONG):
        assert b'"capabilities"' in await asyncio.to_thread(os.read, ours_in, 65536)
        parent.kill()
        await parent.wait()
        while await asyncio.to_thread(os.read, ours_in, 65536):
            pass
    os.close(ours_in)
    os.close(ours_out)


@frozen
class Ask:
    """A request of one of the clients: to test a file or everything, or to discover."""

    client: int
    path: str | None = None
    tests: bool = True


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


clients = st.integers(0, 1)
steps = st.one_of(
    st.builds(Ask, clients, st.sampled_from([None, *FILES])),
    st.builds(Ask, clients, st.none(), st.just(False)),
    st.builds(Cancel, clients, st.integers(0, 5)),
    st.builds(Leave, clients, st.booleans()),
    st.builds(Pause, st.integers(1, 40)),
    st.builds(Open),
)


@define
class Party:
    """A client, its end, its requests by the ids of their messages, and those it has cancelled."""

    client: Talker
    leave: Callable[[], Awaitable[None]]
    asked: dict[int, tuple[int, Ask]] = field(factory=dict)
    cancelled: set[int] = field(factory=set)

    @classmethod
    async def comes(cls, speech: Speech, workspaces: OpenWorkspaces, party: contextlib.AsyncExitStack) -> Self:
        own = await party.enter_async_context(contextlib.AsyncExitStack())
        client = await own.enter_async_context(spoken_to(speech, workspaces))
        await speech.greet(client)
        return cls(client, own.aclose)

    async def ask(self, speech: Speech, ask: Ask) -> None:
        number = len(self.asked) + 1
        message = speech.testing(number, ask.path) if ask.tests else speech.discovering(number)
        self.asked[await self.client.ask(*message)] = number, ask

    async def cancel(self, speech: Speech, which: int) -> None:
        if self.asked:
            id = list(self.asked)[which % len(self.asked)]
            self.cancelled.add(id)
            await speech.cancel(self.client, id)

    async def settle(self, speech: Speech, mutants: dict[str, set[str]]) -> None:
        """All answers have come, each once, and each mutant's result as often as it was asked for."""
        least, most = Counter[Report](), Counter[Report]()
        for id, (number, ask) in self.asked.items():
            wanted = {mutant for path, found in mutants.items() if ask.path in (None, path) for mutant in found}
            reports = speech.reports(number, wanted if ask.tests else ())
            if speech.cancelled is None and id in self.cancelled:  # no answer; it may have been done before the cancel
                most += reports
                continue
            answer = await self.client.answer(id)
            if "error" not in answer:
                least += reports
            elif answer["error"]["code"] == speech.repeated:
                continue
            else:
                assert answer["error"]["code"] == speech.cancelled, answer
                assert id in self.cancelled
            most += reports
        assert (await self.client.answer(await self.client.ask("nothing")))["error"]["code"] == -32601
        reported = speech.tested(self.client.notified)
        assert reported >= least
        assert reported <= most


async def played(speech: Speech, directory: Path, script: list[Any]) -> None:
    os.environ["MSP_BRIDGE_CACHE"] = str(directory / "cache")
    project = ScriptedProject.made(directory)
    files = FILES if speech.name == "lsp" else FILES | OTHER_PROJECT  # its `testProject` tests one
    for path, text in files.items():
        project.write(path, text)
    project.script(SURVIVES, GATED)
    if files != FILES:
        project.write("web/scripted.json", (project.root / "scripted.json").read_text())
    speech.root = project.root
    async with asyncio.timeout(LONG), over_memory(project) as other:
        mutants: dict[str, set[str]] = {}
        for path, mutant in mutants_of(await other.request("discover")):
            mutants.setdefault(path, set()).add(mutant["id"])
    assert mutants.keys() == files.keys()
    async with asyncio.timeout(LONG), opened(project) as workspaces, contextlib.AsyncExitStack() as stack:
        parties = [await Party.comes(speech, workspaces, stack) for _ in range(2)]
        for step in script:
            match step:
                case Ask(number):
                    await parties[number].ask(speech, step)
                case Cancel(number, which):
                    await parties[number].cancel(speech, which)
                case Leave(number, politely):
                    await (parties[number].client.wire.aclose() if politely else parties[number].leave())
                    parties[number] = await Party.comes(speech, workspaces, stack)
                case Pause(turns):
                    for _ in range(turns):
                        await asyncio.sleep(0)
                case Open():
                    project.open("gate")
        project.open("gate")
        for party in parties:
            await party.settle(speech, mutants)


@every_protocol
@given(script=st.lists(steps, max_size=20))
@settings(max_examples=EXAMPLES)
def test_each_request_gets_one_answer_and_each_mutant_one_result(speech: Speech, script: list[Any]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        asyncio.run(played(speech, Path(directory), script))
