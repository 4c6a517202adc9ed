"""Script: one of our programs in the project's interpreter, asked a line of JSON at a time."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msp_bridge.adapter import ToolError
from msp_bridge.processes import ProcessTree

DIRECTORY = Path(__file__).with_name("target")
MARK = b"msp-bridge: cosmic-ray"  # comes before the first reply: whatever an environment prints until then is none


class ScriptEnded(ToolError):
    """It ended, or was ended because it took too long, before it had answered."""


class Script:
    """A running script. Whoever starts it ends it; an `ask` that fails or is cancelled has ended it already."""

    def __init__(self, name: str, tree: ProcessTree) -> None:
        self._name, self._tree = name, tree
        self._lines = tree.lines(after=MARK)
        self.ended = False

    @classmethod
    async def start(cls, python: Path, name: str, *, cwd: Path) -> Script:
        """Start `target/<name>.py`. It writes no bytecode, and git no index: it looks at the user's tree."""
        environment = {"PYTHONDONTWRITEBYTECODE": "1", "GIT_OPTIONAL_LOCKS": "0"}
        tree = await ProcessTree.start([python, DIRECTORY / f"{name}.py"], cwd=cwd, env=environment, stdin=True)
        return cls(name, tree)

    async def ask(self, request: Mapping[str, Any] | None, seconds: float) -> dict[str, Any]:
        """The reply to `request` (None: to none, its greeting); raises `ScriptEnded`."""
        try:
            async with asyncio.timeout(seconds):
                if request is not None:
                    await self._tree.write(json.dumps(request).encode("ascii") + b"\n")
                line = await anext(self._lines, None)
            if line is None:
                await self.end()
                raise ScriptEnded(f"{self._name} ended unexpectedly: {self._last_words}")
            reply: dict[str, Any] = json.loads(line)
        except BaseException as error:
            await self.end()
            if isinstance(error, TimeoutError):
                raise ScriptEnded(f"{self._name} did not answer within {seconds:.0f} s and was ended") from error
            if isinstance(error, ToolError) and not isinstance(error, ScriptEnded):
                raise ScriptEnded(str(error)) from error
            raise
        return reply

    @property
    def _last_words(self) -> str:
        code = self._tree.returncode
        ending = "it was killed" if code is None or code < 0 else f"exit code {code}"
        return self._tree.errors.strip()[-1000:] or ending

    async def end(self) -> None:
        """End it and whatever it started; idempotent."""
        self.ended = True
        await self._tree.end()
        await self._lines.aclose()
