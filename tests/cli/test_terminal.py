"""What a person at a terminal, in whatever directory, encoding and mood, gets of `run`, and the exit codes."""

import os
import pty
import signal
from pathlib import Path

import pytest
from support.command_line import GATED, SCRIPT, bridge, environment, in_process, interrupted, make_project, run, script

FAILING = {"test_a.py::test_red": "assert 1 == 2\nsecond line", "test_a.py::test_\x1b[31m": "x"}


def test_failing_tests_are_named_after_the_summary_and_have_their_exit_code(project: Path) -> None:
    script(project, testing={"failing": FAILING})
    done = bridge(project, "run")
    assert done.returncode == 3
    assert "mutation score  50.0 %" in done.stdout
    assert done.stderr == (
        "msp-bridge: 2 tests fail without any mutant, and are left out: fix them first\n"
        "    test_a.py::test_red\n"
        "    test_a.py::test_\\x1b[31m\n"
        "    | assert 1 == 2\n"
        "    | second line\n"
    )


def test_tests_that_all_fail_are_named_and_have_the_same_exit_code(project: Path) -> None:
    script(project, testing={"failing": FAILING, "raises": ["BaselineError", "the tests fail without any mutant"]})
    done = bridge(project, "run", "--threshold", "99")
    assert done.returncode == 3
    assert done.stderr.startswith(
        "msp-bridge: the tests fail without any mutant: fix the tests first\n    test_a.py::test_red\n"
    )


@pytest.mark.parametrize(
    "arguments",
    [["run", "--threshold", "80"], ["run", "-q", "broken.py"], ["run", "--log-level", "error"], ["discover"]],
)
def test_a_file_that_cannot_be_parsed_is_named_and_has_the_exit_code_of_no_verdict(
    project: Path, arguments: list[str]
) -> None:
    (project / "broken.py").write_text("def (\n")
    script(project, discovery={"unusable": {"broken.py": "invalid syntax (line 1)"}})
    done = bridge(project, *arguments)
    assert done.returncode == 3
    assert done.stderr.startswith(
        "msp-bridge: broken.py has no mutants: invalid syntax (line 1): "
        "correct the file, or exclude it in the tool's configuration\n"
    )
    assert "no mutants" not in done.stdout


def test_off_a_terminal_each_phase_is_one_line_unless_quiet(project: Path) -> None:
    script(project, testing={"phase": "baking"})
    assert bridge(project, "run").stderr == "msp-bridge: baking …\n"
    assert bridge(project, "run", "-q").stderr == ""


def test_many_failing_tests_are_cut(project: Path) -> None:
    script(project, testing={"failing": {f"test_{number}": "line\n" * 50 for number in range(30)}})
    lines = bridge(project, "run").stderr.splitlines()
    assert "    … 20 more" in lines
    assert "    | … 30 more lines" in lines
    assert len(lines) < 40


def test_a_baseline_that_fails_in_one_of_several_projects_is_named(project: Path) -> None:
    for name, faults in {"api": {}, "web": {"failing": FAILING, "raises": ["BaselineError", "red"]}}.items():
        script(make_project(project / name), testing=faults)
    (project / "scripted.json").unlink()
    done = bridge(project, "run")
    assert done.returncode == 3
    assert done.stderr.startswith("msp-bridge: scripted in web/: red: fix the tests first\n    test_a.py::test_red\n")


def test_an_unexpected_error_is_one_line_without_a_traceback(project: Path) -> None:
    script(project, testing={"raises": ["ValueError", "oh"]})
    done = bridge(project, "run", "--json", "report.json")
    assert done.returncode == 3
    assert done.stderr.startswith("msp-bridge: ValueError: oh: this is a fault of the bridge or an adapter")
    assert done.stderr.count("\n") == 1
    assert (project / "report.json").exists()
    assert "Traceback" in bridge(project, "run", "--log-level", "debug").stderr


def test_from_a_subfolder_the_project_above_is_found(project: Path) -> None:
    (project / "deep" / "er").mkdir(parents=True)
    (project / "deep" / "c.py").write_text("x = y + 1\n")
    done = in_process(project / "deep" / "er", project, "run", "--adapter", "scripted")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"scripted (project: {project}): 6 mutants in 3 files\n")
    assert "Survived  ../../a.py:1:9  digit" in done.stdout
    assert "Survived  ../c.py:1:9  digit" in done.stdout


def test_the_search_ends_at_the_root_of_the_repository(project: Path) -> None:
    (project / "other" / "deep" / ".git").mkdir(parents=True)
    done = in_process(project / "other" / "deep", project, "run", "--adapter", "scripted")
    assert done.returncode == 2
    assert "is not set up in" in done.stderr


@pytest.mark.parametrize("path", ["a.py:1:9", "deep/../a.py:1:9", "../project/a.py:1:9"])
def test_a_printed_place_is_accepted_back(project: Path, path: str) -> None:
    (project / "deep").mkdir()
    done = bridge(project, "run", path)
    assert done.stdout.startswith("scripted: 1 mutant in 1 file\n"), done.stderr
    assert "Survived  a.py:1:9" in done.stdout


@pytest.mark.parametrize("path", ["a.py", "project/a.py"])
def test_with_a_root_paths_are_relative_to_here_or_to_the_root(project: Path, path: str) -> None:
    done = in_process(project.parent, project, "run", "--adapter", "scripted", "--root", "project", path)
    assert done.stdout.startswith("scripted: 3 mutants in 1 file\n"), done.stderr
    assert "Survived  project/a.py:1:9" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["run", ""], "a path is empty"),
        (["run", "a.pi"], "there is no file or directory a.pi; did you mean a.py?"),
        (["run", "--treshold", "1"], "--threshold"),
        (["runn"], "there is no command 'runn'; did you mean 'run'?"),
        (["editors", "neovm"], "there is no 'neovm'; did you mean 'neovim'?"),
        (["run", "--log-level", "eror"], "there is no 'eror'; did you mean 'error'?"),
        (["cache", "purge"], "there is no 'purge'; choose from show, clear"),
        (["frobnicate"], "choose from serve, init, run"),
        (["run", "--adapter", "script"], "--adapter: there is no adapter 'script': did you mean 'scripted'?"),
        (["results", "--status", "survive"], "did you mean 'Survived'?"),
        (["docs", "incrementl"], "msp-bridge: there is no topic 'incrementl': did you mean 'incremental'?"),
        (["docs", "zzz"], "there is no topic 'zzz': `msp-bridge docs` lists the topics"),
    ],
)
def test_a_typing_error_gets_a_suggestion(project: Path, arguments: list[str], text: str) -> None:
    done = in_process(project, project, *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert text in done.stderr


def test_control_characters_do_not_reach_the_terminal(project: Path) -> None:
    name = "\x1b]0;title\x07.py"
    (project / name).write_text("x = 1  # \x1b[2J\n")
    mutation = {"mutator": "digit\x1b[1m", "find": "1  ", "replacement": "\x9b2", "status": "Survived"}
    script(project, mutations=[mutation])
    for arguments in (["run"], ["discover"]):
        done = bridge(project, *arguments)
        assert done.returncode == 0, done.stderr
        assert "\\x1b]0;title\\x07.py:1:5" in done.stdout
        assert not {"\x1b", "\x07", "\x9b"} & set(done.stdout + done.stderr)


def test_a_root_that_is_not_utf_8_has_every_report(tmp_path: Path) -> None:
    root = make_project(tmp_path / "caf\udce9")
    script(root)
    forms = {name: str(tmp_path / name) for name in ("html", "json", "junit", "sarif", "gitlab")}
    options = [text for name, file in forms.items() for text in (f"--{name}", file)]
    done = bridge(root, "run", *options, "--github")
    assert (done.returncode, done.stderr) == (0, "")
    assert all(Path(file).stat().st_size for file in forms.values())


def test_standard_output_may_be_ascii(project: Path) -> None:
    (project / "a.py").write_text("s = 'é' + 1\n")
    done = run(project, "run", env={"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0", "LC_ALL": "C"})
    assert (done.returncode, done.stderr) == (0, "")
    assert "- s = '\\xe9' + 1" in done.stdout


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("arguments", [["run"], ["discover"], ["--help", "run"]])
def test_a_full_standard_output_is_one_line(project: Path, arguments: list[str]) -> None:
    with open("/dev/full", "w") as full:
        done = run(project, *arguments, stdout=full)
    assert done.returncode == 2
    assert done.stderr == "msp-bridge: can't write to standard output: No space left on device\n"


def test_a_reader_that_hangs_up_is_no_error(project: Path) -> None:
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "w") as pipe:
        done = run(project, "discover", stdout=pipe)
    assert (done.returncode, done.stderr) == (141, "")


def test_the_list_says_what_a_mutant_deletes(project: Path) -> None:
    script(project, mutations=[{"mutator": "removal", "find": " + 1", "replacement": ""}])
    assert "a.py:1:6 removal (deletes + 1)" in " ".join(bridge(project, "discover").stdout.split())


def test_forced_colours_bring_no_progress_lines_into_a_log(project: Path) -> None:
    done = in_process(project, project, "run", "--adapter", "scripted", FORCE_COLOR="1", TERM="xterm-256color")
    assert "\x1b[31m" in done.stdout
    assert "testing" not in done.stdout
    assert "\x1b[2K" not in done.stdout
    assert "\x1b[?25l" not in done.stdout


def test_a_terminal_has_a_progress_bar(project: Path) -> None:
    main, side = pty.openpty()
    with os.fdopen(main, "rb") as terminal, os.fdopen(side, "wb") as output:
        done = run(project, "run", env={"TERM": "xterm-256color"}, stdout=output, stderr=output)
        shown = os.read(terminal.fileno(), 65536)
    assert done.returncode == 0
    assert b"preparing" in shown
    assert b"testing" in shown


def test_verbose_logs_on_stderr(project: Path) -> None:
    script(project, testing={"failing": {"test_red": "no"}})
    assert "msp-bridge: WARNING: test_red fails" not in bridge(project, "run", "-q").stderr
    assert "DEBUG" in bridge(project, "discover", "-vv").stderr


def test_a_warning_is_shown_once_and_logged_each_time(project: Path, tmp_path: Path) -> None:
    script(project, mutations=[SCRIPT["mutations"][0] | {"times": 4}])
    done = bridge(project, "run", "--log-file", str(tmp_path / "log"))
    warnings = [line for line in done.stderr.splitlines() if "gave a result that is not due" in line]
    assert len(warnings) == 2  # one for each mutant
    assert (tmp_path / "log").read_text().count("gave a result that is not due") == 6


def test_ctrl_c_ends_a_discovery_with_the_exit_code_of_an_interrupt(project: Path, tmp_path: Path) -> None:
    events = tmp_path / "events"
    events.mkdir()
    script(project, mutations=GATED, events=str(events), discovery={"after": "never"})
    code, _, err = interrupted(project, signal.SIGINT, "discover")
    assert code == 130
    assert "msp-bridge: interrupted" in err
    assert "Abort" not in err


def test_the_cache_is_shown_and_cleared(project: Path) -> None:
    home = Path(environment(project)["MSP_BRIDGE_CACHE"])
    (home / "shop-1").mkdir(parents=True)
    (home / "shop-1" / "big").write_bytes(b"x" * 1500)

    def cache(*arguments: str) -> str:
        done = in_process(project, project, "cache", *arguments)
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert "shop-1   1.5 kB" in cache()
    assert cache("clear") == f"1.5 kB cleared from {home}\n"
    assert cache() == f"0 bytes in {home}\n"
    assert list(home.iterdir()) == []
