"""Diagnosis: what `msp-bridge doctor` finds out about Stryker.NET, without building anything."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

from msp_bridge.adapter import BridgeError, Finding, Project
from msp_bridge.processes import ProcessTree

from .assumptions import CAN_STREAM, ENVIRONMENT
from .capability import Capability
from .plan import Plan

PATIENCE = 60.0  # s for `dotnet --version`


async def diagnose(project: Project) -> AsyncGenerator[Finding, None]:
    """The tool, where it will run, the SDK, and how results will come."""
    try:
        plan = Plan.make(project)
        for base in plan.bases:
            plan.check(base)
    except BridgeError as error:
        text, _, remedy = str(error).partition(": ")
        yield Finding(False, "stryker-net", text, remedy or None)
        return
    yield Finding(True, "stryker-net", f"`{plan.installation}` (not verified against the real tool yet)")
    for base in plan.bases:
        config = f"with {base.config}" if base.config else "without a configuration"
        yield Finding(True, "configuration", f"in {project.root / base.directory}, {config}")
    yield await _sdk(project)
    served = await asyncio.to_thread(Capability(project).known, plan)
    if served:
        yield Finding(True, "server", "the tool has its own, and the bridge uses it")
    if not CAN_STREAM and not served:
        yield Finding(True, "results", "come at the end of a run: on this system its live page would open a browser")


async def _sdk(project: Project) -> Finding:
    """The SDK that `dotnet` takes for this project, which may ask for one in a global.json."""
    try:
        async with ProcessTree.running(["dotnet", "--version"], cwd=project.root, env=ENVIRONMENT) as tree:
            async with asyncio.timeout(PATIENCE):
                said = [line.decode("utf-8", "replace") async for line in tree.lines()]
                code = await tree.exited()
    except (BridgeError, TimeoutError) as error:
        return Finding(False, ".NET SDK", str(error) or "`dotnet --version` gave no answer", "install the .NET SDK")
    if code != 0 or not said:
        return Finding(
            False, ".NET SDK", f"`dotnet --version` failed: {tree.errors.strip()[-300:]}", "install the .NET SDK"
        )
    return Finding(True, ".NET SDK", said[0].strip())
