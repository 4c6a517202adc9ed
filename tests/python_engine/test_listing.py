"""What is collected is what pytest collects, though directories are listed without data files."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

COLLECT = """
import json, os, sys
import pytest
from msp_bridge.python_engine.programs.pytest_session import PytestSession

class Asked:
    asked = False

    def pytest_collectstart(self, collector):
        self.asked |= collector.nodeid == "data0.json"

    @pytest.hookimpl(tryfirst=True)
    def pytest_ignore_collect(self, collection_path):
        self.asked |= collection_path.name == "data0.json"

class Plain:
    items = []

    def pytest_collection_finish(self, session):
        self.items = session.items

for arguments in json.loads(sys.argv[1]):
    for session in (PytestSession(), Plain()):
        if os.fork() == 0:
            asked, out = Asked(), os.dup(1)
            os.dup2(2, 1)
            pytest.main(["-q", "--collect-only", "-p", "no:cacheprovider", *arguments], plugins=[session, asked])
            os.write(out, (json.dumps([sorted(item.nodeid for item in session.items), asked.asked]) + "\\n").encode())
            os._exit(0)
        os.wait()
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


def collected(project: Path, *arguments: list[str]) -> list[tuple[list[str], list[str]]]:
    """What is collected with each list of arguments, by us and by pytest; data files are looked at by pytest alone."""
    command = [sys.executable, "-W", "ignore", "-c", COLLECT, json.dumps(arguments)]
    done = subprocess.run(command, cwd=project, capture_output=True, text=True, timeout=300, check=False)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(lines) == 2 * len(arguments), done.stdout + done.stderr
    assert [] not in [found for found, _ in lines]
    assert [asked for _, asked in lines[:2]] == [False, True]
    return [(ours, theirs) for (ours, _), (theirs, _) in zip(lines[::2], lines[1::2], strict=True)]


def test_the_same_is_collected_and_data_is_not_looked_at(project: Path) -> None:
    arguments: list[list[str]] = [
        [],
        ["tests/pkg", "tests/guide.rst", "tests/test_doc.txt"],
        ["--doctest-glob=*.rst"],
        ["--doctest-glob=tests/*.rst"],
        ["--doctest-modules"],
        ["-p", "no:doctest"],
        ["tests/test_a.py::test_a"],
    ]
    for options, (ours, theirs) in zip(arguments, collected(project, *arguments), strict=True):
        assert ours == theirs, options


def test_what_a_plugin_of_the_project_collects_is_collected(project: Path) -> None:
    (project / "tests/pkg/conftest.py").write_text(YAML)
    [(ours, theirs)] = collected(project, [])
    assert "case.yaml::case" in " ".join(ours)
    assert ours == theirs
