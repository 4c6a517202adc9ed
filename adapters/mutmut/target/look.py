"""Look: what is installed in the project's environment."""

from __future__ import annotations

import json
import platform
import sys
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec

from .channel import Message


def main(_options: Message) -> None:
    """Print it as JSON: versions, or null for what isn't there."""
    found = {name: _version(name) for name in ("mutmut", "pytest", "libcst")}
    sys.stdout.write(
        json.dumps({"python": platform.python_version(), "fork": find_spec("fcntl") is not None, **found}) + "\n"
    )


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
