"""The command that installs a package is the project's own, and can be typed as it is."""

import os
import shlex
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from msp_bridge.toolkit.install import own_install, python_install

TOOL = "mutmut>=3.8,<4"


def environment(directory: Path, config: str = "home = /usr/bin\n") -> Path:
    """The interpreter of a virtual environment in `directory`."""
    (directory / ".venv" / "bin").mkdir(parents=True)
    (directory / ".venv" / "pyvenv.cfg").write_text(config)
    return directory / ".venv" / "bin" / "python"


@pytest.mark.parametrize(
    ("lock", "command"),
    [
        ("uv.lock", "uv add --dev"),
        ("poetry.lock", "poetry add --group dev"),
        ("pdm.lock", "pdm add --dev"),
        ("Pipfile.lock", "pipenv install --dev"),
    ],
)
def test_the_lock_file_names_the_package_manager(tmp_path: Path, lock: str, command: str) -> None:
    python = environment(tmp_path)
    (tmp_path / lock).touch()
    assert python_install(python, TOOL) == f"{command} '{TOOL}'"
    assert python_install(Path("/usr/bin/python3"), TOOL, root=tmp_path) == f"{command} '{TOOL}'"


def test_a_lock_file_of_the_repository_counts_and_none_above_it(tmp_path: Path) -> None:
    (tmp_path / "uv.lock").touch()
    package = tmp_path / "repository" / "package"
    package.mkdir(parents=True)
    python = environment(package)
    assert python_install(python, TOOL).startswith(str(python))
    (tmp_path / "repository" / ".git").mkdir()
    assert python_install(python, TOOL).startswith(str(python))
    (tmp_path / "repository" / "uv.lock").touch()
    assert python_install(python, TOOL).startswith("uv add")


def test_an_environment_of_uv_has_no_pip(tmp_path: Path) -> None:
    python = environment(tmp_path, "home = /usr/bin\nuv = 0.9.1\n")
    assert python_install(python, TOOL) == f"uv pip install --python {python} '{TOOL}'"


def test_an_externally_managed_interpreter_gets_an_environment(tmp_path: Path) -> None:
    (tmp_path / "lib" / "python3.13").mkdir(parents=True)
    (tmp_path / "lib" / "python3.13" / "EXTERNALLY-MANAGED").touch()
    python = tmp_path / "bin" / "python3"
    assert python_install(python, TOOL) == (f"{python} -m venv .venv && .venv/bin/python -m pip install '{TOOL}'")


def test_a_path_with_a_blank_is_quoted(tmp_path: Path) -> None:
    python = environment(tmp_path / "my project")
    assert shlex.split(python_install(python, TOOL)) == [str(python), "-m", "pip", "install", TOOL]


@pytest.mark.parametrize(
    ("prefix", "command"),
    [
        ("share/pipx/venvs/msp-bridge", "pipx inject msp-bridge 'msp-bridge[live]'"),
        ("share/uv/tools/msp-bridge", "uv tool install msp-bridge --with 'msp-bridge[live]'"),
    ],
)
def test_the_bridges_own_environment_may_be_an_installers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, prefix: str, command: str
) -> None:
    monkeypatch.setattr(sys, "prefix", str(tmp_path / prefix))
    assert own_install("msp-bridge[live]") == command


def test_the_command_for_this_environment_runs() -> None:
    command = f"{own_install('msp-bridge[live]')} --help"
    done = subprocess.run(shlex.split(command), capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def wheel(directory: Path) -> Path:
    """A package of one module, so that commands run without a network."""
    file = directory / "tiny-1.0-py3-none-any.whl"
    files = {
        "tiny.py": "",
        "tiny-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n",
        "tiny-1.0.dist-info/WHEEL": "Wheel-Version: 1.0\nGenerator: none\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        "tiny-1.0.dist-info/RECORD": "tiny.py,,\n",
    }
    with zipfile.ZipFile(file, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return file


def run(command: str, directory: Path) -> None:
    """As a user types it, without a network."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    env = {**os.environ, "PATH": path, "UV_OFFLINE": "1", "UV_CACHE_DIR": str(directory / "cache"), "PIP_NO_INDEX": "1"}
    done = subprocess.run(command, shell=True, cwd=directory, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("made_by", ["-m venv", "-m uv venv", "-m uv sync"])
def test_each_command_installs_what_it_names(tmp_path: Path, made_by: str) -> None:
    project, tiny = tmp_path / "a project", wheel(tmp_path)
    project.mkdir()
    if made_by.endswith("sync"):
        version = f"{sys.version_info.major}.{sys.version_info.minor}"
        text = f'[project]\nname = "ours"\nversion = "1"\nrequires-python = ">={version}"\n'
        (project / "pyproject.toml").write_text(text)
    run(f"{shlex.quote(sys.executable)} {made_by} {'' if made_by.endswith('sync') else '.venv'}", project)
    python = project / ".venv/bin/python"
    run(python_install(python, str(tiny), root=project), project)
    run(".venv/bin/python -c 'import tiny'", project)


def test_the_command_for_an_externally_managed_interpreter_installs(tmp_path: Path) -> None:
    base = Path(sys.base_prefix)
    python = tmp_path / "system/bin/python3"
    (tmp_path / "system/lib/python3.99").mkdir(parents=True)
    (tmp_path / "system/lib/python3.99/EXTERNALLY-MANAGED").touch()
    python.parent.mkdir()
    python.write_text(f'#!/bin/sh\nexec "{base}/bin/python3" "$@"\n')
    python.chmod(0o755)
    run(python_install(python, str(wheel(tmp_path)), root=tmp_path), tmp_path)
    run(".venv/bin/python -c 'import tiny'", tmp_path)
