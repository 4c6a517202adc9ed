"""`run --verify N`: results of the run, judged again by fresh processes."""

from __future__ import annotations

import secrets
import shlex
from collections.abc import Iterable
from pathlib import Path

from attrs import evolve
from rich.console import Console
from rich.text import Text

from msp_bridge.cli.options import Options
from msp_bridge.errors import BridgeError, ConfigurationError
from msp_bridge.model import Result
from msp_bridge.reports.terminal import is_terminal
from msp_bridge.testing.oracle import Oracle, Verification, pytest_command
from msp_bridge.text import counted
from msp_bridge.workspace.adapters import MountedAdapter
from msp_bridge.workspace.interpreter import find_interpreter, named_interpreter
from msp_bridge.workspace.workspace import Workspace

COMMANDS = {  # of tools whose projects have one way to run all tests
    "cargo-mutants": ("cargo", "test", "--quiet"),
    "stryker-js": ("npm", "test"),
    "stryker-net": ("dotnet", "test"),
}


async def verify_results(
    workspace: Workspace, options: Options, results: Iterable[Result], count: int, command: str | None, console: Console
) -> None:
    """Judge `count` of the results again, drawn at random from all tools', and show which differ.

    Raises BridgeError when any does, and BaselineError when the tests don't pass without a mutant.
    """
    of_tool: dict[MountedAdapter, list[Result]] = {}
    judged = [result for result in results if result.status.detected or result.status.undetected]
    for result in secrets.SystemRandom().sample(judged, min(count, len(judged))):
        if (tool := workspace.projects.owner(result.mutant.path)) is not None:
            of_tool.setdefault(tool, []).append(result)
    found = []
    for tool, drawn in of_tool.items():
        wait = console.status(Text(f"{tool.label}: testing {counted(len(drawn), 'mutant')} again in fresh processes"))
        if is_terminal(console):
            wait.start()
        try:
            found.append(await _verify(tool, options, drawn, command))
        finally:
            wait.stop()
    for verification in found:
        for difference in (*verification.differences, *verification.unsteady):
            console.print(str(difference), soft_wrap=True)
    total = sum(verification.judged for verification in found)
    different = sum(len(verification.differences) for verification in found)
    unsteady = sum(len(verification.unsteady) for verification in found)
    console.print(
        f"verified {counted(total, 'mutant')} in fresh processes: {different} differ"
        + (f", {unsteady} by chance" if unsteady else "")
    )
    if different:
        raise BridgeError(
            f"{different} of {counted(total, 'verdict')} differ from those of a fresh process",
            "report the lines above as a fault of msp-bridge",
        )


async def _verify(tool: MountedAdapter, options: Options, drawn: list[Result], command: str | None) -> Verification:
    root = options.root / tool.folder
    oracle = await Oracle.of(root, _command(tool, options, root, command))
    inner = [evolve(each, mutant=evolve(each.mutant, path=each.mutant.path[len(tool.folder) :])) for each in drawn]
    return await oracle.compare(inner, jobs=options.configuration.jobs or 1)


def _command(tool: MountedAdapter, options: Options, root: Path, command: str | None) -> tuple[str, ...]:
    if command is not None:
        return tuple(shlex.split(command))
    if tool.adapter.name in COMMANDS:
        return COMMANDS[tool.adapter.name]
    if tool.adapter.name in ("mutmut", "cosmic-ray"):
        named = options.configuration.python
        python = find_interpreter(root, opened=options.root) if named is None else named_interpreter(named)
        if python is not None:
            return pytest_command(python)
    raise ConfigurationError(
        f"{tool.label} has no test command that --verify knows", 'name it: --verify-command "make test"'
    )
