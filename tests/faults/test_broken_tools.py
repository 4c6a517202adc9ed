"""Tools that are missing, old, broken, silent or talkative: one clear sentence, and the next request is served."""

import contextlib
import re
import shutil
from pathlib import Path

import pytest
from support.environments import environment, program, repair
from support.faulty_servers import served
from support.kits import COSMIC_RAY, PYTHON_KITS, STRYKER_JS, Kit

from msp_bridge.errors import ToolError
from msp_bridge.testing import RunningProcesses, TreeState
from msp_bridge.workspace.configuration import Configuration
from msp_bridge.workspace.selection import Selection
from msp_bridge.workspace.workspace import Workspace

each_kit = pytest.mark.parametrize("kit", PYTHON_KITS, ids=lambda kit: kit.adapter)
PACKAGE = {"mutmut": "mutmut", "cosmic-ray": "cosmic_ray"}
INSTALLED = {"mutmut": {"mutmut": "3.8.1", "pytest": "9.2"}, "cosmic-ray": {"cosmic_ray": "8.7.0"}}


@each_kit
async def test_a_missing_tool_is_named_with_its_remedy_and_found_later(kit: Kit, tmp_path: Path) -> None:
    root = kit.lay_out(tmp_path / "project")
    tree = TreeState.of(root)
    python = environment(tmp_path / "venv")
    async with served(kit, root, python=python) as there:
        for method in ("discover", "mutationTest"):
            refused = await there.refusal(method)
            assert re.search(rf"{kit.adapter}.*{python} -m pip install '{kit.adapter}>=", refused), refused
        repair(python)
        assert await there.statuses("steady") == {"steady": "Killed"}
    assert tree.differences(TreeState.of(root)) == []


@pytest.mark.parametrize(
    ("versions", "refused"),
    [
        ({"cosmic_ray": "8.3.5"}, r"cosmic-ray 8\.3\.5 is too old, 8\.7 or later is needed"),
        ({"cosmic_ray": "9.0"}, r"cosmic-ray 9\.0 is newer than this bridge supports"),
    ],
    ids=["old", "new"],
)
async def test_a_version_that_can_not_work_is_named_with_the_command_that_mends_it(
    versions: dict[str, str], refused: str, tmp_path: Path
) -> None:
    kit = COSMIC_RAY  # `test_mutmut_setup.py` has mutmut's versions
    root = kit.lay_out(tmp_path / "project")
    python = environment(tmp_path / "venv", **versions)
    repair(python)
    async with served(kit, root, python=python) as there:
        assert re.search(rf"{refused}.*{python} -m pip install", await there.refusal("discover"))
        remove(python, kit)
        assert await there.statuses("steady") == {"steady": "Killed"}


BROKEN = {
    "raises": ("raise ImportError('no such wheel')", "no such wheel"),
    "exits": ("raise SystemExit('it has expired')", "it has expired"),
    "dies": ("import os; os.kill(os.getpid(), 9)", "killed by SIGKILL"),
    "garbage": (
        "import os; os.write(1, b'\\xff\\x00{\"id\": 1}\\n[1]\\n7\\n'); os._exit(7)",
        "exit code 7",
    ),
    "hangs": ("import time; time.sleep(1000)", "did not start within 2 s|did not answer within 2 s"),
    "floods": (
        "import os\nwhile True: os.write(1, b'x' * 65536)",
        "a line of more than 1000000 bytes|did not (start|answer) within 2 s",
    ),
}


HANGING = ("hangs", "floods", "sleep 1000")


def hurry(kit: Kit, way: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Let a bridge in this process wait for a tool that never answers less long than it would for a user's."""
    monkeypatch.setenv("MSP_BRIDGE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("msp_bridge.processes.supervised.MAX_LINE", 1_000_000)
    for constant in kit.timeouts if way in HANGING else ():
        monkeypatch.setattr(constant, 2.0)


async def refused(kit: Kit, root: Path, python: Path | None = None) -> str:
    """With which sentence the discovery of everything ends; nothing runs any more then."""
    running = RunningProcesses()
    workspace = Workspace.open(root, Configuration(adapters=(kit.adapter,), python=python))
    async with contextlib.aclosing(workspace):
        async with contextlib.aclosing(workspace.discover(Selection())) as mutants:
            with pytest.raises(ToolError) as caught:
                await anext(mutants)
        assert await running.settled(0) == []
    return str(caught.value)


@each_kit
async def test_an_installation_that_is_broken_is_reported_with_its_own_words(
    kit: Kit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = kit.lay_out(tmp_path / "project")
    tree = TreeState.of(root)
    package = f"{PACKAGE[kit.adapter]}/__init__.py"
    python = environment(tmp_path / "venv", {package: "", "cosmic_ray/plugins.py": ""}, **INSTALLED[kit.adapter])
    repair(python)
    (file,) = python.parent.parent.glob(f"lib/python3*/site-packages/{package}")
    for way, (code, words) in BROKEN.items():
        with monkeypatch.context() as patched:
            hurry(kit, way, patched, tmp_path / way)
            file.write_text(code)
            sentence = await refused(kit, root, python)
        assert re.search(words, sentence), (way, sentence)
    assert tree.differences(TreeState.of(root)) == []


NO_INTERPRETER = ["exit 0", "echo no; exit 3", "sleep 1000", "exec yes", "kill -9 $$"]


@each_kit
async def test_an_interpreter_that_is_none_is_reported(
    kit: Kit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = kit.lay_out(tmp_path / "project")
    for number, script in enumerate(NO_INTERPRETER):
        with monkeypatch.context() as patched:
            hurry(kit, script, patched, tmp_path)
            python = program(tmp_path / f"bin{number}/python", script)
            sentence = await refused(kit, root, python)
        assert str(python) in sentence, script
        assert re.search("doesn't run as Python|can't be used by", sentence), script


async def test_a_node_that_is_none_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = STRYKER_JS.lay_out(tmp_path / "project")
    for number, script in enumerate(NO_INTERPRETER):
        with monkeypatch.context() as patched:
            hurry(STRYKER_JS, script, patched, tmp_path)
            node = program(tmp_path / f"bin{number}/node", script)
            (root / "msp-bridge.toml").write_text(f'[stryker-js]\nnode = "{node}"\n')
            sentence = await refused(STRYKER_JS, root)
        assert re.search(f"{node} (is no Node|doesn't answer): correct the setting `node`", sentence), script


@each_kit
async def test_an_interpreter_that_greets_everybody_on_stdout_disturbs_nothing(kit: Kit, tmp_path: Path) -> None:
    root = kit.lay_out(tmp_path / "project", "steady", "leave")
    greeting = 'import os; os.write(1, b\'welcome\\n{}\\n[]\\n{"id": 1, "version": 7}\\n7\')\n'
    python = environment(tmp_path / "venv", {"greeting.pth": greeting})
    repair(python)
    async with served(kit, root, python=python) as there:
        assert await there.statuses() == {"steady": "Killed", "leave": kit.status("leave")}


def remove(python: Path, kit: Kit) -> None:
    """What the environment has of its own of the tool; that of this process takes its place."""
    for found in python.parent.parent.glob(f"lib/python3*/site-packages/{PACKAGE[kit.adapter]}*"):
        shutil.rmtree(found)
