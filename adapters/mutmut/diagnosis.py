"""Findings that `msp-bridge doctor` shows of mutmut on a project."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing

from msp_bridge.adapter import BridgeError, Finding, Project
from msp_bridge.python_adapter import interpreter
from msp_bridge.python_engine import PythonEngine
from msp_bridge.text import counted

from .configuration import NAMES, config_file_of, holds_configuration, place_of_options
from .discovery import MutmutDiscovery, NoSources
from .installation import MutmutInstallation, start_discovery

UNUSED = {
    "mutate_only_covered_lines": "mutants that no test reaches are reported as NoCoverage",
    "type_check_command": "mutants are tested without a type checker",
}


async def diagnose(
    project: Project, discover: Callable[[], Awaitable[MutmutDiscovery]], engine: PythonEngine
) -> AsyncGenerator[Finding, None]:
    """Check everything from the interpreter to the first run of the tests; stop at the first thing that is wrong."""
    try:
        process = await start_discovery(project)
    except BridgeError as error:
        yield Finding.of_error("interpreter", error)
        return
    installation = MutmutInstallation.of(interpreter(project), process)
    await process.close()
    yield Finding(True, "interpreter", f"Python {installation.python} in {installation.executable}")
    if installation.fault is not None:
        yield Finding(False, "mutmut", *installation.fault)
        return
    yield Finding(True, "mutmut", f"mutmut {installation.mutmut} with pytest {installation.pytest}")
    try:
        discovery = await discover()
        found, plan = await discovery.files(), await discovery.plan()
    except NoSources as error:
        yield Finding.of_error("sources", error)
        return
    except BridgeError as error:
        yield Finding.of_error("configuration", error)
        return
    place = place_of_options(project.root, config_file_of(project))
    named = project.config_file or next((name for name in NAMES if holds_configuration(project.root / name)), None)
    yield Finding(True, "configuration", f"{named}" if named else "none: mutmut guesses where the sources are")
    files = found["files"]
    text = f"{counted(len(files), 'file')} in {', '.join(found['source_paths'])}"
    yield Finding(bool(files), "sources", text, None if files else f"set source_paths in {place}")
    for option in found["unused"]:
        yield Finding(True, option, f"not used by the bridge: {UNUSED[option]}")
    async with aclosing(engine.diagnose(plan)) as findings:
        async for finding in findings:
            yield finding
