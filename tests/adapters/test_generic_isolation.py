"""What the runs of a generic tool have for themselves, and what happens where a tool or its tests can't do with that."""

import logging
import os
import sys
import tempfile
from pathlib import Path

import pytest
from support.adapters import discovered, results_of
from support.files import written
from support.generic_trees import Table, adapter_on

from msp_bridge.adapter import BaselineError, Status, ToolError

TOOL = """
import json, os, pathlib, sys, tempfile
report, root, seen = sys.argv[1:4]
mutant = {"id": "1", "mutatorName": "Word", "replacement": "", "status": "Pending",
          "location": {"start": {"line": 1, "column": 1}, "end": {"line": 1, "column": 4}}}
if len(sys.argv) > 4:
    exec(sys.argv[4])
text = pathlib.Path("a.txt").read_text()
files = {"a.txt": {"source": text, "mutants": [mutant]}}
pathlib.Path(report).write_text(json.dumps({"schemaVersion": "1", "files": files}))
"""


@pytest.fixture
def root(lasting: Path) -> Path:
    """Of a project that does not lie among temporary files, as the projects of users don't."""
    return written(lasting / "project", {".venv/bin/marker": "one\n", "a.txt": "one\n", "tool.py": TOOL})


def table(root: Path, script: str, **more: object) -> dict[str, Table]:
    """A tool that runs the script when it tests; `seen` there is the project's own path."""
    command = [sys.executable, "tool.py", "{report}", "{root}", str(root)]
    tool: Table = {"files": ["a.txt"], "discover": command, "test": [*command, script]}
    return {"tool": tool | more}


async def outcome(root: Path, tables: dict[str, Table]) -> tuple[Status, str]:
    """The status of the mutant, and what isolated the last run."""
    async with adapter_on(root, tables) as adapter:
        [result] = await results_of(adapter, await discovered(adapter))
        [*_, finding] = [finding async for finding in adapter.diagnose()]
    return result.status, finding.text


@pytest.mark.usefixtures("permitted")
@pytest.mark.parametrize("name", ["layers", "report"])
async def test_a_project_may_have_any_name(
    lasting: Path, root: Path, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Its copy has the same, and lies beside what the bridge needs for a run."""
    script = 'mutant["status"] = "Killed" if not pathlib.Path("report.json").exists() else "Survived"'
    status, _ = await outcome(root.rename(lasting / name), table(lasting / name, script))
    assert status is Status.KILLED
    assert "fails isolated" not in caplog.text


@pytest.mark.usefixtures("permitted")
async def test_a_tool_finds_its_copy_at_the_projects_path_and_leaves_nothing(root: Path) -> None:
    left = f"/tmp/msp-bridge-test-{os.getpid()}"
    script = f"""
        pathlib.Path(seen, "a.txt").write_text("two\\n")
        pathlib.Path(seen, ".venv/bin/marker").write_text("spoilt")
        pathlib.Path({left!r}).touch()
        same = root == seen == os.getcwd() and pathlib.Path("a.txt").read_text() == "two\\n"
        mutant["status"] = "Killed" if same else "Survived"
        pathlib.Path("a.txt").write_text("one\\n")
    """
    status, isolated = await outcome(root, table(root, "if True:" + script))
    assert status is Status.KILLED
    assert isolated == "isolated per run: the tree at its own path, temporary files, processes, queues"
    assert not os.path.exists(left)


async def test_where_nothing_is_permitted_a_run_has_a_copy_and_temporary_files(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MSP_BRIDGE_ISOLATION", "off")
    script = f"""
        name = tempfile.mkdtemp()
        own = os.path.dirname(name) != {tempfile.gettempdir()!r} and root == os.getcwd() != seen
        mutant["status"] = "Killed" if own else "Survived"
    """
    assert await outcome(root, table(root, "if True:" + script)) == (
        Status.KILLED,
        "isolated per run: a copy of the tree, TMPDIR",
    )


@pytest.mark.usefixtures("permitted")
async def test_a_tool_that_fails_only_when_isolated_has_fewer_parts_from_then_on(
    root: Path, caplog: pytest.LogCaptureFixture
) -> None:
    device = os.stat("/tmp").st_dev
    script = f"os.stat('/tmp').st_dev == {device} or sys.exit('a strange /tmp'); mutant['status'] = 'Killed'"
    with caplog.at_level(logging.WARNING, "msp_bridge.toolkit.isolation"):
        async with adapter_on(root, table(root, script)) as adapter:
            mutants = await discovered(adapter)
            for _ in range(2):
                assert [result.status for result in await results_of(adapter, mutants)] == [Status.KILLED]
            [*_, finding] = [finding async for finding in adapter.diagnose()]
    [record] = caplog.records
    assert "generic.tool fails isolated and passes otherwise, so it runs without ipc, pid, tmp" in record.getMessage()
    assert "a strange /tmp" in record.getMessage()
    assert finding.text == "isolated per run: the tree at its own path"


@pytest.mark.usefixtures("permitted")
@pytest.mark.parametrize("online", [False, True])
async def test_the_baseline_decides_whether_a_tool_has_a_network_of_its_own(
    root: Path, service: int, online: bool, caplog: pytest.LogCaptureFixture
) -> None:
    connect = f"import socket; socket.create_connection(('127.0.0.1', {service})).close()"
    baseline = [sys.executable, "-c", f"{connect if online else 'pass'}; assert open('a.txt').read() == 'one\\n'"]
    script = f"""
        import socket
        reached = not socket.socket().connect_ex(("127.0.0.1", {service}))
        mutant["status"] = "Killed" if reached else "Survived"
    """
    status, isolated = await outcome(root, table(root, "if True:" + script, baseline=baseline))
    assert status is (Status.KILLED if online else Status.SURVIVED)
    assert ("the network" in isolated) is not online
    assert ("generic.tool fails isolated and passes otherwise, so it runs without net" in caplog.text) is online


async def test_tests_that_fail_without_a_mutant_are_an_error(root: Path) -> None:
    baseline = ["sh", "-c", "echo red >&2; exit 1"]
    async with adapter_on(root, table(root, "pass", baseline=baseline)) as adapter:
        mutants = await discovered(adapter)
        with pytest.raises(BaselineError, match=r"generic\.tool: the tests fail without any mutant: red: fix them"):
            await results_of(adapter, mutants)


async def test_the_baseline_is_run_once_for_each_state_of_the_project(root: Path) -> None:
    runs = root.parent / "runs"
    baseline = ["sh", "-c", f"grep -q one a.txt && echo run >> {runs}"]
    async with adapter_on(root, table(root, "pass", baseline=baseline)) as adapter:
        mutants = await discovered(adapter)
        for _ in range(2):
            await results_of(adapter, mutants)
    assert runs.read_text() == "run\n"


async def test_a_baseline_that_passes_when_each_file_is_broken_tests_nothing(root: Path) -> None:
    async with adapter_on(root, table(root, "pass", baseline=["true"])) as adapter:
        mutants = await discovered(adapter)
        with pytest.raises(ToolError, match=r"although every file of `files` is broken there.*`baseline` and `files`"):
            await results_of(adapter, mutants)


async def test_a_baseline_that_imports_from_the_users_tree_is_refused(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Isolated, the copy stands there."""
    monkeypatch.setenv("MSP_BRIDGE_ISOLATION", "off")
    (root / "m.py").write_text("x = 1\n")
    (root / "test_m.py").write_text(
        f"import sys\nsys.path.insert(0, {str(root)!r})\nimport m\ndef test(): assert m.x\n"
    )
    baseline = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_m.py"]
    tables = table(root, "pass", baseline=baseline, files=["a.txt", "m.py"])
    async with adapter_on(root, tables) as adapter:
        mutants = await discovered(adapter)
        with pytest.raises(ToolError, match=r"the tests import .*/m\.py from your tree"):
            await results_of(adapter, mutants)
