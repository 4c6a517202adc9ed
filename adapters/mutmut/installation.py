"""Installation: which interpreter has which mutmut, and whether the bridge can work with it."""

from __future__ import annotations

import asyncio
import importlib.metadata
import json
import re
from collections.abc import Iterator
from contextlib import aclosing
from pathlib import Path

from attrs import frozen

from msp_bridge.adapter import ToolError
from msp_bridge.processes import ProcessTree
from msp_bridge.toolkit.install import python_install

from .channel import GREETING, MARK, TARGET

OLDEST_MUTMUT, NEXT_MUTMUT = (3, 8, 1), (4,)
OLDEST_PYTEST = (9, 2)
REQUIREMENTS = ("mutmut>=3.8.1,<4", "pytest>=9.2")


@frozen
class Installation:
    """What the project's interpreter says of itself."""

    executable: Path
    python: str
    mutmut: str | None
    pytest: str | None
    fork: bool

    @classmethod
    async def look(cls, python: Path | None, root: Path) -> Installation:
        """Ask the interpreter; raises ToolError when there is none that runs."""
        if python is None:
            raise ToolError(
                f"no Python interpreter found for {root}: create an environment in .venv, "
                "or name one with the setting `python`"
            )
        async with ProcessTree.running(
            [python, TARGET, "look", "{}"], cwd=root, env={"PYTHONDONTWRITEBYTECODE": "1"}
        ) as tree:
            try:
                async with asyncio.timeout(GREETING), aclosing(tree.lines(after=MARK)) as lines:
                    line = await anext(lines, None)
            except (ToolError, TimeoutError) as error:
                said = str(error) or f"it has said nothing within {GREETING:.0f} s"
                raise ToolError(f"{python} doesn't run as Python 3.10 or later: {said}") from None
        if line is None:
            tail = (tree.errors.strip() or "no word from it").splitlines()[-1]
            raise ToolError(f"{python} doesn't run as Python 3.10 or later: {tail}")
        found = json.loads(line)
        return cls(python, found["python"], found["mutmut"], found["pytest"], found["fork"])

    @property
    def remedy(self) -> str:
        """The command that installs what is needed."""
        return python_install(self.executable, *REQUIREMENTS)

    @property
    def fault(self) -> str | None:
        """Why the bridge can't work with it, in one sentence with the next step."""
        if not self.fork:
            return "mutmut doesn't run on Windows: use WSL"
        if self.mutmut is None:
            return f"mutmut isn't installed for {self.executable}: {self.remedy}"
        if numbers(self.mutmut) < OLDEST_MUTMUT:
            edits = ", which edits your files in place," if numbers(self.mutmut) < (3,) else ""
            return f"mutmut {self.mutmut}{edits} is too old (3.8.1 or later is needed): {self.remedy}"
        if numbers(self.mutmut) >= NEXT_MUTMUT:
            return f"mutmut {self.mutmut} is newer than this bridge knows: {self.remedy}"
        if self.pytest is None or numbers(self.pytest) < OLDEST_PYTEST:
            found = (
                f"pytest {self.pytest} is too old for mutmut {self.mutmut}" if self.pytest else "pytest isn't installed"
            )
            return f"{found} (9.2 or later is needed) in {self.executable}: {self.remedy}"
        return None

    def check(self) -> None:
        """Raises ToolError with `fault`."""
        if (fault := self.fault) is not None:
            raise ToolError(fault)


def is_installed(python: Path) -> bool:
    """Whether mutmut lies in the environment of `python`; reads directories only."""
    paths = [str(path) for path in _site_packages(python)]
    return next(iter(importlib.metadata.distributions(name="mutmut", path=paths)), None) is not None


def _site_packages(python: Path) -> Iterator[Path]:
    prefix = python.parent.parent  # not resolved: a virtual environment's python is a link to its base's
    yield from prefix.glob("lib/python3*/site-packages")
    yield from prefix.glob("lib/python3*/dist-packages")
    yield from prefix.glob("local/lib/python3*/dist-packages")


def numbers(version: str) -> tuple[int, ...]:
    """The release numbers of a version, for comparing: (3, 8, 1) of "3.8.1.post2"."""
    release = re.match(r"\d+(\.\d+)*", version)
    return tuple(map(int, release[0].split("."))) if release else ()
