"""`msp-bridge browse` with the real mutmut: a survivor is found, a test is written, and the same program shows the kill."""

import subprocess
from pathlib import Path

import pytest
from support.browsing import browsing, pressed, shown
from support.command_line import command, environment

CODE = "def shipping(amount):\n    if amount >= 50:\n        return 0\n    return 5\n"
TESTS = "from shop import shipping\n\n\ndef test_shipping():\n    assert (shipping(10), shipping(60)) == (5, 0)\n"
AT_THE_LIMIT = "\n\ndef test_at_the_limit():\n    assert (shipping(49), shipping(50)) == (5, 0)\n"


async def test_a_survivor_of_mutmut_is_killed_by_a_test_that_is_written_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "project"
    (root / "tests").mkdir(parents=True)
    (root / "pyproject.toml").write_text('[tool.mutmut]\nsource_paths = ["shop.py"]\n')
    (root / "shop.py").write_text(CODE)
    tests = root / "tests" / "test_shop.py"
    tests.write_text(TESTS)
    monkeypatch.setenv("MSP_BRIDGE_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(root)
    assert subprocess.run(command("run"), env=environment(root), timeout=300).returncode == 0
    async with browsing(root) as pilot:
        await shown(pilot, "Survived", "+        if amount > 50:", "covered by  tests/test_shop.py::test_shipping")
        tests.write_text(TESTS + AT_THE_LIMIT)
        await pressed(pilot, "t")
        await shown(pilot, "Killed  shop.py:2", "killed by  tests/test_shop.py::test_at_the_limit", "t Test")
        await pressed(pilot, "f")
        await shown(pilot, "100.0 %", "t Test")
