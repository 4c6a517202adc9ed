"""Diagnosis: what `msp-bridge doctor` finds in a project, the project itself first, then each adapter."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator
from pathlib import Path

from msp_bridge.adapter import Finding
from msp_bridge.errors import BridgeError
from msp_bridge.workspace.adapters import installed, load, project_for
from msp_bridge.workspace.configuration import OWN_FILE, PYPROJECT, Configuration, load_configuration


async def diagnose(root: Path, options: Configuration, named: str | None) -> AsyncGenerator[Finding, None]:
    """One finding after another; a broken part doesn't hide the others."""
    known = installed()
    yield Finding(True, "project", str(root))
    try:
        configuration = options.over(load_configuration(root, named, known))
    except BridgeError as error:
        yield Finding(False, "msp-bridge", str(error))
        return
    yield Finding(True, "msp-bridge", _source(root, named, configuration))
    tools = 0
    absent: list[Finding] = []
    for name in configuration.adapters or known:
        try:
            project = project_for(name, root, configuration)
            adapter_class = load(known[name])
            adapter = adapter_class.detect(project)
            if adapter is None:
                absent.append(adapter_class.absent(project))
                continue
            tools += 1
            async with contextlib.aclosing(adapter), contextlib.aclosing(adapter.diagnose()) as findings:
                async for finding in findings:
                    yield finding
        except BridgeError as error:
            yield Finding(False, name, str(error))
    for finding in absent:  # a tool that isn't here is wrong only where it was asked for, or there is no other
        needed = configuration.adapters is not None or not tools
        yield finding if needed else Finding(True, finding.subject, f"not used: {finding.text}")


def _source(root: Path, named: str | None, configuration: Configuration) -> str:
    if configuration == Configuration():
        return "no configuration, and none needed"
    if named is not None:
        return f"configuration of {named}"
    files = [name for name in (OWN_FILE, PYPROJECT) if (root / name).is_file()]
    return f"configuration of {files[0]}" if files else "configuration of the command line"
