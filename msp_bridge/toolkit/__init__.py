"""The toolkit for driving a tool: private copies of the project, processes beside them, and which mutant comes next."""

from msp_bridge.toolkit.command_proof import CommandOfTests, CommandProof
from msp_bridge.toolkit.command_run import CommandRun, RunPlace, RunPlaces, Stale, ToolOutput, shown
from msp_bridge.toolkit.isolation import Around, Isolation, own_tmpdir, wanted_isolation
from msp_bridge.toolkit.json_lines import JsonLinesProcess, ProcessEnded
from msp_bridge.toolkit.pool import PrivateDirectory, SandboxPool, WarmProcess, WarmSandbox
from msp_bridge.toolkit.sandbox import Sandbox
from msp_bridge.toolkit.scheduling import JobScheduler
from msp_bridge.toolkit.slot import erase, unwritable, writes_in
from msp_bridge.toolkit.tree import identity, walk

__all__ = [
    "Around",
    "CommandOfTests",
    "CommandProof",
    "CommandRun",
    "Isolation",
    "JobScheduler",
    "JsonLinesProcess",
    "PrivateDirectory",
    "ProcessEnded",
    "RunPlace",
    "RunPlaces",
    "Sandbox",
    "SandboxPool",
    "Stale",
    "ToolOutput",
    "WarmProcess",
    "WarmSandbox",
    "erase",
    "identity",
    "own_tmpdir",
    "shown",
    "unwritable",
    "walk",
    "wanted_isolation",
    "writes_in",
]
