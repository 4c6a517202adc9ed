"""Settings: the adapter's own table in the bridge's configuration."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Self

from attrs import frozen

from msp_bridge.adapter import ConfigurationError, Project

TABLE = "stryker-js"
KNOWN = ("node", "warm")
WARM, WARM_OF_MANY = 30.0, 10.0
LONGEST = 24 * 3600.0  # s


@frozen
class Settings:
    """What the user set."""

    node: Path | None = None  # the program, absolute
    warm: float = WARM  # s that test processes stay ready when a run is done

    @classmethod
    def of(cls, project: Project) -> Self:
        """Raises ConfigurationError for keys and values that mean nothing here."""
        for key in project.settings:
            if key not in KNOWN:
                raise ConfigurationError(f"the table {TABLE!r} has no setting {key!r}; it has: {', '.join(KNOWN)}")
        return cls(_program(project), _warm(project))


def _program(project: Project) -> Path | None:
    node = project.settings.get("node")
    if node is None:
        return None
    if not isinstance(node, str):
        raise ConfigurationError(f"the setting `node` of {TABLE!r} must be the path of a program, not {node!r}")
    program = Path(os.path.abspath(project.root / Path(node).expanduser()))
    if not program.is_file() or not os.access(program, os.X_OK):
        raise ConfigurationError(f"there is no program {program}; correct the setting `node` of {TABLE!r}")
    return program


def _warm(project: Project) -> float:
    warm = project.settings.get("warm", WARM_OF_MANY if project.nested else WARM)
    if isinstance(warm, bool) or not isinstance(warm, int | float) or not 0 <= warm <= LONGEST:
        raise ConfigurationError(f"the setting `warm` of {TABLE!r} must be a number of seconds, not {warm!r}")
    return float(warm)
