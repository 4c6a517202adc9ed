"""Private copies of the project, for tools that write into the tree that they test."""

from __future__ import annotations

from msp_bridge.shadow.copies import Copies
from msp_bridge.shadow.slot import erase, unwritable
from msp_bridge.shadow.tree import identity, walk
from msp_bridge.shadow.workspace import ShadowWorkspace

__all__ = ["Copies", "ShadowWorkspace", "erase", "identity", "unwritable", "walk"]
