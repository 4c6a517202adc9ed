"""Node: which of the Nodes on this machine runs the project's StrykerJS."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from attrs import frozen

from msp_bridge import reading
from msp_bridge.adapter import ToolError
from msp_bridge.processes import ProcessTree

from .configuration import read_json
from .installation import Installation, Version, numbers, upwards
from .settings import TABLE

log = logging.getLogger(__name__)

PATIENCE = 30.0  # s for an answer: a version manager's stand-in may want to download something first
PINS = (".nvmrc", ".node-version", ".tool-versions")
KEPT = (  # where version managers keep their Nodes: a variable for their home, the usual home, what is below it
    ("NVM_DIR", "~/.nvm", "versions/node/*/bin/node"),
    ("FNM_DIR", "~/.local/share/fnm", "node-versions/*/installation/bin/node"),
    ("VOLTA_HOME", "~/.volta", "tools/image/node/*/bin/node"),
    ("ASDF_DATA_DIR", "~/.asdf", "installs/nodejs/*/bin/node"),
    ("MISE_DATA_DIR", "~/.local/share/mise", "installs/node/*/bin/node"),
)


@frozen
class Node:
    """A program that answers `--version`."""

    program: Path
    version: str  # "v20.11.0"

    @classmethod
    async def ask(cls, program: Path) -> Node:
        """Run it once; raises ToolError when it is no Node, or doesn't answer."""
        try:
            async with (
                asyncio.timeout(PATIENCE),
                ProcessTree.running([program, "--version"], cwd=program.parent) as tree,
                contextlib.aclosing(tree.lines()) as lines,
            ):
                said = (await anext(lines, b"")).decode("utf-8", "replace")  # no more: it may go on for ever
        except TimeoutError:
            raise ToolError(f"{program} doesn't answer: correct the setting `node` of {TABLE!r}, or PATH") from None
        if not said.startswith("v") or not numbers(said):
            raise ToolError(f"{program} is no Node: correct the setting `node` of {TABLE!r}, or PATH")
        return cls(program, said.strip())

    def runs(self, engine: str) -> bool:
        """Whether it is new enough for `engine`, a range like ">=20.0.0"."""
        return numbers(self.version) >= numbers(engine)


async def find_node(root: Path, installation: Installation, named: Path | None) -> Node:
    """The Node that the user named, or the project pins, or the first on PATH, or the newest that some manager keeps.

    The first of these that StrykerJS can run on; only that which the user named is taken without a choice.
    Raises ToolError when there is none.
    """
    if named is not None:
        node = await Node.ask(named)
        if not node.runs(installation.engine):
            raise ToolError(_unfit(installation, node, f"name a newer one with the setting `node` of {TABLE!r}"))
        return node
    unfit: Node | None = None
    for program in _candidates(root):
        try:
            node = await Node.ask(program)
        except ToolError as error:  # as a version manager's stand-in that knows no version to run here
            log.warning("%s", error)
            continue
        if node.runs(installation.engine):
            return node
        unfit = unfit or node
    if unfit is None:
        raise ToolError(
            f"there is no Node that works on PATH: install Node {installation.engine}, or name it with the setting "
            f"`node` of {TABLE!r}"
        )
    major = numbers(installation.engine)[0]
    remedy = f"install one (`nvm install {major}`), or name it with the setting `node` of {TABLE!r}"
    raise ToolError(_unfit(installation, unfit, remedy))


def _unfit(installation: Installation, node: Node, remedy: str) -> str:
    return (
        f"StrykerJS {installation.version} needs Node {installation.engine}, but {node.program} is {node.version}: "
        f"{remedy}"
    )


def _candidates(root: Path) -> Iterator[Path]:
    kept = _kept()
    pinned = _pinned(root)
    if pinned:
        yield from (program for version, program in kept if version[: len(pinned)] == pinned)
    own = root / "node_modules" / ".bin" / "node"  # npm's package `node`
    if os.access(own, os.X_OK):
        yield own.resolve()
    on_path = shutil.which("node")
    if on_path is not None:
        yield Path(on_path)
    yield from (program for _, program in kept)


def _pinned(root: Path) -> Version:
    """The version that the project asks for, perhaps only its beginning; empty when it doesn't."""
    for directory in upwards(root):
        for name in PINS:
            try:
                lines = reading.text(directory / name).splitlines()
            except (OSError, ValueError):
                continue
            if name == ".tool-versions":
                lines = [line for line in lines if line.startswith("nodejs ")]
            if lines and numbers(lines[0]):
                return numbers(lines[0])
        volta = read_json(directory / "package.json").get("volta")
        if isinstance(volta, dict) and "node" in volta:
            return numbers(str(volta["node"]))
    return ()


def _kept() -> list[tuple[Version, Path]]:
    """What version managers have installed, the newest first."""
    found: list[tuple[Version, Path]] = []
    for variable, usual, pattern in KEPT:
        home = Path(os.environ.get(variable) or usual).expanduser()
        depth = pattern.split("/").index("*")
        found += ((numbers(program.relative_to(home).parts[depth]), program) for program in home.glob(pattern))
    return sorted(found, reverse=True)
