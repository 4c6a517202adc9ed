"""TestPlan: how an adapter has the tests run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attrs import asdict, field, frozen

BASELINE_TIMEOUT_S = 3600.0


@frozen
class TestPlan:
    """How the tests are started and limited. Equal plans need no new measurement."""

    __test__ = False  # pytest would take it for a test

    python: Path  # the project's interpreter
    arguments: tuple[str, ...]  # of pytest
    sources: tuple[str, ...]  # the files that may be mutated, relative to the root, with `/`
    limit: tuple[float, float]  # s, factor: tests that take t seconds without a mutant may take (t + s) * factor
    remedy: str  # the setting that selects tests or leaves some out
    environment: str = ""  # names all else that a measurement depends on, such as the tool's version
    always_fresh: bool = False  # every mutant in a process that imports everything anew
    debug: bool = False
    exit_kills: bool = False  # a mutant that ends the process of the tests, but not with 0, is Killed
    dependencies: bool = False  # note what each verdict depends on, which takes its time
    baseline_timeout_s: float = field(factory=lambda: BASELINE_TIMEOUT_S)  # for all tests, without a mutant
    cpu_limited: bool = False  # nobody has chosen `limit`: an endless loop is ended sooner, by the CPU time it takes
    exact: bool = False  # the whole suite is run with each survivor, whatever that costs

    def message(self, content: str, files: Mapping[str, str]) -> dict[str, Any]:
        """The fields that the host's own plan has, too; see `TargetPlan` for `content` and `files`."""
        values = asdict(self, filter=lambda field, _: field.name not in ("python", "remedy"))
        return {"content": content, "files": files, **values}
