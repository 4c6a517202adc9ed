"""Any tool that writes a mutation-testing-report-schema report, through the bridge: a few lines of settings each."""

from .adapter import Generic

__all__ = ["Generic"]
