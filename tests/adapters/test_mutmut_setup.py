"""Setup: when mutmut is at home in a project, and what the user reads when something is missing."""

import shutil
import sys
import sysconfig
from pathlib import Path

import pytest
from msp_bridge.adapters.mutmut import Mutmut
from support.environments import environment, repair
from support.mutmut_trial import Trial

from msp_bridge.adapter import ConfigurationError, Finding, Project, Status, ToolError
from msp_bridge.python_engine.engine import MADE_BY_TOOLS
from msp_bridge.toolkit import Sandbox

SOURCE = {"pkg/m.py": b"def f(a):\n    return a + 1\n"}
AS_UV_INSTALLS_IT = """
import os; [delattr(os, name) for name in ("copy_file_range", "getrandom", "memfd_create", "pidfd_open") if hasattr(os, name)]
"""


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("pyproject.toml", "[tool.mutmut]\n"),
        ("pyproject.toml", "[tool.mutmut]\nsource_paths = ['pkg']\n"),
        ("setup.cfg", "[mutmut]\n"),
    ],
)
def test_a_project_with_a_configuration_of_mutmut_is_detected(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    assert Mutmut.detect(Project(tmp_path, tmp_path / "cache")) is not None


@pytest.mark.parametrize("text", ["", "[tool.other]\n", "not toml [", "tool = 3\n"])
def test_a_project_without_mutmut_is_not_detected(tmp_path, text):
    (tmp_path / "pyproject.toml").write_text(text)
    assert Mutmut.detect(Project(tmp_path, tmp_path / "cache")) is None
    assert Mutmut.detect(Project(tmp_path, tmp_path / "cache", python=environment(tmp_path / "venv"))) is None


def test_a_python_project_with_mutmut_in_its_environment_is_detected(tmp_path):
    python = environment(tmp_path / "venv", mutmut="3.8.1")
    root = tmp_path / "project"
    root.mkdir()
    assert Mutmut.detect(Project(root, tmp_path / "cache", python=python)) is None
    (root / "calc.py").write_text("")
    assert Mutmut.detect(Project(root, tmp_path / "cache", python=python)) is not None


def test_an_installed_mutmut_without_python_files_is_not_called_missing(tmp_path):
    python = environment(tmp_path / "venv", mutmut="3.8.1")
    root = tmp_path / "other"
    root.mkdir()
    finding = Mutmut.absent(Project(root, tmp_path / "cache", python=python))
    text = f"installed, but there are no Python files in {root}, nor in the folders right below it"
    remedy = "if they lie deeper, set source_paths in [tool.mutmut] of pyproject.toml"
    assert finding == Finding(False, "mutmut", text, remedy)
    bare = Project(root, tmp_path / "cache", python=environment(tmp_path / "bare"))
    assert Mutmut.absent(bare).text == "not installed"


def test_a_nested_project_counts_only_what_is_set_up_in_it(tmp_path):
    root = tmp_path / "backend"
    root.mkdir()
    (root / "pyproject.toml").write_text("")

    def detected(python):
        return Mutmut.detect(Project(root, tmp_path / "cache", python=python, nested=True)) is not None

    assert not detected(environment(tmp_path / "venv", mutmut="3.8.1"))
    assert detected(environment(root / "venv", mutmut="3.8.1"))
    (root / "pyproject.toml").write_text("[tool.mutmut]\n")
    assert detected(None)


def test_the_configuration_of_another_tool_is_not_taken(tmp_path):
    (tmp_path / "pyproject.toml").write_text("[tool.mutmut]\n")
    assert Mutmut.detect(Project(tmp_path, tmp_path / "cache", config_file=tmp_path / "stryker.conf.json")) is None


@pytest.mark.parametrize(
    ("versions", "message"),
    [
        ({}, "mutmut isn't installed for .*/venv/bin/python"),
        ({"mutmut": "2.5.1", "pytest": "9.2.0"}, "mutmut 2.5.1, which edits your files in place, is too old"),
        ({"mutmut": "3.8.0", "pytest": "9.2.0"}, "mutmut 3.8.0 is too old"),
        ({"mutmut": "4.0", "pytest": "9.2.0"}, "mutmut 4.0 is newer than this bridge supports"),
        ({"mutmut": "3.8.1", "pytest": "8.4.2"}, "pytest 8.4.2 is too old for mutmut 3.8.1"),
        ({"mutmut": "3.8.1"}, "pytest isn't installed"),
    ],
)
async def test_versions_that_cannot_work_are_named_with_their_remedy(tmp_path, versions, message):
    python = environment(tmp_path / "venv", **versions)
    async with Trial.of(SOURCE, tmp_path, python=python) as trial:
        command = r"venv/bin/python -m pip install 'mutmut>=3.8.1,<4' 'pytest>=9.2'"
        with pytest.raises(ToolError, match=f"{message}.*{command}"):
            await trial.discover()
        findings = [finding async for finding in trial.adapter.diagnose()]
        assert [finding.good for finding in findings] == [True, False]
        assert findings[1].remedy == f"{python} -m pip install 'mutmut>=3.8.1,<4' 'pytest>=9.2'"


@pytest.mark.skipif(shutil.which("pypy3") is None, reason="no pypy3")
async def test_pypy_is_refused_by_name(tmp_path):
    async with Trial.of(SOURCE, tmp_path, python=Path(shutil.which("pypy3"))) as trial:
        with pytest.raises(ToolError, match="pypy3 is PyPy, and the bridge tests mutants of CPython projects only"):
            await trial.discover()


async def test_without_an_interpreter_the_error_says_how_to_name_one(tmp_path):
    async with Trial.of(SOURCE, tmp_path, python=None) as trial:
        with pytest.raises(ToolError, match="name an interpreter with the setting `python`"):
            await trial.discover()


@pytest.mark.parametrize(
    ("about", "message"),
    [
        ({"config_file": Path("stryker.conf.json")}, "mutmut reads pyproject.toml or setup.cfg within the project"),
        ({"config_file": Path("../pyproject.toml")}, "mutmut reads pyproject.toml or setup.cfg within the project"),
        ({"config_file": Path("setup.cfg")}, "there is no mutmut configuration"),
    ],
)
async def test_settings_that_mean_nothing_are_refused(tmp_path, about, message):
    async with Trial.of(SOURCE, tmp_path, **about) as trial:
        with pytest.raises(ConfigurationError, match=message):
            await trial.discover()


async def test_a_healthy_project_gets_a_clean_bill(tmp_path):
    async with Trial.of("py_calc", tmp_path) as trial:
        findings = [finding async for finding in trial.adapter.diagnose()]
    assert all(finding.good for finding in findings)
    subjects = "interpreter mutmut configuration sources tests isolation"
    assert [finding.subject for finding in findings] == subjects.split()
    assert Finding(True, "configuration", "pyproject.toml") in findings
    assert Finding(True, "sources", "3 files in src") in findings
    assert Finding(True, "tests", "7 tests") in findings


@pytest.mark.parametrize(
    ("files", "option"),
    [
        ({}, "source_paths in [tool.mutmut] of pyproject.toml"),
        ({"setup.cfg": b"[mutmut]\ndo_not_mutate = x\n"}, "source_paths in [mutmut] of setup.cfg"),
        (
            {"pyproject.toml": b"[tool.mutmut]\n", "setup.cfg": b"[mutmut]\n"},
            "source_paths in [tool.mutmut] of pyproject.toml",
        ),
        ({"setup.cfg": b"[metadata]\n", "pkg/__init__.py": b""}, "source_paths = pkg in [mutmut] of setup.cfg"),
        ({"pkg/__init__.py": b""}, 'source_paths = ["pkg"] in [tool.mutmut] of pyproject.toml'),
    ],
)
async def test_sources_that_mutmut_cannot_guess_are_to_be_set_in_one_place(tmp_path, files, option):
    async with Trial.of({**SOURCE, **files}, tmp_path) as trial:
        with pytest.raises(ToolError) as caught:
            await trial.discover()
        fault, remedy = f"mutmut finds no sources in {trial.root}", f"set {option}"
        assert str(caught.value) == f"{fault}: {remedy}"
        assert [finding async for finding in trial.adapter.diagnose()][2:] == [Finding(False, "sources", fault, remedy)]


async def test_sources_that_are_not_there_are_named(tmp_path):
    """Else a run has no mutants, and a CI stays green."""
    files = {"pyproject.toml": b'[tool.mutmut]\nsource_paths = ["sources", "gone.py"]\n', "pkg/__init__.py": b""}
    async with Trial.of({**SOURCE, **files}, tmp_path) as trial:
        with pytest.raises(ToolError) as caught:
            await trial.discover()
        fault = f"mutmut finds no sources in {trial.root}: source_paths names what is not there (sources, gone.py)"
        remedy = 'set source_paths = ["pkg"] in [tool.mutmut] of pyproject.toml'
        assert str(caught.value) == f"{fault}: {remedy}"
        assert [finding async for finding in trial.adapter.diagnose()][2:] == [Finding(False, "sources", fault, remedy)]


async def test_a_wrong_option_is_shown_as_it_is(tmp_path):
    files = {"pyproject.toml": b"[tool.mutmut]\nsource_paths = ['pkg']\nprocess_isolation = 'none'\n"}
    async with Trial.of({**SOURCE, **files}, tmp_path) as trial:
        *_, finding = [finding async for finding in trial.adapter.diagnose()]
    assert finding.subject == "configuration"
    assert finding.text.startswith(f"mutmut can't work with its configuration in {trial.root}: ValueError: ")
    assert "process_isolation" in finding.text
    assert finding.remedy == "correct [tool.mutmut] of pyproject.toml"


async def test_a_suite_that_fails_is_diagnosed(tmp_path):
    files = {
        **SOURCE,
        "pyproject.toml": b'[tool.mutmut]\nsource_paths = ["pkg"]\n',
        "tests/test_m.py": b"def test_red():\n    assert 0\n\ndef test_green():\n    pass\n",
    }
    async with Trial.of(files, tmp_path) as trial:
        findings = [finding async for finding in trial.adapter.diagnose()]
        assert [finding.text for finding in findings if not finding.good] == [
            "tests/test_m.py::test_red fails without any mutant, and is left out: assert 0"
        ]


async def test_a_plugin_that_the_tests_need_is_to_be_installed(tmp_path):
    tests = b"def test_other():\n    pass\n\ndef test_page(httpserver):\n    pass\n"
    files = {**SOURCE, "setup.cfg": b"[mutmut]\nsource_paths = pkg\n", "tests/test_m.py": tests}
    install = f"{sys.executable} -m pip install"
    async with Trial.of(files, tmp_path / "fixture") as trial:
        (left_out,) = [finding async for finding in trial.adapter.diagnose() if not finding.good]
        assert left_out.text.endswith("fixture 'httpserver' not found")
        assert left_out.remedy == f"{install} pytest-httpserver"
    files["pytest.ini"] = b"[pytest]\naddopts = --mpl --mpl-hash-library=x\n"
    async with Trial.of(files, tmp_path / "option") as trial:
        (fault,) = [finding async for finding in trial.adapter.diagnose() if not finding.good]
        assert "unrecognized arguments: --mpl --mpl-hash-library=x" in fault.text
        assert fault.remedy == f"{install} pytest-mpl"


def test_what_mutmut_run_has_left_in_the_project_is_not_copied(tmp_path):
    root = tmp_path / "project"
    for name in ("mutants/calc.py", "calc/mutants/made.py"):
        (root / name).parent.mkdir(parents=True)
        (root / name).write_text("")
    sandbox = Sandbox.claim(tmp_path / "cache", root, left_out=MADE_BY_TOOLS)
    assert sandbox.refresh() == {"calc/mutants/made.py"}
    sandbox.close()


def test_python_files_are_claimed(tmp_path):
    adapter = Mutmut(Project(tmp_path, tmp_path / "cache"))
    assert adapter.claims("pkg/m.py")
    assert not adapter.claims("pkg/m.js")


async def test_an_installation_without_what_mutmut_needs_is_an_error_and_no_fault_of_a_file(tmp_path: Path) -> None:
    python = environment(tmp_path / "venv")
    (site,) = tmp_path.glob("venv/lib/python3*/site-packages")
    (site / "libcst.py").write_text("raise ImportError('no libcst for this machine')\n")
    (site / "others.pth").write_text(sysconfig.get_path("purelib"))
    files = {**SOURCE, "pyproject.toml": b'[tool.mutmut]\nsource_paths = ["pkg"]\n'}
    async with Trial.of(files, tmp_path, python=python, here=False) as trial:
        with pytest.raises(ToolError, match="no libcst for this machine"):
            await trial.discover()


@pytest.mark.parametrize("isolation", ["guard", "tmp,overlay,pid"])
async def test_a_python_that_was_built_with_the_headers_of_an_old_kernel_tests_mutants(
    tmp_path, monkeypatch, isolation
):
    monkeypatch.setenv("MSP_BRIDGE_ISOLATION", isolation)
    python = environment(tmp_path / "venv", {"old.pth": AS_UV_INSTALLS_IT})
    repair(python)
    tests = b"import os\nfrom pkg.m import f\n\ndef test_f():\n    assert f(1) == (3 if hasattr(os, 'memfd_create') else 2)\n"
    files = {**SOURCE, "pyproject.toml": b"[tool.mutmut]\nsource_paths = ['pkg']\n", "tests/test_m.py": tests}
    async with Trial.of(files, tmp_path, python=python) as trial:
        assert {result.status for result in (await trial.test()).values()} == {Status.KILLED}
