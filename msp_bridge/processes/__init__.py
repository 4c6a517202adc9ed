"""Child processes that never outlive the work that they were started for. The only code that spawns or kills."""

from msp_bridge.processes.tree import ProcessTree

__all__ = ["ProcessTree"]
