"""The path of a new user, from `doctor` to CI, on the example: the same in a virtual environment and in a container."""

import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

ROOT = Path(__file__).parents[2]
RED_TEST = "from shop import cart\n\n\ndef test_red():\n    assert cart is None, 'it is red'\n"
SURVIVOR = re.compile(r"^Survived  (\S+?:\d+:\d+)  ", re.MULTILINE)


class Bridge(Protocol):
    """Runs `msp-bridge` with `arguments` in a directory, with some variables more."""

    def __call__(
        self, directory: Path, *arguments: str, env: Mapping[str, str] = ...
    ) -> subprocess.CompletedProcess[str]: ...


def example(directory: Path) -> Path:
    """A copy of the example, without anything that a run or an editor has left there."""
    root = directory / "shop"
    shutil.copytree(ROOT / "examples/shop", root, ignore=shutil.ignore_patterns("__pycache__", ".*"))
    return root


def walk(bridge: Bridge, project: Path, reports: Path) -> Path:
    """Everything but the installation; returns the HTML report, which the caller may open. Reports go to `reports`."""
    doctor = bridge(project, "doctor")
    assert doctor.returncode == 0, doctor.stdout + doctor.stderr
    assert "mutmut" in doctor.stdout

    (project / ".github/workflows").mkdir(parents=True)
    init = bridge(project, "init", "--yes")
    assert init.returncode == 0, init.stdout + init.stderr
    assert init.stdout.endswith("\n.github/workflows/mutants.yml is written\nNext: msp-bridge run\n"), init.stdout
    shutil.rmtree(project / ".github")

    red = project / "tests/test_red.py"
    red.write_text(RED_TEST)
    run = bridge(project, "run", "src/shop/cart.py:30")
    assert run.returncode == 3, run.stdout + run.stderr
    assert "tests/test_red.py::test_red\n" in run.stderr, run.stderr
    assert "it is red" in run.stderr
    red.unlink()

    html, junit, summary = reports / "report.html", reports / "mutants.xml", reports / "summary.md"
    run = bridge(project, "run", "--html", str(html))
    assert run.returncode == 0, run.stderr
    assert all(line.startswith("msp-bridge: ") and line.endswith(" …") for line in run.stderr.splitlines()), run.stderr
    assert re.search(r"^mutmut: \d+ mutants in 2 files$", run.stdout, re.MULTILINE)
    assert re.search(r"^mutation score +\d+\.\d %", run.stdout, re.MULTILINE)
    places = SURVIVOR.findall(run.stdout)
    assert "src/shop/cart.py:30:15" in places
    rows = re.findall(r"^Survived  (.+)$", run.stdout, re.MULTILINE)
    assert len(set(rows)) == len(rows), "two mutants look the same"

    options = ["--threshold", "100", "--junit", str(junit), "--github"]
    checked = bridge(project, "run", "src/shop/cart.py:30", *options, env={"GITHUB_STEP_SUMMARY": str(summary)})
    assert checked.returncode == 1, checked.stderr
    assert "below the threshold of 100 %" in checked.stderr
    assert "::warning file=src/shop/cart.py,line=30,endLine=30,col=15," in checked.stdout
    assert "<failure" in junit.read_text()
    assert summary.read_text().startswith("### Mutation score: ")
    return html
