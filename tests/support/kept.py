"""A project with kept runs, made without a tool: commands about results run in this process."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attrs import frozen
from click.testing import CliRunner
from click.testing import Result as Done

from msp_bridge.cli import msp_bridge
from msp_bridge.last_results import kept_reports
from msp_bridge.model import Mutant, Result, Status
from msp_bridge.reports.kept import WHOLE
from msp_bridge.reports.standard import report
from msp_bridge.source import SourceText


@frozen
class KeptProject:
    """A project at `root`, whose cache is the environment's."""

    root: Path

    def write(self, path: str, text: str) -> None:
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text)

    def mutant(self, path: str, find: str, replacement: str, mutator: str = "plus") -> Mutant:
        """The first `find` in the file becomes `replacement`."""
        source = SourceText.read(self.root / path)
        at = source.text.index(find)
        return Mutant(path, mutator, source.location(at, at + len(find)), replacement)

    def keep(
        self,
        statuses: dict[Mutant, Status],
        facts: Mapping[str, Any] | None = None,
        *,
        whole: bool = True,
        **details: Any,
    ) -> None:
        """Keep a run with these results, of the whole project or not. `facts` are about the run, in the report's `config`."""
        results = [Result(mutant, status, **details) for mutant, status in statuses.items()]
        kept_reports(self.root).keep(report(self.root, results, {**(facts or {}), WHOLE: whole}))

    def call(self, *arguments: str) -> Done:
        """The command in this process; an error of the bridge is its `exception`."""
        return CliRunner().invoke(msp_bridge, [*arguments, "--root", str(self.root)], env={"COLUMNS": "200"})
