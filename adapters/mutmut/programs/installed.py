"""Packages that are installed in the project's environment, of that which the adapter needs."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from msp_bridge_in_project.python_engine.programs.channel import READY, Channel


def main(_options: dict[str, Any]) -> None:
    """Send it: versions, or null for what isn't there."""
    found = {name: _version(name) for name in ("mutmut", "pytest", "libcst")}
    Channel.to_bridge().send(
        {
            **READY,
            "python": platform.python_version(),
            "implementation": platform.python_implementation(),
            **found,
        }
    )


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
