"""Diagnosis: what `msp-bridge doctor` says of StrykerJS on a project."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable

from msp_bridge.adapter import BridgeError, Finding, Project, Scope
from msp_bridge.counts import counted_mutants

from .bench import Toolchain
from .configuration import config_file, runner_of
from .installation import INSTALL, package_manager
from .mutants import Found

NOTHING = "set `mutate` in StrykerJS's configuration to the files to mutate"


async def diagnose(
    project: Project,
    toolchain: Callable[[], Awaitable[Toolchain]],
    discover: Callable[[Scope], Awaitable[list[Found]]],
) -> AsyncGenerator[Finding, None]:
    """From the installation to the mutants; stops at the first thing that is wrong. Runs no test."""
    manager = package_manager(project.root)
    try:
        tools = await toolchain()
    except BridgeError as error:
        yield wrong("stryker-js", error)
        return
    installation, node = tools.installation, tools.node
    way = "served" if installation.serves else "by its command line; from 9.3 on it stays warm between requests"
    yield Finding(True, "stryker-js", f"{installation.version} in {installation.directory}, {way}")
    yield Finding(True, "node", f"{node.version} ({node.program})")
    yield Finding(True, "packages", f"installed with {manager} (`{INSTALL[manager]} <package>`)")
    yield _configuration(project)
    try:
        found = await discover(Scope())
    except BridgeError as error:
        yield wrong("mutants", error)
        return
    ignored = sum(one.ignored is not None for one in found)
    text = counted_mutants(one.mutant for one in found) + (f", {ignored} of them ignored" if ignored else "")
    yield Finding(bool(found), "mutants", text, None if found else NOTHING)


def _configuration(project: Project) -> Finding:
    file = config_file(project)
    if file is not None:
        return Finding(True, "configuration", str(file))
    runner = runner_of(project.root)
    faster = None if runner is None else f'write stryker.config.json: {{"testRunner": "{runner}"}}, which is faster'
    return Finding(True, "configuration", "none: by default, StrykerJS starts `npm test` for each mutant", faster)


def wrong(subject: str, error: BridgeError) -> Finding:
    """The error as a finding, with the command to run, if its text ends in one."""
    text, _, remedy = str(error).partition(": run ")
    return Finding(False, subject, text, remedy.strip("`") or None)
