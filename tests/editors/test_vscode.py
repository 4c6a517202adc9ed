"""The extension in a real VS Code, with a real mutmut: nothing but what `make vscode` builds."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import zipfile
from pathlib import Path

import pytest
from support.servers import until
from support.strays import gone, marked, new_mark
from support.workbench import EXTENSION, ROOT, bridges, needs_vscode, path_without_bridge, workbench

import msp_bridge
from forge_links import extension_manifest, extension_readme
from msp_bridge.testing import RunningProcesses

VENV = Path(sys.prefix)
SOURCES = ROOT / "editors" / "vscode"
PROJECT = {
    "pyproject.toml": '[tool.mutmut]\nsource_paths = ["calc"]\n',
    "calc/__init__.py": "",
    "calc/core.py": "def big(a):\n    return a > 10\n",
    "tests/test_core.py": "from calc.core import big\n\n\ndef test_big():\n    assert big(50)\n",
}

# A mutant of `10` keeps this test waiting for ever.
SLOW = """\
import subprocess
import sys

from calc.core import big


def test_waits():
    if not big(11):
        subprocess.run([sys.executable, "-c", "import time; time.sleep(6000)", {mark!r}])
"""

needs_bridge = pytest.mark.skipif(
    not (VENV / "bin" / "msp-bridge").exists(), reason="the bridge is not installed beside pytest"
)
needs_extension = pytest.mark.skipif(
    not EXTENSION.exists(), reason="needs the extension: `make vscode` builds it, and `make test`"
)


def environment(directory: Path) -> dict[str, str]:
    return {**os.environ, "PATH": path_without_bridge(), "MSP_BRIDGE_CACHE": str(directory / "cache")}


@needs_vscode
@needs_bridge
async def test_a_trusted_project_shows_its_mutants_and_underlines_survivors(tmp_path: Path) -> None:
    running = RunningProcesses()
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

        # one that no test kills: failed, with the change, and underlined
        await window.expand("src/shop/cart.py")
        await window.test("operator: >= to >")
        await page.element(window.row("operator: >= to >", "Failed"))
        await page.until("survived: no test fails with this change")
        await window.command("View: Focus Active Editor Group")
        await window.command("Go to Next Problem (Error, Warning, Info)")
        await page.element("document.querySelector('.squiggly-warning')")
        await page.until('Survived: ">=" -> ">"')
    assert await running.settled(0) == []


@needs_vscode
@needs_bridge
async def test_a_save_tests_the_changed_lines_of_each_folder_once_the_bridge_is_there(tmp_path: Path) -> None:
    running = RunningProcesses()
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


@needs_vscode
@needs_bridge
async def test_the_cancel_button_ends_the_tests_that_run_and_the_next_ones_run(tmp_path: Path) -> None:
    running, mark, root = RunningProcesses(), new_mark(), tmp_path / "calculator"
    patient = PROJECT["pyproject.toml"] + "timeout_constant = 6000\n"
    for path, text in {**PROJECT, "pyproject.toml": patient, "tests/test_slow.py": SLOW.format(mark=mark)}.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    (root / ".venv").symlink_to(VENV)
    async with workbench(tmp_path, root, root / "calc/core.py", environment(tmp_path)) as window:
        await window.trust()
        await window.show_testing()
        await window.expand("mutmut")
        await window.expand("calc/core.py")
        await window.page.element(window.row("line 2, number: 10 to 11", "Not yet run"))

        # the button stops the run: what had no result yet is skipped, and no process is left
        await window.test("calc/core.py")
        await until(lambda: marked(mark) != [])
        await window.cancel()
        assert await gone(mark)
        await window.page.element(window.row("line 2, number: 10 to 11", "Skipped"))
        assert bridges(root) == 1

        # the same server goes on
        await window.test("operator: > to >=")
        await window.page.element(window.row("operator: > to >=", "Failed"))
        assert bridges(root) == 1
    assert await running.settled(0) == []


def test_the_extension_has_the_version_of_the_bridge() -> None:
    assert extension_manifest()["version"] == msp_bridge.__version__


@needs_extension
def test_the_packed_extension_has_what_users_need_and_nothing_else() -> None:
    with zipfile.ZipFile(EXTENSION) as packed:
        assert packed.testzip() is None
        assert sorted(packed.namelist()) == [
            "[Content_Types].xml",
            "extension.vsixmanifest",
            "extension/LICENSE.txt",
            "extension/dist/extension.js",
            "extension/icon.png",
            "extension/package.json",
            "extension/readme.md",
        ]
        assert json.loads(packed.read("extension/package.json")) == extension_manifest()
        assert packed.read("extension/LICENSE.txt") == (ROOT / "LICENSE").read_bytes()
        assert packed.read("extension/readme.md").decode() == extension_readme()
        assert packed.read("extension/icon.png") == (SOURCES / "icon.png").read_bytes()
        about = packed.read("extension.vsixmanifest").decode()
        assert 'Type="Microsoft.VisualStudio.Services.Icons.Default" Path="extension/icon.png"' in about
        assert f'Id="msp-bridge" Version="{msp_bridge.__version__}"' in about
        program = packed.read("extension/dist/extension.js").decode()
        assert set(re.findall(r"msp-bridge/\w+", program)) == {
            "msp-bridge/mutants",
            "msp-bridge/results",
            "msp-bridge/test",
        }
