"""Copies of the projects in `tests/projects`, and of the examples."""

import shutil
from pathlib import Path

PROJECTS = Path(__file__).parents[1] / "projects"
EXAMPLES = Path(__file__).parents[2] / "examples"
MADE = shutil.ignore_patterns("__pycache__", "node_modules", "target", "out", "bin", "obj", "StrykerOutput")  # by tools


def copied(project: str | Path, to: Path, name: str = "project") -> Path:
    """The project, by its name or path, copied to `name` below `to`."""
    return Path(shutil.copytree(PROJECTS / project, to / name, ignore=MADE))
