"""What surrounds a Python project: asked of its interpreter each time, for packages are installed while it is open."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msp_bridge.adapter import Project, Surroundings
from msp_bridge.python_engine.program import python_environment, start_program


async def python_surroundings(project: Project, python: Path, values: Mapping[str, Any] | None = None) -> Surroundings:
    """Interpreter, installed packages, and where else modules are imported from; and `values`. Raises ToolError."""
    process = await start_program(
        python,
        "surroundings",
        {"root": str(project.root)},
        name=str(python),
        cwd=project.root,
        env=python_environment(python, project.cache),
    )
    found = process.greeting
    await process.close()
    return Surroundings({**found["values"], **(values or {})}, tuple(map(Path, found["trees"])))
