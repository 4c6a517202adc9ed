"""Launch: how StrykerJS is started in a private copy, and what its configuration there adds to the project's own."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from attrs import field, frozen

from msp_bridge.adapter import Mutant
from msp_bridge.processes import ProcessTree

from . import plug_n_play
from .installation import Installation, upwards
from .node import Node
from .places import Places

TOOL = "StrykerJS"  # in messages
TARGET = Path(__file__).with_name("target")
CONFIGURATION = TARGET / "configuration.mjs"
PLUGIN = TARGET / "plugin.mjs"
RUN = "msp-bridge-run.json"  # beside the copy


@frozen
class Launch:
    """One StrykerJS on one copy."""

    node: Node
    installation: Installation
    places: Places
    config: Path | None  # the project's own file: in the copy, if it is one of the project's
    warm: float  # s that a run stays ready for more when it is done

    async def start(self, *arguments: str | Path, env: Mapping[str, str] | None = None) -> ProcessTree:
        """Start `stryker` with these arguments in the copy, with a stdin."""
        told = {
            "config": None if self.config is None else str(self.config),
            "core": str(self.installation.directory),
            "run": str(self.places.copy.parent / RUN),
        }
        path = os.pathsep.join([str(self.node.program.parent), *self._programs, os.environ.get("PATH", os.defpath)])
        changes: dict[str, str | None] = {
            "MSP_BRIDGE_STRYKER": json.dumps(told),
            "PATH": path,
            "FORCE_COLOR": None,
            **(env or {}),
        }
        if plug_n_play.is_used(self.places.copy):
            changes["NODE_OPTIONS"] = plug_n_play.node_options(self.places.copy)
        argv = [self.node.program, self.installation.program, *arguments]
        return await ProcessTree.start(argv, cwd=self.places.copy, env=changes, stdin=True)

    @property
    def _programs(self) -> list[str]:
        """Where npm scripts, and all that is started by npx, find the programs of packages."""
        root = self.places.root
        return [str(path) for above in upwards(root) if (path := above / "node_modules" / ".bin").is_dir()]

    def want(self, wanted: Wanted) -> None:
        """Say what the next run is about; StrykerJS reads it when it takes its options."""
        fresh = (self.places.copy.parent / RUN).with_suffix(".new")
        fresh.unlink(missing_ok=True)
        fresh.write_text(json.dumps(wanted.content), encoding="ascii")
        fresh.replace(self.places.copy.parent / RUN)


@frozen
class Wanted:
    """What the configuration has otherwise than the project's own, in one run."""

    concurrency: int = 1
    left_out: Sequence[str] = ()  # patterns of files that aren't to be mutated
    mutate: Sequence[str] | None = None  # instead of the project's own patterns
    files: Sequence[str] | None = None  # of those that the patterns match, mutate only these
    only: Sequence[Mutant] | None = None  # leave out all others, also those within the ranges that were given
    options: Mapping[str, Any] = field(factory=dict)  # any others; None removes one
    plugin: bool = False  # whether to load ours
    warm: float = 0  # s that the run may wait for more to test when it is done

    @property
    def content(self) -> dict[str, Any]:
        """As the configuration reads it."""
        return {
            "concurrency": self.concurrency,
            "left_out": list(self.left_out),
            "mutate": None if self.mutate is None else list(self.mutate),
            "files": None if self.files is None else list(self.files),
            "only": None if self.only is None else [_key(mutant) for mutant in self.only],
            "options": dict(self.options),
            "plugin": str(PLUGIN) if self.plugin else None,
            "warm": round(1000 * self.warm),
        }


def _key(mutant: Mutant) -> list[str | int]:
    start, end = mutant.location.start, mutant.location.end
    return [mutant.path, mutant.mutator, start.line, start.column, end.line, end.column, mutant.replacement]
