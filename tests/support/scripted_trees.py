"""Trees of projects whose tools are scripted, and what a workspace over them answers."""

import contextlib
import json
from pathlib import Path
from typing import Any

from msp_bridge.adapter import Finding, Mutant, Notice, Result
from msp_bridge.environment.distributions import installed
from msp_bridge.workspace.configuration import Configuration
from msp_bridge.workspace.detection import detect_projects
from msp_bridge.workspace.diagnosis import diagnose
from msp_bridge.workspace.projects import ProjectMap
from msp_bridge.workspace.selection import Selection, Target
from msp_bridge.workspace.workspace import Workspace

DIGIT = {"mutator": "digit", "find": "1", "replacement": "2"}


class Tree:
    """A workspace whose projects have scripted tools, all called `scripted`."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def write(self, path: str, text: str = "") -> Path:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file

    def project(self, folder: str, *mutations: dict[str, Any], **entries: Any) -> None:
        self.write(f"{folder}scripted.json", json.dumps({"mutations": mutations or [DIGIT], **entries}))

    def detect(
        self, options: Configuration | None = None, named: str | None = None, *names: str, **others: Any
    ) -> ProjectMap:
        """With the adapter `scripted`, those of these names, and others."""
        known = {name: installed()[name] for name in ("scripted", *names)} | others
        return detect_projects(self.root, options or Configuration(), named, known)

    def opened(self, options: Configuration | None = None, named: str | None = None) -> Workspace:
        return Workspace.of(self.detect(options, named))

    @contextlib.asynccontextmanager
    async def open(self, options: Configuration | None = None, named: str | None = None) -> Any:
        async with contextlib.aclosing(self.opened(options, named)) as workspace:
            yield workspace

    async def findings(self, options: Configuration | None = None, named: str | None = None) -> list[Finding]:
        """What doctor finds, with all adapters that are installed."""
        async with contextlib.aclosing(diagnose(self.root, options or Configuration(), named)) as findings:
            return [finding async for finding in findings]


def _selection(*targets: str) -> Selection:
    return Selection(targets=tuple(map(Target, targets))) if targets else Selection()


async def paths(workspace: Workspace, *targets: str) -> list[str]:
    """Of the mutants of `targets`."""
    async with contextlib.aclosing(workspace.discover(_selection(*targets))) as mutants:
        return sorted([mutant.path async for mutant in mutants if isinstance(mutant, Mutant)])


async def statuses(workspace: Workspace, *targets: str) -> list[str]:
    """`PATH STATUS` of the mutants of `targets`."""
    async with contextlib.aclosing(workspace.test(_selection(*targets))) as results:
        return sorted([f"{one.mutant.path} {one.status.value}" async for one in results if isinstance(one, Result)])


async def notices(workspace: Workspace, *targets: str) -> list[Notice]:
    """What a test of `targets` tells beside its results."""
    async with contextlib.aclosing(workspace.test(_selection(*targets))) as results:
        return [item async for item in results if isinstance(item, Notice)]
