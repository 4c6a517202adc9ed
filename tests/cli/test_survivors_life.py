"""The life of survivors with a real tool, as docs/how-to/survivors.md has it: found, killed, accepted, ignored, and a gate."""

import json
import re
import subprocess
from pathlib import Path
from typing import Any

from support.command_line import in_process
from support.files import written

CODE = """\
def shipping(amount):
    if amount >= 50:
        return 0
    return 5


def larger(a, b):
    return a if a >= b else b


def limits():
    return 10
"""
TESTS = """\
from shop import larger, limits, shipping


def test_shipping():
    assert (shipping(10), shipping(60)) == (5, 0)


def test_larger():
    assert (larger(1, 2), larger(2, 1)) == (2, 2)


def test_limits():
    limits()
"""
AT_THE_LIMIT = (
    "\n\ndef test_at_the_limit():\n    assert (shipping(49), shipping(50)) == (5, 0)\n"  # kills that of line 2
)
NEW = "LIMIT = 1\n\n\ndef double(a):\n    return a * 2\n\n\n"  # with a survivor in its line 5
NEW_TEST = "\n\ndef test_double():\n    from shop import double\n\n    double(2)\n"


def bridge(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return in_process(root, root, *arguments)


def survivors(root: Path, *paths: str) -> list[dict[str, Any]]:
    done = bridge(root, "results", *paths, "--status", "Survived", "--json", "-")
    assert done.returncode == 0, done.stderr
    return [mutant for file in json.loads(done.stdout)["files"].values() for mutant in file["mutants"]]


def test_survivors_are_killed_accepted_and_ignored_until_the_gate_is_green(tmp_path: Path) -> None:
    configuration = '[tool.mutmut]\nsource_paths = ["shop.py"]\n'
    files = {"pyproject.toml": configuration, "shop.py": CODE, "tests/test_shop.py": TESTS}
    root = written(tmp_path / "project", files)
    source, tests = root / "shop.py", root / "tests/test_shop.py"
    found = bridge(root, "run", "--no-new-survivors")
    assert found.returncode == 1, found.stderr
    assert "survivors are not accepted" in found.stderr
    assert re.search(r"^next: msp-bridge show shop.py:\d+:\d+$", found.stdout, re.MULTILINE)

    shown = bridge(root, "show", "shop.py:2").stdout  # a survivor, with its tests
    assert "+    if amount > 50:\n" in shown
    assert "covered by  tests/test_shop.py::test_shipping\n" in shown

    tests.write_text(TESTS + AT_THE_LIMIT)  # a test is written, and kills
    again = bridge(root, "run", "--status", "Survived", "shop.py:2")
    assert "Killed" in again.stdout
    assert survivors(root, "shop.py:2") == []
    history = bridge(root, "show", "shop.py:2").stdout
    assert re.search(r"history  Killed \([^)]*\), Survived", history)
    assert "newly survived" in bridge(root, "diff").stdout

    accepted = bridge(root, "accept", "shop.py:8", "--reason", "both are equal there")  # another is accepted
    assert accepted.returncode == 0, accepted.stderr
    source.write_text(CODE.replace("return 10", "return 10  # pragma: no mutate"))  # the third is ignored
    green = bridge(root, "run", "--no-new-survivors", "--threshold", "100")
    assert green.returncode == 0, green.stdout + green.stderr
    assert re.search(r"^accepted +1 \(survivors\)", green.stdout, re.MULTILINE)

    source.write_text(NEW + source.read_text())  # a new one
    tests.write_text(tests.read_text() + NEW_TEST)
    red = bridge(root, "run", "--no-new-survivors")
    assert red.returncode == 1, red.stdout
    assert {mutant["location"]["start"]["line"] for mutant in survivors(root)} == {5}
    compared = json.loads(bridge(root, "diff", "--json").stdout)
    assert {mutant["line"] for mutant in compared["newlySurvived"]} == {5}
    assert len((root / "mutants-accepted.toml").read_text().split("[[accepted]]")) == 2
