"""The extension in a real VS Code, with a real mutmut: nothing but what `make vscode` builds."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path

import pytest
from support.workbench import ROOT, bridges, needs_vscode, path_without_bridge, workbench

import msp_bridge
from msp_bridge.testing import Running

VENV = Path(sys.prefix)
EXTENSION = ROOT / "editors" / "vscode"
PROJECT = {
    "pyproject.toml": '[tool.mutmut]\nsource_paths = ["calc"]\n',
    "calc/__init__.py": "",
    "calc/core.py": "def big(a):\n    return a > 10\n",
    "tests/test_core.py": "from calc.core import big\n\n\ndef test_big():\n    assert big(50)\n",
}

pytestmark = [
    needs_vscode,
    pytest.mark.skipif(not (VENV / "bin" / "msp-bridge").exists(), reason="the bridge is not installed beside pytest"),
]


def environment(directory: Path) -> dict[str, str]:
    return {**os.environ, "PATH": path_without_bridge(), "MSP_BRIDGE_CACHE": str(directory / "cache")}


async def test_a_trusted_project_has_its_mutants_in_the_testing_view_and_survivors_underlined(tmp_path: Path) -> None:
    running = Running()
    shop = tmp_path / "shop"
    shutil.copytree(ROOT / "examples" / "shop", shop, ignore=shutil.ignore_patterns(".*", "mutants", "__pycache__"))
    (shop / ".venv").symlink_to(VENV)
    async with workbench(tmp_path, shop, shop / "src/shop/cart.py", environment(tmp_path)) as window:
        page = window.page
        await page.until("Restricted Mode", "def subtotal")
        assert bridges(shop) == 0
        await window.trust()

        # all mutants, though nothing is tested yet
        await window.show_testing()
        await window.expand("mutmut")
        await window.expand("src/shop/receipt.py")
        await page.element(window.row("line 9, number: 1 to 2", "Not yet run"))
        assert bridges(shop) == 1

        # those of a file: passed where the tests notice them, and skipped where no test runs
        await window.test("src/shop/receipt.py")
        await page.element(window.row("line 9, number: 1 to 2", "Passed"))
        await page.element(window.row("line 11, operator: * to /", "Skipped"))

        # one that no test notices: failed, with the change, and underlined
        await window.expand("src/shop/cart.py")
        await window.test("operator: >= to >")
        await page.element(window.row("operator: >= to >", "Failed"))
        await page.until("survived: no test fails with this change")
        await window.command("View: Focus Active Editor Group")
        await window.command("Go to Next Problem (Error, Warning, Info)")
        await page.element("document.querySelector('.squiggly-warning')")
        await page.until('Survived: ">=" -> ">"')
    assert await running.settled(0) == []


async def test_a_save_tests_the_changed_lines_of_each_folder_once_the_bridge_is_there(tmp_path: Path) -> None:
    running = Running()
    for name in ("one", "two"):
        for path, text in PROJECT.items():
            (tmp_path / name / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name / path).write_text(text)
    both = tmp_path / "both.code-workspace"
    both.write_text(json.dumps({"folders": [{"path": "one"}, {"path": "two"}]}))
    async with workbench(tmp_path, both, tmp_path / "one/calc/core.py", environment(tmp_path)) as window:
        page = window.page
        await window.trust()
        said = await page.until("msp-bridge was found neither in .venv")
        assert "pip install msp-bridge" in said
        for name in ("one", "two"):
            (tmp_path / name / ".venv").symlink_to(VENV)
        await window.command("Mutation testing: Restart the Server")
        await window.show_testing()
        await page.element(window.row("two: mutmut", "Not yet run"))
        await window.expand("one: mutmut")
        await window.expand("calc/core.py")
        await page.element(window.row("line 2, number: 10 to 11", "Not yet run"))

        # a save tests what it has changed, and the view has it, too
        await window.command("View: Focus Active Editor Group")
        await page.type("# the beginning\n")
        await page.press("ArrowDown")
        await page.press("End")
        await page.type("  # changed")
        await page.press("s", control=True)
        await page.element("document.querySelector('.squiggly-warning')")
        await page.element(window.row("line 3, number: 10 to 11", "Failed"))
    assert await running.settled(0) == []


def test_the_extension_has_the_version_of_the_bridge() -> None:
    assert json.loads((EXTENSION / "package.json").read_text())["version"] == msp_bridge.__version__
