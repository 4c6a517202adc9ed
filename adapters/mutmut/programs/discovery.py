"""Discovery: greets with the versions of what the adapter needs, and answers questions when mutmut is imported."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from msp_bridge_in_project.python_engine.programs.channel import READY, Channel


def main(options: dict[str, Any]) -> None:
    """Greet with the versions, null for what isn't there, and answer `questions`."""
    found = {name: _version(name) for name in ("mutmut", "pytest", "libcst")}
    python = {"python": platform.python_version(), "implementation": platform.python_implementation()}
    channel = Channel.to_bridge()
    channel.send({**READY, **python, **found})
    if found["mutmut"] is not None:
        from .questions import serve

        serve(channel, options["config_file"])


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
