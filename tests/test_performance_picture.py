"""The graph of the documents is what the script draws from the figures that were measured."""

import json
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).parents[1]
DRAW = "from benchmarks.history import HISTORY, picture; import json; print(picture(json.loads(HISTORY.read_text())), end='')"


def drawn() -> str:
    done = subprocess.run(
        [sys.executable, "-c", DRAW], cwd=ROOT, capture_output=True, text=True, check=True, timeout=60
    )
    return done.stdout


def test_the_picture_is_what_the_history_says() -> None:
    """`python -m benchmarks.history` draws it anew."""
    assert (ROOT / "docs" / "images" / "performance.svg").read_text("utf-8") == drawn()


def test_each_figure_of_a_version_has_a_point() -> None:
    history = json.loads((ROOT / "benchmarks" / "history.json").read_text("utf-8"))
    figures = [name for version in history["versions"] for name in version["figures"]]
    assert set(figures) == history["figures"].keys()
    points = ElementTree.fromstring(drawn()).findall("{http://www.w3.org/2000/svg}circle")
    assert len(points) == len(figures)
