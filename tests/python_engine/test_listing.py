"""What is collected is what pytest collects, though directories are listed without data files."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

COLLECT = """
import sys
import pytest
from msp_bridge.python_engine.programs.pytest_session import PytestSession

asked = []

class Asked:
    def pytest_collectstart(self, collector):
        asked.append(collector.nodeid)

    @pytest.hookimpl(tryfirst=True)
    def pytest_ignore_collect(self, collection_path):
        asked.append(collection_path.name)

class Plain:
    items = []

    def pytest_collection_finish(self, session):
        self.items = session.items

session = PytestSession() if {ours} else Plain()
pytest.main(["-q", "--collect-only", "-p", "no:cacheprovider", *{arguments!r}], plugins=[session, Asked()])
print("COLLECTED", sorted(item.nodeid for item in session.items))
print("ASKED", "data0.json" in asked)
"""
YAML = """
import pytest

class File(pytest.File):
    def collect(self):
        yield Case.from_parent(self, name="case")

class Case(pytest.Item):
    def runtest(self):
        pass

def pytest_collect_file(file_path, parent):
    if file_path.suffix == ".yaml":
        return File.from_parent(parent, path=file_path)
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for name, text in {
        "pytest.ini": "[pytest]\n",
        "tests/test_a.py": "def test_a(): pass\n",
        "tests/pkg/__init__.py": "",
        "tests/pkg/test_b.py": "def test_b(): pass\n",
        "tests/pkg/case.yaml": "",
        "tests/test_doc.txt": ">>> 1\n1\n",
        "tests/guide.rst": ">>> 2\n2\n",
        "tests/odd.py/test_in_odd.py": "def test_c(): pass\n",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    for number in range(3):
        (tmp_path / "tests" / f"data{number}.json").write_text("{}")
    (tmp_path / "tests" / "linked.py").symlink_to("data0.json")
    (tmp_path / "tests" / "nowhere").symlink_to("missing")
    return tmp_path


def collected(project: Path, *arguments: str, ours: bool) -> list[str]:
    code = COLLECT.format(ours=ours, arguments=list(arguments))
    command = [sys.executable, "-W", "ignore", "-c", code]
    env = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run(command, cwd=project, env=env, capture_output=True, text=True, timeout=300, check=False)
    lines = [line for line in done.stdout.splitlines() if line.startswith(("COLLECTED", "ASKED"))]
    assert len(lines) == 2, done.stdout + done.stderr
    return lines


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["tests/pkg", "tests/guide.rst", "tests/test_doc.txt"],
        ["--doctest-glob=*.rst"],
        ["--doctest-glob=tests/*.rst"],
        ["--doctest-modules"],
        ["-p", "no:doctest"],
        ["tests/test_a.py::test_a"],
    ],
)
def test_the_same_is_collected(project: Path, arguments: list[str]) -> None:
    assert collected(project, *arguments, ours=True)[0] == collected(project, *arguments, ours=False)[0]


def test_data_is_not_looked_at(project: Path) -> None:
    assert collected(project, ours=False)[1] == "ASKED True"
    assert collected(project, ours=True)[1] == "ASKED False"


def test_what_a_plugin_of_the_project_collects_is_collected(project: Path) -> None:
    (project / "tests/pkg/conftest.py").write_text(YAML)
    ours = collected(project, ours=True)[0]
    assert "case.yaml::case" in ours
    assert ours == collected(project, ours=False)[0]
