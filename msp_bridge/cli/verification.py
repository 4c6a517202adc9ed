"""`run --verify N`: results of the run, checked by fresh processes."""

import asyncio
import secrets
import shlex
from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.text import Text

from msp_bridge.adapter import HasFreshResults, HasTestCommand
from msp_bridge.errors import BridgeError, ConfigurationError
from msp_bridge.model import Result
from msp_bridge.notices import PhaseReport
from msp_bridge.phases import VERIFYING, heard_by
from msp_bridge.reports.terminal import PhaseLines, is_terminal
from msp_bridge.testing.comparison import Difference, FreshTool, Verification, is_verifiable
from msp_bridge.testing.oracle import Oracle
from msp_bridge.text import counted
from msp_bridge.workspace.projects import MountedAdapter
from msp_bridge.workspace.workspace import Workspace


async def verify_results(
    workspace: Workspace,
    results: Iterable[Result],
    count: int,
    command: str | None,
    console: Console,
    lines: PhaseLines | None,
) -> None:
    """Check `count` of the results, drawn at random from all tools', and show which differ; `lines` say each phase.

    `command` runs the tests, in place of the tool's own. Raises BridgeError when any verdict differs, and BaselineError
    when the tests don't pass without a mutant.
    """
    of_tool: dict[MountedAdapter, list[Result]] = {}
    verifiable = [result for result in results if is_verifiable(result)]
    for result in secrets.SystemRandom().sample(verifiable, min(count, len(verifiable))):
        if (tool := workspace.projects.owner(result.mutant.path)) is not None:
            of_tool.setdefault(tool, []).append(result)
    found = [await _verify(workspace, tool, drawn, command, console, lines) for tool, drawn in of_tool.items()]
    total = sum(verification.checked for verification in found)
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


async def _verify(
    workspace: Workspace,
    tool: MountedAdapter,
    drawn: list[Result],
    command: str | None,
    console: Console,
    lines: PhaseLines | None,
) -> Verification:
    """Verify one tool; each difference is shown as soon as it is known, since a fresh process may take minutes."""
    projects = workspace.projects
    wait = console.status(Text(tool.label))
    done = differ = 0

    def show(phase: PhaseReport) -> None:
        if lines is None:
            wait.update(Text(f"{tool.label}: {phase}"))
        else:
            lines.show(phase)

    def checked() -> PhaseReport:
        return PhaseReport(VERIFYING, done, len(drawn))

    def report(difference: Difference | None) -> None:
        nonlocal done, differ
        done += 1
        show(checked())
        if difference is not None:
            differ += not difference.by_chance
            console.print(str(difference), soft_wrap=True)

    inner = [tool.own_result(result) for result in drawn]
    if is_terminal(console):
        wait.start()
    show(checked())
    try:
        if isinstance(tool.adapter, HasFreshResults):
            if command is not None:
                console.print(f"{tool.label}: the tool itself says what is right, not --verify-command")
            fresh = FreshTool(tool.adapter)
            with heard_by(show):
                return await fresh.compare(inner, known=await fresh.verdicts(inner), report=report)
        with heard_by(show):
            words = await _command_of(tool) if command is None else shlex.split(command)
        oracle = await Oracle.of(projects.root / tool.folder, words)
        return await oracle.compare(inner, jobs=projects.configuration.jobs or 1, report=report)
    except asyncio.CancelledError:
        console.print(f"{tool.label}: {checked()}; {differ} differ")
        raise
    finally:
        wait.stop()


async def _command_of(tool: MountedAdapter) -> Sequence[str]:
    """The words of the tool's own command for the tests. Raises BridgeError."""
    known = await tool.adapter.test_command() if isinstance(tool.adapter, HasTestCommand) else None
    if known is None:
        raise ConfigurationError(
            f"{tool.label} has no test command that --verify knows", 'name it: --verify-command "make test"'
        )
    return known
