"""Phases: what is shown, and what is logged, while somebody waits for the first result."""

import io
import logging
import re
from pathlib import Path

import pytest
from rich.console import Console
from support.mutmut_trial import Trial

from msp_bridge import phases
from msp_bridge.model import Location, Mutant, Position, Result, Status
from msp_bridge.notices import PhaseReport
from msp_bridge.phases import BASELINE, COLLECTING, COPYING, Phase, heard_by, report_phase
from msp_bridge.python_engine.programs.channel import RunProgress, TestCount
from msp_bridge.reports.terminal import PhaseLines, TerminalReport, discovery_status
from msp_bridge.toolkit import Sandbox

MUTANT = Mutant("a.py", "number: 1 to 2", Location(Position(1, 1), Position(1, 2)), "2")


class Terminal(io.StringIO):
    """As far as rich can see."""

    def isatty(self) -> bool:
        return True

    @property
    def shown(self) -> str:
        return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", self.getvalue())


def console(terminal: Terminal) -> Console:
    return Console(file=terminal, force_terminal=True, width=120, color_system=None)


def test_each_phase_has_a_bar_of_its_own_until_mutants_are_tested(tmp_path: Path) -> None:
    terminal = Terminal()
    report = TerminalReport(tmp_path, console(terminal), 7)
    with report, heard_by(report.show_phase):
        for report_of in ((COPYING, 3, 9), (BASELINE, 0, 20), (BASELINE, 5, 20)):
            report_phase(*report_of, begins=False)
            report._progress.refresh()
        report.show(Result(MUTANT, Status.IGNORED))  # known without any test
        report._progress.refresh()
        report_phase(BASELINE, 6, 20)
        report._progress.refresh()
        report.show(Result(MUTANT, Status.KILLED))
        report_phase(COPYING, 1, 9)  # for the second process
        report._progress.refresh()
    bars = [re.sub(r"[^\w/ ]+", "", line) for line in re.split(r"[\r\n]+", terminal.shown)]
    found = [match[0] for bar in bars if (match := re.match(r"([a-z ]+?)  +\d+/\d+", re.sub(r"(\d+/)", r"  \1", bar)))]
    stages = [re.sub(r"\s+", " ", text) for text in dict.fromkeys(found)]
    assert [stage for stage in stages if not stage.startswith("testing 0")] == [
        "copying the project 3/9",
        f"{BASELINE} 0/20",
        f"{BASELINE} 5/20",
        "testing 1/7",
        f"{BASELINE} 6/20",
        "testing 2/7",
    ]


def test_a_phase_that_is_soon_over_is_not_reported(caplog: pytest.LogCaptureFixture, monkeypatch) -> None:
    caplog.set_level(logging.DEBUG, "msp_bridge.phases")
    now = [0.0]
    monkeypatch.setattr("msp_bridge.phases.time.monotonic", lambda: now[0])
    phase = Phase(COPYING, 10)
    for now[0], done in ((0.1, 1), (0.4, 4), (0.5, 5), (0.7, 7)):
        phase.reached(done)
    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [
        ("INFO", "copying the project: 4 of 10"),
        ("DEBUG", "copying the project: 7 of 10"),
    ]


def test_while_mutants_are_looked_for_the_files_are_counted() -> None:
    terminal = Terminal()
    with discovery_status(console(terminal), "mutmut") as show:
        show(PhaseReport(phases.DISCOVERING, 3, 40))
    assert "mutmut: looking for mutants (3/40)" in terminal.shown


def test_off_a_terminal_each_phase_is_said_once(capsys: pytest.CaptureFixture[str]) -> None:
    lines = PhaseLines()
    for name, done in ((COPYING, 1), (COPYING, 2), (BASELINE, 0), (COPYING, 3), (BASELINE, 9)):
        lines.show(PhaseReport(name, done, 9))
    out, err = capsys.readouterr()
    assert (out, err.splitlines()) == ("", [f"msp-bridge: {COPYING} …", f"msp-bridge: {BASELINE} …"])


def test_a_long_phase_says_how_far_it_has_come_and_which_test_keeps_it(tmp_path: Path, capsys, monkeypatch) -> None:
    now = [0.0]
    monkeypatch.setattr("msp_bridge.reports.terminal.time.monotonic", lambda: now[0])
    lines = PhaseLines()
    reports = ((0, 0, None), (20, 1, None), (31, 2, None), (40, 3, None), (59, 3, "t.py::test_b"), (70, 4, None))
    for now[0], done, test in reports:
        lines.show(PhaseReport(BASELINE, done, 9, test))
    said = [f"{BASELINE}", f"{BASELINE}: 2 of 9", f"{BASELINE}: 3 of 9; t.py::test_b takes long"]
    assert capsys.readouterr().err.splitlines() == [f"msp-bridge: {text} …" for text in said]


def test_a_terminal_names_a_test_that_takes_long_also_after_results(tmp_path: Path) -> None:
    terminal = Terminal()
    with TerminalReport(tmp_path, console(terminal), 2) as report:
        report.show(Result(MUTANT, Status.KILLED))
        report.show_phase(PhaseReport(BASELINE, 3, 9, "t.py::test_b"))
    assert f"{BASELINE}: 3 of 9; t.py::test_b takes long" in terminal.shown


def test_a_test_is_named_when_it_has_been_running_for_long(monkeypatch) -> None:
    now = [0.0]
    monkeypatch.setattr("msp_bridge.python_engine.programs.channel.time.monotonic", lambda: now[0])
    count, heard = TestCount(), list[tuple[float, RunProgress]]()

    def look(*times: float) -> None:
        for now[0] in times:
            if (news := count.news) is not None:
                heard.append((now[0], news))

    look(0)
    count.begin("test_a")
    look(20, 29)
    count.note()
    look(31, 62)  # no test runs: a session's end is nobody's
    count.begin("test_" + "é" * 200)
    look(63, 92, 93)
    assert heard == [
        (0, RunProgress(0)),
        (31, RunProgress(1)),
        (93, RunProgress(1, "test_" + "é" * 125)),
    ]


def test_a_long_copy_is_reported(tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch) -> None:
    caplog.set_level(logging.DEBUG, "msp_bridge.phases")
    monkeypatch.setattr(phases, "BRIEF_S", 0.0)
    (tmp_path / "project").mkdir()
    (tmp_path / "project/a.py").touch()
    sandbox = Sandbox.claim(tmp_path / "cache", tmp_path / "project")
    sandbox.refresh()
    sandbox.close()
    assert caplog.messages == ["copying the project: 0 of 1"]


async def test_the_python_engine_says_how_many_tests_have_run(tmp_path: Path) -> None:
    heard: list[PhaseReport] = []
    files = {
        "pyproject.toml": b'[tool.mutmut]\nsource_paths = ["pkg"]\n',
        "pkg/m.py": b"def f(a):\n    return a + 1\n",
        "tests/test_m.py": b"import time\nfrom pkg.m import f\n\ndef test_fast():\n    assert f(1) == 2\n\n"
        b"def test_slow():\n    time.sleep(1.5)\n",
    }
    async with Trial.of(files, tmp_path) as trial:
        with heard_by(heard.append):
            await trial.test()
    reported = list(dict.fromkeys(str(phase) for phase in heard if phase.name != COPYING))
    # On a busy machine the first look may come after the first test, and the last one after both.
    steps = [f"{BASELINE}: {done} of 2" for done in range(3)]
    assert reported == [COLLECTING, *(step for step in steps if step in reported)]
    assert steps[1] in reported, "test_slow runs for longer than the time between two looks"
