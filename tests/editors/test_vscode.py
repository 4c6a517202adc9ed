"""The extension in a real VS Code, with a real mutmut: nothing but what `make vscode` builds."""

import json
import os
import re
import sys
import zipfile
from pathlib import Path

import pytest
from support.files import written
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
    "calc/core.py": (
        "def big(a):\n    return a > 10\n\n\ndef twice(a):\n    return a * 2\n\n\ndef untested(a):\n    return a / 2\n"
    ),
    "tests/test_core.py": "from calc.core import big, twice\n\n\ndef test_both():\n    assert twice(3) == 6 and big(50)\n",
}
OTHER = {
    "pyproject.toml": '[tool.mutmut]\nsource_paths = ["rates"]\ntimeout_constant = 6000\n',
    "rates/__init__.py": "",
    "rates/rate.py": "def high(a):\n    return a > 20\n",
    "tests/test_rate.py": "from rates.rate import high\n\n\ndef test_high():\n    assert high(50)\n",
}
# A mutant of `20` keeps this test waiting for ever.
SLOW = """\
import subprocess
import sys

from rates.rate import high


def test_waits():
    if not high(21):
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
async def test_two_trusted_folders_show_their_mutants_are_tested_and_cancelled_and_survivors_are_underlined(
    tmp_path: Path,
) -> None:
    running, mark = RunningProcesses(), new_mark()
    for name, files in (("one", PROJECT), ("two", OTHER | {"tests/test_slow.py": SLOW.format(mark=mark)})):
        written(tmp_path / name, files)
    both = tmp_path / "both.code-workspace"
    both.write_text(json.dumps({"folders": [{"path": "one"}, {"path": "two"}]}))
    async with workbench(tmp_path, both, tmp_path / "one/calc/core.py", environment(tmp_path)) as window:
        page = window.page
        await page.until("Restricted Mode", "def big")
        assert bridges(tmp_path / "one") == 0
        await window.trust()
        said = await page.until("msp-bridge was found neither in .venv")
        assert "pip install msp-bridge" in said
        for name in ("one", "two"):
            (tmp_path / name / ".venv").symlink_to(VENV)
        await window.command("Mutation testing: Restart the Server")

        # all mutants, though nothing is tested yet
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
        await page.element(window.row("line 7, operator: * to /", "Not yet run"))

        # those of a file: passed where the tests notice them, and skipped where no test runs
        await window.test("calc/core.py")
        await page.element(window.row("line 7, operator: * to /", "Passed"))
        await page.element(window.row("line 11, operator: / to *", "Skipped"))

        # one that no test kills: with the change, and underlined
        await window.test("line 3, operator: > to >=")
        await page.element(window.row("line 3, operator: > to >=", "Failed"))
        await page.until("survived: no test fails with this change")
        await window.command("View: Focus Active Editor Group")
        await window.command("Go to Previous Problem (Error, Warning, Info)")
        await page.until('Survived: "10" -> "11"')

        # the button stops the run: what had no result yet is skipped, and no process is left
        await window.expand("two: mutmut")
        await window.expand("rates/rate.py")
        await page.element(window.row("number: 20 to 21", "Not yet run"))
        await window.test("rates/rate.py")
        await until(lambda: marked(mark) != [])
        await window.cancel()
        assert await gone(mark)
        await page.element(window.row("number: 20 to 21", "Skipped"))
        assert bridges(tmp_path / "one") == 1  # it is of both folders

        # the same server goes on
        await window.test("line 2, operator: > to >=")
        await page.element(window.row("line 2, operator: > to >=", "Failed"))
        assert bridges(tmp_path / "one") == 1
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
