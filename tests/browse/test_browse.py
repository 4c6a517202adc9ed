"""`msp-bridge browse` by its keys, on a terminal of 80 columns and 24 lines. No tool is there that could be started."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from support.browsing import browsing, pressed, shown
from support.kept import KeptProject

from msp_bridge.browse.listing import Filter
from msp_bridge.browse.loading import ResultsOnDisk
from msp_bridge.errors import ConfigurationError
from msp_bridge.model import Status
from msp_bridge.reports.accepted import AcceptedSurvivors

KILLED, SURVIVED, NO_COVERAGE = Status.KILLED, Status.SURVIVED, Status.NO_COVERAGE


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> KeptProject:
    monkeypatch.setenv("MSP_BRIDGE_CACHE", str(tmp_path / "cache"))
    made = KeptProject(tmp_path / "project")
    made.write("a.py", "limit = 3\n")
    made.write(
        "b.py", "def f(x):\n    return x + 1\n\n\ndef g(x):\n    return x * 2\n\n\ndef h(x):\n    return x % 7\n"
    )
    plus, times = made.mutant("b.py", "+", "-"), made.mutant("b.py", "*", "/", "times")
    made.keep({made.mutant("a.py", "3", "4", "number"): KILLED}, killed_by=("tests/t.py::test_a",), whole=False)
    made.keep({plus: SURVIVED, times: SURVIVED}, covered_by=("tests/t.py::test_f",), duration=12.0, whole=False)
    made.keep({made.mutant("b.py", "%", "*"): NO_COVERAGE}, whole=False, status_reason="\x1b[2Jno test")
    monkeypatch.chdir(made.root)
    return made


async def test_what_the_tests_miss_is_shown_first_with_its_change_and_its_tests(project: KeptProject) -> None:
    async with browsing(project.root) as pilot:
        found = await shown(
            pilot,
            "q Quit",
            "project  25.0 %  missed: 3 of 4\n",
            "0.0 %  3 of 3 missed       b.py\n",
            "Survived      2:14     plus  -\n",
            "  -  2      return x + 1\n  +         return x - 1\n",
            "covered by  tests/t.py::test_f\n  time  12 ms\n",
        )
        assert "a.py" not in found
        assert found.splitlines()[-1].startswith("t Test"), "every key fits into 80 columns"
        await pressed(pilot, "n", "n")
        await shown(pilot, "reason\n  \\x1b[2Jno test\n")


def test_what_changes_while_the_results_are_read_is_found_by_the_next_look(
    project: KeptProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = ResultsOnDisk(project.root)
    survivor = next(last for last in disk.load() if last.result.status is SURVIVED)
    read = AcceptedSurvivors.of

    def read_before_it_changes(root: Path) -> AcceptedSurvivors:
        monkeypatch.setattr(AcceptedSurvivors, "of", read)
        accepted = read(root)
        disk.accept(survivor, "no use")
        return accepted

    monkeypatch.setattr(AcceptedSurvivors, "of", read_before_it_changes)
    disk.load()
    assert disk.changed()
    assert [last.result.status for last in disk.load()].count(Status.IGNORED) == 1
    assert not disk.changed()


async def test_any_status_can_be_chosen_and_files_are_in_the_order_of_what_is_missed(project: KeptProject) -> None:
    async with browsing(project.root) as pilot:
        await pressed(pilot, "s")
        await shown(pilot, "all            4")
        await pressed(pilot, "down", "enter")
        found = await shown(pilot, "all: 4 of 4", "b.py", "a.py")
        assert found.index("b.py") < found.index("a.py")
        await pressed(pilot, "s", "down", "enter")
        await shown(pilot, "Killed: 1 of 4")
        await pressed(pilot, "n")
        await shown(pilot, "killed by  tests/t.py::test_a\n")


@pytest.mark.parametrize("text", ["TIMES", "x / 2"])
async def test_a_search_shows_what_has_the_text_anywhere(project: KeptProject, text: str) -> None:
    async with browsing(project.root) as pilot:
        await pressed(pilot, "slash", *text, "enter")
        await shown(pilot, f"missed, with {text!r}: 1 of 4", "Survived      6:14     times  /", gone="2:14")
        await pressed(pilot, "escape")
        await shown(pilot, "missed: 3 of 4", gone=f"\n{text}")


async def test_a_search_finds_the_mutants_of_a_test_or_says_that_there_are_none(project: KeptProject) -> None:
    async with browsing(project.root, Filter(None)) as pilot:
        await pressed(pilot, "slash", *"test_a")
        await shown(pilot, "all, with 'test_a': 1 of 4")
        await pressed(pilot, "x", "enter", "v", "y", "right", "n")
        await shown(pilot, "No mutant is shown.")


async def test_the_whole_source_opens_at_the_change(project: KeptProject) -> None:
    project.write("b.py", "# new\n" + (project.root / "b.py").read_text())
    async with browsing(project.root) as pilot:
        await pressed(pilot, "n", "v")
        await shown(
            pilot,
            "Survived  b.py:7  times\n",
            "   3      return x + 1\n",
            "-  7      return x * 2\n+         return x / 2\n",
            "Esc Close",
        )
        await pressed(pilot, "escape")
        await shown(pilot, "missed: 3 of 4")


async def test_a_result_whose_lines_have_changed_is_marked_stale(project: KeptProject) -> None:
    project.write("b.py", (project.root / "b.py").read_text().replace("x + 1", "x + 2"))
    async with browsing(project.root) as pilot:
        await shown(
            pilot,
            "Survived      stale  2:14",
            "stale: its lines have changed since; this is the text before\n",
            "  -  2      return x + 1\n",
        )


async def test_files_are_closed_and_opened(project: KeptProject) -> None:
    async with browsing(project.root, Filter(None)) as pilot:
        await pressed(pilot, "left")
        await shown(pilot, "b.py\n  3 mutants: 2 Survived, 1 NoCoverage\n", gone="2:14")
        await pressed(pilot, "right")
        await shown(pilot, "2:14")
        await pressed(pilot, "left", "G", "n")
        await shown(pilot, "Killed  a.py:1:9", gone="2:14")
        await pressed(pilot, "p")  # the last one of the file before, which is closed
        await shown(pilot, "NoCoverage  b.py:10:14")


async def test_the_id_is_copied_and_the_keys_are_explained(project: KeptProject) -> None:
    async with browsing(project.root) as pilot:
        await pressed(pilot, "y")
        assert pilot.app.clipboard == project.mutant("b.py", "+", "-").id
        await pressed(pilot, "?")
        await shown(pilot, "copy the id of the mutant")
        await pressed(pilot, "escape", "q")
    assert pilot.app.return_code == 0


async def test_a_wide_terminal_has_the_mutant_beside_the_tree(project: KeptProject) -> None:
    async with browsing(project.root, size=(160, 30)) as pilot:
        found = await shown(pilot, f"Survived  b.py:2:14  plus  {project.mutant('b.py', '+', '-').id}")
        assert "3 of 3 missed       b.py" in found.splitlines()[1]


def test_without_a_run_or_a_terminal_the_error_says_what_to_do(project: KeptProject, tmp_path: Path) -> None:
    error = project.call("browse").exception
    assert isinstance(error, ConfigurationError)
    assert error.remedy == "`msp-bridge results` prints the last results anywhere"
    error = KeptProject(tmp_path).call("browse").exception
    assert isinstance(error, ConfigurationError)
    assert error.remedy == "`msp-bridge run` tests it"


def test_without_textual_the_error_has_the_command_that_installs_it() -> None:
    code = "import sys; sys.modules['textual'] = None; from msp_bridge.cli import run_command; sys.exit(run_command())"
    done = subprocess.run([sys.executable, "-c", code, "browse"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert "`browse` needs textual (" in done.stderr
    assert re.search(r"install .*'msp-bridge\[browse\]'", done.stderr)  # by uv or pip
