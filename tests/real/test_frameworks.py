"""Applications of web frameworks with their databases: most of their code is imported by the tests, and not before them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support.environments import environment, repair

PROJECTS = Path(__file__).parents[1] / "projects"
VERIFIED = 20


@pytest.mark.parametrize("name", ["django_shop"])
def test_mutants_of_an_application_have_covering_tests_and_true_verdicts(name: str, tmp_path: Path) -> None:
    root = Path(shutil.copytree(PROJECTS / name, tmp_path / name))
    python = environment(tmp_path / "environment")
    repair(python)
    install = [f"{sys.prefix}/bin/uv", "pip", "install", "--quiet", "--compile-bytecode", "--python", str(python)]
    subprocess.run([*install, "-r", str(root / "requirements.txt")], check=True)
    run = [sys.executable, "-m", "msp_bridge", "run", "--json", "../report.json", "--verify", str(VERIFIED)]
    variables = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    variables |= {"VIRTUAL_ENV": str(tmp_path / "environment"), "MSP_BRIDGE_CACHE": str(tmp_path / "cache")}
    done = subprocess.run(run, cwd=root, env=variables, capture_output=True, text=True)
    assert f"verified {VERIFIED} mutants in fresh processes: 0 differ" in done.stdout, done.stdout + done.stderr
    files = json.loads((tmp_path / "report.json").read_text())["files"]
    killed = [mutant for file in files.values() for mutant in file["mutants"] if mutant["status"] == "Killed"]
    assert killed
    assert all(mutant["coveredBy"] for mutant in killed)
