"""Work on survivors in `msp-bridge browse`: tested again, edited, accepted; with the scripted adapter."""

import asyncio
import io
import tomllib
from pathlib import Path

import pytest
from rich.console import Console
from support.browsing import browsing, pressed, shown
from support.command_line import GATED, SCRIPT, bridge, make_project, script

from msp_bridge.browse.editor import editor_command
from msp_bridge.browse.listing import Filter
from msp_bridge.cli import terminal_run
from msp_bridge.cli.options import Options
from msp_bridge.cli.short_runs import ShortRun
from msp_bridge.cli.terminal_run import RunSelection, TerminalRun
from msp_bridge.concurrency import cancel_all
from msp_bridge.errors import ConfigurationError
from msp_bridge.last_results import kept_reports
from msp_bridge.workspace.targets import select

KILLED = [mutation | {"status": "Killed"} for mutation in SCRIPT["mutations"]]
PLUS, FIRST, SECOND = "1:7      plus  -", "1:9      digit  2", "2:5      digit  2"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two survivors in a.py, a killed mutant there and one in b.py; all have been tested once."""
    monkeypatch.setenv("MSP_BRIDGE_CACHE", str(tmp_path / "cache"))
    root = make_project(tmp_path / "project")
    script(root)
    assert bridge(root, "run").returncode == 0
    return root


async def test_a_mutant_that_is_tested_again_keeps_its_row_and_all_others_their_results(project: Path) -> None:
    script(project, mutations=KILLED)
    async with browsing(project) as pilot:
        await shown(pilot, "50.0 %  missed: 2 of 4", f"├ Survived      {FIRST}\n└ Survived      {SECOND}")
        await pressed(pilot, "t")
        await shown(pilot, "75.0 %  missed: 2 of 4", f"├ Killed        {FIRST}\n└ Survived      {SECOND}", "t Test")
        await pressed(pilot, "n", "t")
        await shown(pilot, "100.0 %  missed: 2 of 4", f"├ Killed        {FIRST}\n└ Killed        {SECOND}", "t Test")
        await pressed(pilot, "s", "enter")  # chosen anew, what is killed is missed no more
        await shown(pilot, "missed: 0 of 4")
    done = bridge(project, "results")
    assert "mutation score  100.0 %" in done.stdout
    assert len(kept_reports(project).all()) == 2  # what one program tests is one run


async def test_results_arrive_while_a_test_runs_which_can_be_ended(project: Path, tmp_path: Path) -> None:
    script(project, mutations=[GATED[0] | {"status": "Survived"}, GATED[1]], events=str(tmp_path))
    async with browsing(project, Filter(None)) as pilot:
        await pressed(pilot, "f")
        await shown(pilot, "testing: 1 of 3", f"Survived      {PLUS}", "x Stop", gone="t Test")
        await pressed(pilot, "?", "escape", "n", "x")
        await shown(pilot, "t Test", f"Survived      {PLUS}", gone="testing")
        await pressed(pilot, "T")
        await shown(pilot, "testing: 1 of 4")
    assert "Survived  a.py:1:7" in bridge(project, "results").stdout


async def test_a_file_that_was_edited_is_tested_as_it_is(project: Path) -> None:
    async with browsing(project) as pilot:
        await shown(pilot, f"Survived      {SECOND}")
        (project / "a.py").write_text("# new\nx = y + 1\nz = 11\n")
        await shown(pilot, "Survived      stale  2:5", "Survived      2:9")
        await pressed(pilot, "G", "p", "t")
        await shown(pilot, "its lines have changed since")
        await pressed(pilot, "f")
        await shown(pilot, "Survived      3:5", "Survived      3:6", "missed: 3 of 5", gone="stale")


async def run(project: Path) -> None:
    options = Options.of({"root": str(project), "adapter": "scripted"})
    chosen = RunSelection(select(project, ()), None, None, "", ShortRun())
    await TerminalRun(options, chosen, live=False).run(Console(file=io.StringIO()))


async def test_a_run_in_another_terminal_is_shown_while_it_goes_on(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script(project, mutations=[GATED[0] | {"status": "Survived"}, GATED[1]], events=str(tmp_path))
    monkeypatch.setattr(terminal_run, "KEEP_S", 0.01)
    async with browsing(project) as pilot:
        await shown(pilot, "50.0 %")
        running = asyncio.create_task(run(project))
        await shown(pilot, "25.0 %", f"Survived      {PLUS}")
        await cancel_all([running])
        await shown(pilot, "25.0 %", f"Survived      {PLUS}")
    assert len(kept_reports(project).all()) == 2


async def test_why_nothing_could_be_tested_is_shown(project: Path) -> None:
    script(project, testing={"failing": {"test_red": "\u001b[2Jred"}, "raises": ["BaselineError", "tests fail", "fix"]})
    async with browsing(project) as pilot:
        await pressed(pilot, "t")
        await shown(pilot, "tests fail: fix", "test_red", "\\x1b[2Jred")
        await pressed(pilot, "escape")
        await shown(pilot, f"Survived      {FIRST}", "t Test")


async def test_a_survivor_is_accepted_with_a_reason(project: Path) -> None:
    async with browsing(project) as pilot:
        await pressed(pilot, "a", "enter")
        await shown(pilot, "the reason is empty")
        await pressed(pilot, "a", *"no use", "enter")
        await shown(pilot, f"Ignored       {FIRST}", "accepted: no use", "66.7 %")
        await pressed(pilot, "a")
        await shown(pilot, "only a survivor can be accepted")
    [entry] = tomllib.loads((project / "mutants-accepted.toml").read_text())["accepted"]
    assert (entry["before"], entry["reason"]) == ("x = y + 1", "no use")


@pytest.mark.parametrize(
    ("editor", "arguments"),
    [
        ("vim -u NONE", ["-u", "NONE", "+7", "a.py"]),
        ("/usr/bin/code --wait", ["--wait", "--goto", "a.py:7"]),
        ("hx", ["a.py:7"]),
        ("pycharm", ["--line", "7", "a.py"]),
    ],
)
def test_each_editor_gets_the_line_in_its_own_way(editor: str, arguments: list[str]) -> None:
    assert editor_command(Path("a.py"), 7, {"EDITOR": editor})[1:] == arguments


def test_an_editor_that_is_no_command_is_an_error() -> None:
    for value in ("'vim", " "):
        with pytest.raises(ConfigurationError):
            editor_command(Path("a.py"), 7, {"EDITOR": value})
