"""Our programs under the project's interpreter: how they are started, and what one of them finds around a project."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Any

from msp_bridge.adapter import Project, Surroundings
from msp_bridge.python_engine.programs.bytecode import VARIABLE
from msp_bridge.toolkit.json_lines import Answer, JsonLinesProcess

PROGRAMS = Path(__file__).with_name("programs")


def pytest_command(python: str | os.PathLike[str], *arguments: str) -> tuple[str, ...]:
    """The project's own interpreter, up to the first failure. `arguments`: further ones, as where the tests are."""
    return (os.fspath(python), "-m", "pytest", "-x", "-q", *arguments)


async def start_program(
    python: Path,
    module: str,
    options: Mapping[str, object],
    *,
    name: str,
    cwd: Path,
    env: Mapping[str, str | None],
    folder: Path = PROGRAMS,
) -> JsonLinesProcess:
    """Run `module` of `folder` with the interpreter `python`; see `JsonLinesProcess.start` for the rest."""
    argv: list[str | Path] = [python, PROGRAMS / "__main__.py", folder, module, json.dumps(options)]
    kept = env.get(VARIABLE)
    bytecode = None if kept is None else Path(kept)
    return await JsonLinesProcess.start(argv, name=name, cwd=cwd, env=env, bytecode=bytecode)


def mutants_in(value: Any) -> Answer:
    """An answer about mutants that was kept (`KeptAnswers`). Raises ValueError for what is none."""
    if not isinstance(value, dict) or not isinstance(value.get("mutants"), list):
        raise ValueError("an answer without mutants")
    return value


@cache
def digest_of_programs(folder: Path) -> str:
    """Changes with the programs in `folder`, which ask the tool, and with the parts of the engine that they use."""
    files = sorted(file for place in (folder, PROGRAMS) for file in place.glob("*.py"))
    return blake2b(b"\0".join(file.read_bytes() for file in files), digest_size=16).hexdigest()


def python_environment(python: Path, cache: Path) -> Mapping[str, str | None]:
    """The environment of processes of the project's interpreter, as if its environment had been activated.

    Bytecode goes to the cache: an environment within the project is part of the user's tree too.
    """
    prefix = python.parent.parent
    return {
        "PATH": os.pathsep.join([str(python.parent), os.environ.get("PATH", os.defpath)]),
        "VIRTUAL_ENV": str(prefix) if (prefix / "pyvenv.cfg").is_file() else None,
        VARIABLE: str(cache / "bytecode"),
        "PYTHONPYCACHEPREFIX": None,
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONHOME": None,
        "PY_IGNORE_IMPORTMISMATCH": "1",  # the same module lies in the sandbox
        "PYTEST_CURRENT_TEST": None,
        "PYTEST_VERSION": None,
    }


def time_of_packages(python: Path) -> str:
    """Changes whenever a package is installed into the environment of the interpreter, or removed from it."""
    found = sorted(python.parent.parent.glob("lib/python3*/*-packages"))
    return " ".join(str(place.stat().st_mtime_ns) for place in found)


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
