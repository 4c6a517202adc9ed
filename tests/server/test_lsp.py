"""`--dialect lsp`: the life cycle, and what a client gets to see of mutants; lsprotocol checks every message."""

import asyncio
import contextlib
import re
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from lsprotocol import types
from support.dialects import opened as opened_workspaces
from support.files import written
from support.lsp_client import CAPABILITIES, LspClient
from support.memory_stream import MemoryStream
from support.msp_client import Refused
from support.servers import ScriptedProject, launched, memory_of, on_stdio, until

import msp_bridge
from msp_bridge.dialects.lsp import editor
from msp_bridge.dialects.lsp.dialect import MAX_FOLDERS, Lsp
from msp_bridge.server import serve_client

OPTIONS = ("--dialect", "lsp", "--adapter", "scripted")
SURVIVES = {"mutator": "digit", "find": "1", "replacement": "2", "status": "Survived"}
WARNING, INFORMATION, HINT = 2, 3, 4
SERVED = {  # of what a client may send
    *("initialize", "initialized", "shutdown", "exit", "$/cancelRequest", "window/workDoneProgress/cancel"),
    *(f"textDocument/{name}" for name in ("didOpen", "didChange", "didSave", "didClose")),
    *(f"textDocument/{name}" for name in ("diagnostic", "codeLens", "codeAction", "hover")),
    *(f"workspace/{name}" for name in ("executeCommand", "didChangeConfiguration", "didChangeWorkspaceFolders")),
    "workspace/diagnostic",
}


@contextlib.asynccontextmanager
async def over_memory(project: ScriptedProject) -> AsyncIterator[LspClient]:
    async with memory_of(project, Lsp) as stream:
        yield LspClient(stream)


@pytest.fixture
async def client(project: ScriptedProject) -> AsyncIterator[LspClient]:
    async with over_memory(project) as client:
        yield client


def uri(project: ScriptedProject, path: str) -> str:
    return (project.root / path).as_uri()


async def opened(client: LspClient, project: ScriptedProject, text: str, **begin: Any) -> str:
    """The URI of a.py, which has this text on the disk and in the client."""
    project.write("a.py", text)
    await client.begin(uri(project, ""), **begin)
    await client.open(uri(project, "a.py"), text)
    return uri(project, "a.py")


def lines(first: int, last: int) -> Any:
    return {"start": {"line": first, "character": 0}, "end": {"line": last, "character": 0}}


async def test_a_session_from_the_handshake_to_a_retest(client: LspClient, project: ScriptedProject) -> None:
    project.script(
        SURVIVES,
        {"mutator": "plus", "find": "+", "replacement": "-", "details": {"covered_by": ["t1"]}},
        {"mutator": "two", "find": "2", "replacement": "3", "status": "NoCoverage"},
    )
    text = "def f(a):\n    return a + 1\n\n\ndef g():\n    return 2\n"
    document = await opened(client, project, text)
    assert await client.execute("msp-bridge.test", uri=document) is None
    assert await client.tested() == "3 mutants: 1 killed, 1 survived, 1 no coverage"
    found = await client.diagnostics()
    while len(found) < 2:  # results come one by one
        found = await client.diagnostics()
    assert found == [
        (1, 15, WARNING, 'Survived: "1" -> "2"'),
        (5, 11, INFORMATION, 'NoCoverage: "2" -> "3"; no test runs through it'),
    ]
    assert await client.lenses(document) == [
        (0, "3 mutants: 1 killed, 1 survived, 1 no coverage · test"),
        (0, "2 mutants: 1 killed, 1 survived · test"),
        (4, "1 mutant: 1 no coverage · test"),
    ]
    text = text.replace("a + 1", "a + 11")
    project.write("a.py", text)
    await client.change(document, text)
    await client.save(document)
    assert await client.tested() == "3 mutants: 1 killed, 2 survived"


async def test_initialize_says_what_the_server_can(client: LspClient, project: ScriptedProject) -> None:
    answer = await client.begin(uri(project, ""))
    assert answer["serverInfo"]["name"] == "msp-bridge"
    assert answer["capabilities"]["positionEncoding"] == "utf-16"
    assert answer["capabilities"]["textDocumentSync"]["change"] == 2
    assert "diagnosticProvider" not in answer["capabilities"]


@pytest.mark.parametrize(
    ("offered", "chosen", "column"),
    [
        (["utf-8", "utf-32", "utf-16"], "utf-8", 15),
        (["utf-32"], "utf-32", 10),
        (["utf-7"], "utf-16", 11),
        (None, "utf-16", 11),
    ],
)
async def test_positions_count_what_the_client_wants(
    client: LspClient, project: ScriptedProject, offered: Any, chosen: str, column: int
) -> None:
    project.script(SURVIVES)
    capabilities = CAPABILITIES | ({"general": {"positionEncodings": offered}} if offered else {})
    project.write("a.py", text := 'x = "€𝄞", 1\n')
    answer = await client.begin(uri(project, ""), capabilities)
    assert answer["capabilities"]["positionEncoding"] == chosen
    await client.open(uri(project, "a.py"), text)
    await client.execute("msp-bridge.test", uri=uri(project, "a.py"))
    assert [found[:2] for found in await client.diagnostics()] == [(0, column)]
    assert "-x = " in await client.hover(uri(project, "a.py"), 0, column)


async def test_nothing_is_served_before_initialize_nor_after_shutdown(
    client: LspClient, project: ScriptedProject
) -> None:
    async def code_of(method: str, params: Any = None) -> int:
        return (await client.refused(method, params))[0]

    assert await code_of("textDocument/hover") == -32002
    assert await code_of("unknown") == -32002
    await client.notify("textDocument/didOpen", {"odd": True})
    assert await code_of("initialize", {"capabilities": 5}) == -32602
    await client.begin(uri(project, ""))
    assert await code_of("initialize", {"capabilities": {}}) == -32600
    assert await code_of("unknown") == -32601
    assert await code_of("textDocument/hover", {"position": {"line": -1}}) == -32602
    assert await code_of("workspace/executeCommand", {"command": "rm"}) == -32602
    assert await code_of("workspace/executeCommand", {"command": "msp-bridge.test", "arguments": []}) == -32602
    await client.notify("textDocument/didChange", {"odd": True})
    assert await client.request("shutdown") is None
    assert await code_of("shutdown") == -32600
    assert await code_of("textDocument/hover") == -32600


async def test_what_lsp_has_besides_is_refused_or_ignored(client: LspClient, project: ScriptedProject) -> None:
    answer = await client.begin(uri(project, ""))
    theirs = [method for method in types.METHOD_TO_TYPES if types.message_direction(method) != "serverToClient"]
    ours = set(types.METHOD_TO_TYPES) - set(theirs)
    refused, ignored = [], []
    for method in theirs:
        if method in SERVED:
            continue
        if "Request" not in types.METHOD_TO_TYPES[method][0].__name__:
            ignored.append(method)
            await client.notify(method, {})
            continue
        assert (await client.refused(method, {}))[0] == -32601, method
        refused.append(method)
    assert (len(refused) > 40, len(ignored) > 8, ours & SERVED) == (True, True, set())
    assert {each for each in answer["capabilities"] if each.endswith("Provider")} == {
        "codeLensProvider",
        "codeActionProvider",
        "hoverProvider",
        "executeCommandProvider",
    }
    await client.request("shutdown")
    assert [message["method"] for message in client.heard] == []


@pytest.mark.parametrize(("shut_down", "code"), [(True, 0), (False, 1)])
async def test_the_exit_code_says_whether_it_was_shut_down(
    project: ScriptedProject, shut_down: bool, code: int
) -> None:
    async with on_stdio(project, *OPTIONS) as (plain, server):
        client = LspClient(plain.wire)
        if shut_down:
            await client.begin(uri(project, ""))
            await client.request("shutdown")
        await client.notify("exit")
        assert await server.exited() == code


async def test_an_edit_moves_what_is_below_and_drops_what_it_touches(
    client: LspClient, project: ScriptedProject
) -> None:
    project.script(SURVIVES)
    document = await opened(client, project, "a = 1\nb = 1\nc = 1\n")
    await client.execute("msp-bridge.test", uri=document)
    await client.tested()
    client.heard.clear()
    await client.change(document, "# new\n", {"start": {"line": 1, "character": 0}, "end": {"line": 1, "character": 0}})
    assert [found[0] for found in await client.diagnostics()] == [0, 2, 3]
    await client.change(document, "#", {"start": {"line": 2, "character": 5}, "end": {"line": 2, "character": 5}})
    assert [found[0] for found in await client.diagnostics()] == [0, 3]


async def test_unsaved_text_is_not_tested_and_a_message_says_so(client: LspClient, project: ScriptedProject) -> None:
    project.script(SURVIVES)
    document = await opened(client, project, "a = 1\nb = 1\n")
    await client.change(document, "a = 1\nb = 11\n# 1\n")
    await client.execute("msp-bridge.test", uri=document, range=lines(1, 2))
    said = await client.until("window/showMessage")
    assert said == {
        "type": 2,
        "message": "msp-bridge: a.py has unsaved changes there: save it, tools test what is saved",
    }
    await client.execute("msp-bridge.test", uri=document)
    assert "a.py has unsaved changes" in (await client.until("window/showMessage"))["message"]
    assert await client.tested() == "2 mutants: 2 survived"
    published = await client.diagnostics()
    assert published == [(0, 4, WARNING, 'Survived: "1" -> "2"')]  # the other one is in a line that is not saved


@pytest.mark.parametrize("tested_first", [True, False])
async def test_what_is_closed_unsaved_shows_again_what_is_known_of_the_file(
    client: LspClient, project: ScriptedProject, tested_first: bool
) -> None:
    project.script(SURVIVES)
    text, both = "a = 1\nb = 1\n", [(line, 4, WARNING, 'Survived: "1" -> "2"') for line in (0, 1)]
    document = await opened(client, project, text)
    if tested_first:
        await client.execute("msp-bridge.test", uri=document)
        while await client.diagnostics() != both:
            pass
    await client.change(document, "\na = 1\nb = 11\n")
    if not tested_first:
        await client.execute("msp-bridge.test", uri=document)
        assert await client.tested() == "2 mutants: 2 survived"
    while await client.diagnostics() != [(1, *both[0][1:])]:
        pass
    await client.notify("textDocument/didClose", {"textDocument": {"uri": document}})
    assert await client.diagnostics() == both
    await client.open(document, "b = 1\n")  # as an editor that has kept what was not saved
    assert await client.diagnostics() == [both[0]]
    await client.notify("textDocument/didClose", {"textDocument": {"uri": document}})
    assert await client.diagnostics() == both


@pytest.mark.parametrize(("on_save", "count"), [("changed", 1), ("file", 2), ("off", 0)])
async def test_a_save_tests_what_the_setting_says(
    client: LspClient, project: ScriptedProject, on_save: str, count: int
) -> None:
    project.script(SURVIVES)
    document = await opened(client, project, "a = 0\nb = 1\n", initializationOptions={"testOnSave": on_save})
    project.write("a.py", "a = 1\nb = 1\n")
    await client.change(document, "1", {"start": {"line": 0, "character": 4}, "end": {"line": 0, "character": 5}})
    await client.save(document)
    if count:
        assert await client.tested() == f"{count} mutant{'s' * (count > 1)}: {count} survived"
    await client.notify("workspace/didChangeConfiguration", {"settings": {"msp-bridge": {"testOnSave": "file"}}})
    project.write("a.py", "a = 11\nb = 1\n")
    await client.change(document, "a = 11\nb = 1\n")
    await client.save(document)
    assert await client.tested() == "3 mutants: 3 survived"


async def test_a_second_save_tests_what_the_first_had_no_time_for(client: LspClient, project: ScriptedProject) -> None:
    project.script({**SURVIVES, "after": "gate"})
    document = await opened(client, project, "a = 0\nb = 0\n")
    for text in ("a = 1\nb = 0\n", "a = 1\nb = 1\n"):
        project.write("a.py", text)
        await client.change(document, text)
        await client.save(document)
        await client.until("$/progress", kind="begin")
    project.open("gate")
    assert {await client.tested(), await client.tested()} == {"", "2 mutants: 2 survived"}


@pytest.mark.parametrize("on_disk", ["before", "after"])
async def test_a_save_is_tested_whenever_it_reaches_the_disk(
    client: LspClient, project: ScriptedProject, on_disk: str
) -> None:
    """The client saves before the server has read the file that was opened, or opens it with unsaved text of before."""
    project.script(SURVIVES)
    old, new = "a = 0\nb = 1\n", "a = 1\nb = 1\n"
    project.write("a.py", new if on_disk == "before" else old)
    await client.begin(uri(project, ""))
    document = uri(project, "a.py")
    await client.open(document, old if on_disk == "before" else new)
    project.write("a.py", new)
    await client.change(document, new)
    await client.save(document)
    assert await client.tested() == "1 mutant: 1 survived"
    await client.save(document)  # nothing is left to be tested
    await client.execute("msp-bridge.test", uri=document)
    assert await client.tested() == "2 mutants: 2 survived"


@pytest.mark.parametrize("during", [False, True], ids=["after a run", "during a run"])
async def test_a_save_brings_back_what_an_edit_lost_that_was_undone(
    client: LspClient, project: ScriptedProject, *, during: bool
) -> None:
    project.script({**SURVIVES, "after": "gate"})
    text, edited = "a = 1\nb = 1\n", "a = 1  # new\nb = 1\n"
    document = await opened(client, project, text)
    await client.execute("msp-bridge.test", uri=document)
    await project.logged("waiting for gate")
    if during:
        await client.change(document, edited)
    project.open("gate")
    assert await client.tested() == "2 mutants: 2 survived"
    if not during:
        await client.change(document, edited)
    await client.change(document, text)
    client.heard.clear()
    await client.save(document)
    assert await client.tested() == "1 mutant: 1 survived"
    while [found[0] for found in await client.diagnostics()] != [0, 1]:
        pass
    await client.save(document)  # all is known: only what comes next is tested
    await client.execute("msp-bridge.test", uri=document)
    assert await client.tested() == "2 mutants: 2 survived"


async def test_diagnostics_name_the_version_of_the_text(client: LspClient, project: ScriptedProject) -> None:
    project.script(SURVIVES)
    capabilities = CAPABILITIES | {"textDocument": {"publishDiagnostics": {"versionSupport": True}}}
    document = await opened(client, project, "a = 1\n", capabilities=capabilities)
    project.write("b.py", "b = 1\n")
    await client.execute("msp-bridge.testProject", uri=document)
    published = [await client.until("textDocument/publishDiagnostics") for _ in range(2)]
    assert {each["uri"]: each.get("version") for each in published} == {document: 1, uri(project, "b.py"): None}
    await client.change(document, "# new\na = 1\n")
    assert (await client.until("textDocument/publishDiagnostics"))["version"] == 2


async def test_after_a_restart_a_file_that_is_opened_shows_the_verdicts_that_hold(project: ScriptedProject) -> None:
    project.script(SURVIVES, surroundings={"tool": "1.0"})
    text = "a = 1\n"
    async with memory_of(project, Lsp, incremental=True) as stream:
        client = LspClient(stream)
        document = await opened(client, project, text)
        await client.execute("msp-bridge.test", uri=document)
        assert await client.tested() == "1 mutant: 1 survived"
    for holds in (True, False):
        async with memory_of(project, Lsp, incremental=True) as stream:
            client = LspClient(stream)
            await opened(client, project, text)
            await until(lambda: all(task.get_name() != "recall of a.py" for task in asyncio.all_tasks()))
            title = "1 mutant: 1 survived · test" if holds else "test the mutants"
            assert (await client.lenses(document))[0] == (0, title)
            if holds:
                assert await client.diagnostics() == [(0, 4, WARNING, 'Survived: "1" -> "2"')]
            assert all("publish" not in message["method"] for message in client.heard)
        project.write("test_a.py", "# the mutant may be noticed now\n")
    assert project.log.count("testing 1") == 1


async def test_a_change_of_tests_outdates_what_is_shown_until_it_is_tested_again(
    client: LspClient, project: ScriptedProject
) -> None:
    project.script(SURVIVES)
    document, tests = await opened(client, project, "a = 1\n"), uri(project, "test_a.txt")
    project.write("test_a.txt", "old")
    await client.execute("msp-bridge.test", uri=document)
    await client.tested()
    plain = (0, 4, WARNING, 'Survived: "1" -> "2"')
    assert await client.diagnostics() == [plain]
    await client.open(tests, "old")
    for text in ("new", "old", "newer"):
        await client.change(tests, text)
        project.write("test_a.txt", text)
        await client.save(tests)
        message = plain[3] if text == "old" else f"{plain[3]}; outdated: test_a.txt has changed since"
        assert await client.diagnostics() == [(*plain[:3], message)]
        ((_, title),) = await client.lenses(document)
        for shown in (title, await client.hover(document, 0, 4)):
            assert ("outdated" in shown) == (text != "old")
    await client.execute("msp-bridge.test", uri=document)
    assert await client.diagnostics() == [plain]


async def test_the_button_and_a_cancel_end_the_tests(client: LspClient, project: ScriptedProject) -> None:
    project.script({**SURVIVES, "after": "never"}, tool="hang")
    document = await opened(client, project, "a = 1\n")
    await client.execute("msp-bridge.test", uri=document)
    token = (await client.until("window/workDoneProgress/create"))["token"]
    await project.started("hang")
    await client.notify("window/workDoneProgress/cancel", {"token": token})
    await client.until("$/progress", kind="end")
    assert project.alive() == []
    client.heard.clear()
    params = {"command": "msp-bridge.test", "arguments": [{"uri": document}], "workDoneToken": "mine"}
    id = await client.ask("workspace/executeCommand", params)
    assert (await client.until("$/progress", kind="begin"))["token"] == "mine"
    await client.cancelled(id)
    assert (await client.until("$/progress", kind="end"))["token"] == "mine"
    assert project.alive() == []
    id = await client.ask("msp-bridge/test", {"uris": [document]})
    await project.started("hang")
    await client.cancelled(id)
    assert project.alive() == []


async def test_code_actions_test_show_and_say_what_changed(client: LspClient, project: ScriptedProject) -> None:
    project.script(SURVIVES)
    document = await opened(client, project, "def f():\n    return 1\n")
    actions = await client.actions(document, 1)
    assert list(actions) == [
        "Test the mutants of this line",
        "Test the mutants of f",
        "Test the mutants of this file",
        "Test the mutants of what changed since HEAD",
    ]
    await client.request("workspace/executeCommand", actions["Test the mutants of this line"]["command"])
    assert await client.tested() == "1 mutant: 1 survived"
    titles, fixes = zip(*(await client.actions(document, 1, only=["quickfix"])).items(), strict=True)
    assert titles == tuple(f'{verb} "1" -> "2"' for verb in ("Show", "Accept", "Ignore"))
    published = await client.until("textDocument/publishDiagnostics")
    assert [action["diagnostics"] for action in fixes] == [published["diagnostics"]] * 3
    diff = await client.request("workspace/executeCommand", fixes[0]["command"])
    assert "-    return 1\n+    return 2\n" in diff
    code, message = await client.refused("workspace/executeCommand", fixes[2]["command"])
    assert (code, "no comment by which scripted ignores a mutant" in message) == (-32803, True)


async def test_an_accepted_survivor_is_a_hint_with_the_reason(client: LspClient, project: ScriptedProject) -> None:
    project.script(SURVIVES)
    document = await opened(client, project, "a = 1\n")
    await client.execute("msp-bridge.test", uri=document)
    assert [found[2] for found in await client.diagnostics()] == [WARNING]
    actions = await client.actions(document, 0)
    await client.request("workspace/executeCommand", actions['Accept "1" -> "2"']["command"])
    asked = await client.until("window/showMessageRequest")
    assert "not worth a test" in [action["title"] for action in asked["actions"]]
    hint = (0, 4, HINT, 'Ignored: "1" -> "2"; accepted: not worth a test')
    assert await client.diagnostics() == [hint]
    assert 'reason = "not worth a test"' in (project.root / "mutants-accepted.toml").read_text()
    await client.execute("msp-bridge.test", uri=document)  # as a new test finds it
    assert await client.tested() == "1 mutant: 1 survived"
    assert await client.tested() == "1 mutant: 1 ignored"


async def test_a_client_that_lists_mutants_gets_all_of_them_and_every_result(
    client: LspClient, project: ScriptedProject
) -> None:
    project.script(SURVIVES, {"mutator": "plus", "find": "+", "replacement": "-", "details": {"killed_by": ["t"]}})
    text = "a = 1 + 0\n"
    document = await opened(client, project, text, initializationOptions={"results": True})
    project.write("sub/b.py", "b = 1\n")
    listed = (await client.request("msp-bridge/mutants", {}))["files"]
    assert [(file["uri"], file["project"], len(file["mutants"])) for file in listed] == [
        (document, "scripted", 2),
        (uri(project, "sub/b.py"), "scripted", 1),
    ]
    one, plus = listed[0]["mutants"]
    place = {"start": {"line": 0, "character": 4}, "end": {"line": 0, "character": 5}}
    assert one == {"id": one["id"], "range": place, "mutator": "digit", "original": "1", "replacement": "2"}
    assert await client.request("msp-bridge/test", {"mutants": [{**one, "uri": document}]}) is None
    survived = one | {"status": "Survived", "before": "a = 1 + 0", "after": "a = 2 + 0"}
    assert (await client.until("msp-bridge/results"))["files"] == [{**listed[0], "mutants": [survived]}]
    assert [found[3] for found in await client.diagnostics()] == ['Survived: "1" -> "2"']
    for uris, count in (([document], 2), ([uri(project, "sub")], 1), (None, 3)):
        await client.request("msp-bridge/test", {"uris": uris})
        counted = 0
        while counted < count:
            counted += sum(len(file["mutants"]) for file in (await client.until("msp-bridge/results"))["files"])
        assert counted == count
    killed = plus | {"status": "Killed", "killedBy": ["t"]}
    (listed_again,) = (await client.request("msp-bridge/mutants", {"uri": document}))["files"]
    assert listed_again["mutants"] == [survived, killed]
    await client.change(document, "# unsaved\n" + text)
    (unsaved,) = (await client.request("msp-bridge/mutants", {"uri": document}))["files"]
    assert unsaved["mutants"] == [one, plus]
    with pytest.raises(Refused, match="in no folder that is open here"):
        await client.request("msp-bridge/mutants", {"uri": "file:///elsewhere.py"})


async def test_only_a_client_that_asks_for_results_gets_them(client: LspClient, project: ScriptedProject) -> None:
    project.script(SURVIVES)
    document = await opened(client, project, "a = 1\n")
    await client.request("msp-bridge/test", {"uris": [document]})
    assert await client.tested() == "1 mutant: 1 survived"
    assert all(not message["method"].startswith("msp-bridge/") for message in client.heard)


async def test_a_client_that_pulls_is_not_pushed_to(client: LspClient, project: ScriptedProject) -> None:
    project.script(SURVIVES)
    pulls = {"workspace": {"diagnostics": {"refreshSupport": True}}, "textDocument": {"diagnostic": {}}}
    document = await opened(client, project, "a = 1\n", capabilities=CAPABILITIES | pulls)
    project.write("b.py", "b = 1\n")
    await client.execute("msp-bridge.testProject", uri=document)
    await client.until("workspace/diagnostic/refresh")
    pulled = await client.request("textDocument/diagnostic", {"textDocument": {"uri": document}})
    assert (pulled["kind"], len(pulled["items"])) == ("full", 1)
    assert (await client.until("textDocument/publishDiagnostics"))["uri"] == uri(project, "b.py")
    reports = {report["uri"]: report for report in (await client.request("workspace/diagnostic", {}))["items"]}
    assert reports.keys() == {document, uri(project, "b.py")}
    assert (reports[document]["version"], reports[document]["items"]) == (1, pulled["items"])
    assert all(message["params"]["uri"] != document for message in client.heard if "publish" in message["method"])


async def test_what_is_wrong_is_said(client: LspClient, project: ScriptedProject) -> None:
    document = await opened(client, project, "a = 1\n")
    project.script(testing={"raises": ["ToolError", "the tool is broken"]})
    await client.execute("msp-bridge.test", uri=document)
    said = await client.until("window/showMessage")
    assert (said["type"], said["message"]) == (1, "msp-bridge: the tool is broken")
    with pytest.raises(Refused, match="no folder") as refused:
        await client.execute("msp-bridge.test", uri="untitled:1")
    assert refused.value.code == -32803


async def test_too_many_folders_are_an_error(project: ScriptedProject) -> None:
    folders = []
    for number in range(MAX_FOLDERS + 5):
        (project.root / str(number)).mkdir()
        folders.append({"uri": uri(project, str(number)), "name": "x"})
    async with over_memory(project) as client:
        await client.begin(uri(project, ""))
        await client.notify("workspace/didChangeWorkspaceFolders", {"event": {"added": folders, "removed": []}})
        said = await client.until("window/showMessage")
        assert said["message"] == "msp-bridge: more than 100 folders can't be open: close some of them"


async def test_a_folder_elsewhere_is_only_for_the_client_that_started_the_server(
    project: ScriptedProject, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "scripted.json").write_text('{"mutations": [{"mutator": "m", "find": "1", "replacement": "2"}]}')
    (other / "a.py").write_text("a = 1\n")
    async with over_memory(project) as client:  # as over a socket
        with pytest.raises(Refused, match="lies outside of"):
            await client.begin(other.as_uri())
    async with on_stdio(project, *OPTIONS) as (plain, server):
        client = LspClient(plain.wire)
        await client.begin(None, workspaceFolders=[{"uri": other.as_uri(), "name": "other"}])
        await client.execute("msp-bridge.test", uri=(other / "a.py").as_uri())
        assert await client.tested() == "1 mutant: 1 killed"
        await client.notify(
            "workspace/didChangeWorkspaceFolders",
            {
                "event": {
                    "added": [{"uri": uri(project, ""), "name": "p"}],
                    "removed": [{"uri": other.as_uri(), "name": "other"}],
                }
            },
        )
        with pytest.raises(Refused, match="no folder"):
            await client.execute("msp-bridge.test", uri=(other / "a.py").as_uri())
        await client.wire.aclose()
        assert await server.exited() == 0, server.said


async def test_a_folder_that_is_closed_loses_its_diagnostics_and_its_tools(project: ScriptedProject) -> None:
    project.script(SURVIVES)
    inner = project.root / "inner"
    project.write("inner/scripted.json", (project.root / "scripted.json").read_text())
    project.write("inner/a.py", "a = 1\n")
    ours, theirs = MemoryStream.pair()
    async with opened_workspaces(project) as workspaces:
        serving = asyncio.create_task(serve_client(ours, workspaces, Lsp))
        client = LspClient(theirs)
        await client.begin(None, workspaceFolders=[{"uri": inner.as_uri(), "name": "inner"}])
        await client.execute("msp-bridge.test", uri=(inner / "a.py").as_uri())
        await client.tested()
        kept = workspaces.acquire(inner)
        assert kept._clients == 2
        client.heard.clear()
        folders = {"added": [], "removed": [{"uri": inner.as_uri(), "name": "inner"}]}
        await client.notify("workspace/didChangeWorkspaceFolders", {"event": folders})
        assert await client.diagnostics() == []
        await client.request("shutdown")
        assert kept._clients == 1
        await theirs.vanish()
        await serving


async def test_a_progress_that_the_client_does_not_answer_is_given_up(
    project: ScriptedProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Silent(LspClient):
        async def send(self, *messages: Any) -> None:
            await super().send(*(message for message in messages if "result" not in message))

    monkeypatch.setattr(editor, "ANSWER_S", 0.01)
    project.script(SURVIVES)
    async with memory_of(project, Lsp) as stream:
        client = Silent(stream)
        document = await opened(client, project, "a = 1\n")
        await client.execute("msp-bridge.test", uri=document)
        assert len(await client.diagnostics()) == 1
        await client.until("workspace/codeLens/refresh")
        waiting = {"progress", "workspace/codeLens/refresh"}
        await until(lambda: waiting.isdisjoint(task.get_name() for task in asyncio.all_tasks()))


async def test_tests_that_fail_without_a_mutant_are_said_once_or_in_each_run_that_leaves_them_out(
    client: LspClient, project: ScriptedProject
) -> None:
    document = await opened(client, project, "a = 0\n")
    project.script(testing={"raises": ["BaselineError", "the tests fail without any mutant", "make them pass first"]})
    for number in (1, 2):
        await client.change(document, f"a = 1{number}\n")
        project.write("a.py", f"a = 1{number}\n")
        await client.save(document)
        await client.until("$/progress", kind="end")
    await client.execute("msp-bridge.test", uri=document)  # who asks gets an answer, each time
    await client.until("$/progress", kind="end")
    said = [await client.until("window/showMessage") for _ in range(2)]
    assert {text["message"] for text in said} == {"msp-bridge: the tests fail without any mutant: make them pass first"}
    project.script(SURVIVES, testing={"failing": {"test_x": "assert 1 == 2"}})
    for _ in range(2):
        await client.execute("msp-bridge.test", uri=document)
        await client.until("$/progress", kind="end")
    assert await client.request("shutdown") is None
    messages = [each["params"]["message"] for each in client.heard if each["method"] == "window/showMessage"]
    assert messages == ["msp-bridge: left out, failing without any mutant: test_x: make them pass"] * 2


async def test_several_clients_have_texts_of_their_own(project: ScriptedProject) -> None:
    project.script(SURVIVES)
    async with launched(project.root, "serve", "socket", "--port", "0", *OPTIONS, forked=True) as server:
        clients = [LspClient((await server.connect()).wire) for _ in range(2)]
        for client in clients:
            document = await opened(client, project, "a = 1\n")
        await clients[0].change(document, "# a\na = 1\n")
        for client in clients:
            await client.execute("msp-bridge.test", uri=document)
        assert [[found[0] for found in await client.diagnostics()] for client in clients] == [[1], [0]]
        for client in clients:
            await client.request("shutdown")
            await client.notify("exit")
            assert await client.ended() == b""
        await server.terminated()


def test_the_types_are_no_dependency_of_users() -> None:
    """They take half a second to import."""
    imported = re.compile(r"^ *(import|from) +lsprotocol\b", re.MULTILINE)
    assert imported.search("def f() -> None:\n    from lsprotocol import types\n")
    for file in Path(msp_bridge.__file__).parent.rglob("*.py"):
        assert not imported.search(file.read_text("utf-8")), file


async def test_a_real_mutmut_tests_a_function_and_ignores_a_mutant_by_an_edit(tmp_path: Path) -> None:
    files = {
        "pyproject.toml": '[tool.mutmut]\nsource_paths = ["calc"]\n',
        "calc/__init__.py": "",
        "calc/core.py": "def add(a, b):\n    return a + b\n",
        "tests/test_core.py": "from calc.core import add\n\n\ndef test_add():\n    add(1, 2)\n",
    }
    root = tmp_path / "project"
    written(root, files)
    options = ("--dialect", "lsp", "--adapter", "mutmut", "--python", sys.executable)
    async with launched(root, "serve", "stdio", *options) as server:
        client = LspClient(server.stdio())
        await client.begin(root.as_uri())
        document = (root / "calc/core.py").as_uri()
        await client.open(document, files["calc/core.py"])
        await client.execute("msp-bridge.test", uri=document, range=lines(1, 2))
        assert await client.tested() == "1 mutant: 1 survived"
        assert await client.diagnostics() == [(1, 13, WARNING, 'Survived: "+" -> "-"; 1 test ran through it')]
        actions = await client.actions(document, 1, only=["quickfix"])
        await client.request("workspace/executeCommand", actions['Ignore "+" -> "-"']["command"])
        (change,) = (await client.until("workspace/applyEdit"))["edit"]["changes"][document]
        assert "pragma: no mutate" in change["newText"]
        assert (root / "calc/core.py").read_text() == files["calc/core.py"]
        await client.request("shutdown")
        await client.notify("exit")
        assert await server.exited() == 0, server.said
