"""Private copies of the project, for tools that write into the tree that they test."""

from __future__ import annotations

from msp_bridge.toolkit.json_lines import JsonLinesProcess, ProcessEnded
from msp_bridge.toolkit.pool import SandboxPool
from msp_bridge.toolkit.sandbox import Sandbox
from msp_bridge.toolkit.slot import erase, unwritable
from msp_bridge.toolkit.tree import identity, walk

__all__ = ["JsonLinesProcess", "ProcessEnded", "Sandbox", "SandboxPool", "erase", "identity", "unwritable", "walk"]
