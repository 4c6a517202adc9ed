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
    channel, greeting = Channel.to_bridge(), {**READY, **python, **found}
    if found["mutmut"] is None:
        channel.send(greeting)
        return
    try:
        from .questions import serve  # before the greeting, for which the bridge waits a limited time
    except Exception:  # the version may be why: the bridge knows it then
        channel.send(greeting)
        raise
    channel.send(greeting)
    serve(channel, options["config_file"])


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
