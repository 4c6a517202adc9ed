"""The project's interpreter is found as the user's own tools find it, though nothing is activated."""

import importlib.metadata
import os
import re
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Callable
from pathlib import Path

import pytest

from msp_bridge.environment.interpreter import candidates, find_interpreter, is_for_the_bridge_alone
from msp_bridge.workspace.configuration import Configuration
from msp_bridge.workspace.detection import detect_projects

Environment = Callable[[Path], Path]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    root.mkdir()
    return root


def environment(at: Path) -> Path:
    """A virtual environment, as far as one can see from outside; its interpreter."""
    (at / "bin").mkdir(parents=True)
    (at / "pyvenv.cfg").touch()
    python = at / "bin" / "python"
    python.touch(0o755)
    return python


@pytest.mark.parametrize("name", [".venv", "venv", "env", ".env"])
def test_an_environment_in_the_project_goes_first(root: Path, tmp_path: Path, name: str) -> None:
    python = environment(root / name)
    other = environment(tmp_path / "active")
    assert find_interpreter(root, {"VIRTUAL_ENV": str(other.parents[1])}) == python


def test_what_is_no_environment_with_an_interpreter_is_passed_over(root: Path, tmp_path: Path) -> None:
    (root / "env" / "bin").mkdir(parents=True)
    (root / "env" / "bin" / "python").touch(0o755)
    environment(root / ".venv").unlink()
    python = environment(root / "venv")
    python.unlink()
    python.symlink_to(tmp_path / "gone")
    if os.getuid():  # root may run every file
        environment(root / ".env").chmod(0o644)
    active = environment(tmp_path / "active")
    assert find_interpreter(root, {"VIRTUAL_ENV": str(tmp_path / "active")}) == active


def test_conda_is_found_in_the_project_and_when_it_is_active(root: Path, tmp_path: Path) -> None:
    active = environment(tmp_path / "conda")
    variables = {"CONDA_PREFIX": str(tmp_path / "conda")}
    assert find_interpreter(root, variables) == active
    own = environment(root / ".conda")
    assert find_interpreter(root, variables) == own


def test_the_interpreter_that_pdm_names_is_used(root: Path, tmp_path: Path) -> None:
    python = environment(tmp_path / "elsewhere")
    (root / ".pdm-python").write_text(f"{python}\n")
    assert find_interpreter(root, {}) == python
    (root / ".pdm-python").write_bytes(b"\xff")
    assert find_interpreter(root, {}) != python


def test_poetry_keeps_its_environments_by_the_projects_path(tmp_path: Path) -> None:
    root = tmp_path / "project"
    root.mkdir()
    (root / "poetry.lock").touch()
    found = list(candidates(root, {"POETRY_VIRTUALENVS_PATH": str(tmp_path / "envs")}))
    assert not any("envs" in str(path) for path in found)
    import base64
    import hashlib

    # poetry.utils.env.EnvManager.generate_env_name
    short = base64.urlsafe_b64encode(hashlib.sha256(os.path.realpath(root).encode()).digest()).decode()[:8]
    environment(tmp_path / "envs" / f"project-{short}-py3.11")
    newer = environment(tmp_path / "envs" / f"project-{short}-py3.13")
    assert find_interpreter(root, {"POETRY_VIRTUALENVS_PATH": str(tmp_path / "envs")}) == newer
    (root / "poetry.lock").unlink()
    assert find_interpreter(root, {"POETRY_VIRTUALENVS_PATH": str(tmp_path / "envs")}) != newer


def test_pipenv_and_hatch_keep_theirs_in_the_users_data(tmp_path: Path) -> None:
    root = tmp_path / "my project"
    root.mkdir()
    data = {"XDG_DATA_HOME": str(tmp_path / "data"), "WORKON_HOME": str(tmp_path / "workon")}
    (root / "Pipfile").touch()
    theirs = [path for path in candidates(root, data) if path.is_relative_to(tmp_path / "workon")]
    assert len(theirs) == 1
    assert theirs[0].parents[1].name.startswith("my_project-")
    python = environment(theirs[0].parents[1])
    assert find_interpreter(root, data) == python


def test_without_any_environment_there_is_still_an_interpreter(root: Path) -> None:
    found = find_interpreter(root, {"PATH": os.environ["PATH"]})
    assert found is not None
    assert found.is_file()
    elsewhere = [path for path in candidates(root, {"PATH": "/nowhere"}) if not path.is_relative_to(root)]
    assert elsewhere in ([], [Path(sys.executable)])


def installed(at: Path, *names: str) -> Path:
    """A real virtual environment with these distributions of ours, and all that they require; its interpreter."""
    venv.create(at, symlinks=True)
    site = Path(sysconfig.get_path("purelib", vars={"base": str(at)}))
    pending, done = list(names), set()
    while pending:
        name = pending.pop()
        ours = importlib.metadata.distributions(name=name, path=[sysconfig.get_path("purelib")])
        distribution = next(iter(ours), None)
        if distribution is None or name in done:  # there is none of what is for other platforms
            continue
        done.add(name)
        for entry in {file.parts[0] for file in distribution.files or () if ".." not in file.parts}:
            if not (site / entry).exists():
                (site / entry).symlink_to(Path(str(distribution.locate_file(entry))))
        required = (line for line in distribution.requires or () if "extra ==" not in line)
        pending += [match[0] for line in required if (match := re.match(r"[\w.-]+", line))]
    return at / "bin" / "python"


def doctor(root: Path, python: Path, path: Path) -> str:
    variables = {name: value for name, value in os.environ.items() if name not in ("VIRTUAL_ENV", "PYTHONPATH")}
    done = subprocess.run(
        [python, "-m", "msp_bridge", "doctor", "--adapter", "mutmut"],
        cwd=root,
        env={**variables, "PATH": str(path), "MSP_BRIDGE_CACHE": str(root.parent / "cache"), "COLUMNS": "200"},
        capture_output=True,
        text=True,
    )
    return done.stdout + done.stderr


def test_an_environment_with_nothing_but_the_bridge_in_it_is_no_projects(root: Path, tmp_path: Path) -> None:
    (root / "pyproject.toml").write_text("[tool.mutmut]\n")
    (root / "calc.py").write_text("def one():\n    return 1\n")
    (root / "test_calc.py").write_text("import calc\n\n\ndef test_one():\n    assert calc.one() == 1\n")
    everywhere = installed(tmp_path / "usr", "mutmut", "pytest")
    own = installed(tmp_path / "pipx" / "msp-bridge", "msp-bridge")
    assert str(everywhere.parent) in doctor(root, own, everywhere.parent)
    assert str(own) in doctor(root, own, tmp_path), "better than none"
    own = installed(tmp_path / "pipx" / "msp-bridge", "msp-bridge", "mutmut", "pytest")  # as `pipx inject` does
    assert str(own) in doctor(root, own, everywhere.parent)


def test_what_a_failed_uninstall_leaves_is_not_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site = tmp_path / "site"
    (site / "msp_bridge-1.dist-info").mkdir(parents=True)
    (site / "msp_bridge-1.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: msp-bridge\nVersion: 1\n")
    (site / "~ip-23.0.dist-info").mkdir()
    (site / "~heel-1.dist-info").mkdir()
    (site / "~heel-1.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\n")
    monkeypatch.setattr(sysconfig, "get_path", lambda _: str(site))
    assert is_for_the_bridge_alone()
    (site / "other-1.dist-info").mkdir()
    (site / "other-1.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: other\nVersion: 1\n")
    os.utime(site, ns=(1, 1))  # certainly not what it was
    assert not is_for_the_bridge_alone()


def test_the_interpreter_of_a_tool_is_the_one_that_the_configuration_names(root: Path, tmp_path: Path) -> None:
    """It is also the one that `run --verify` tests with."""
    python = environment(tmp_path / "elsewhere")
    environment(root / ".venv")
    (root / "pyproject.toml").write_text(f'[tool.mutmut]\n[tool.msp-bridge]\npython = "{python}"\n')
    (folder,) = detect_projects(root, Configuration()).folders
    assert [one.project.python for one in folder.candidates if one.is_used] == [python]
