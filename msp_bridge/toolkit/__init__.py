"""The toolkit for driving a tool: private copies of the project, processes beside them, and which mutant comes next."""

from __future__ import annotations

from msp_bridge.toolkit.isolation import Around, Isolation, own_tmpdir, wanted_isolation
from msp_bridge.toolkit.json_lines import JsonLinesProcess, ProcessEnded
from msp_bridge.toolkit.pool import SandboxPool, WarmProcess, WarmSandbox
from msp_bridge.toolkit.sandbox import Sandbox
from msp_bridge.toolkit.scheduling import JobScheduler
from msp_bridge.toolkit.slot import erase, unwritable
from msp_bridge.toolkit.tree import identity, walk

__all__ = [
    "Around",
    "Isolation",
    "JobScheduler",
    "JsonLinesProcess",
    "ProcessEnded",
    "Sandbox",
    "SandboxPool",
    "WarmProcess",
    "WarmSandbox",
    "erase",
    "identity",
    "own_tmpdir",
    "unwritable",
    "walk",
    "wanted_isolation",
]
