"""Incremental results: verdicts of earlier runs, reused while nothing that they could depend on has changed."""

from msp_bridge.incremental.rule import Incremental, Verdicts

__all__ = ["Incremental", "Verdicts"]
