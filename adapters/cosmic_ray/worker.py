"""Worker: a private copy of the project and a warm script in it that runs the tests."""

from __future__ import annotations

import asyncio
import base64
import logging
from collections.abc import Mapping

from msp_bridge.adapter import Project, ToolError
from msp_bridge.toolkit import Sandbox, unwritable

from .command import TestCommand
from .run import Run
from .script import Script

log = logging.getLogger(__name__)

COPIES = 8  # for each job: how many bridges may work on one project
MARGIN = 60.0  # s that a worker may take beyond the tests' own limit
MADE_BY_MUTMUT = frozenset({"mutants"})  # many a project has both; deeper down it may be somebody's package
Files = Mapping[str, tuple[str | None, bytes]]  # path to the digest it must have (None: any), and the content instead


class Worker:
    """Runs one test command at a time. A `run` that is cancelled has ended the tests; the copy stays for the next."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._claim: asyncio.Task[Sandbox] | None = None
        self._script: Script | None = None
        self._stands_in: tuple[int, int] | None = None  # the directory that the script is in
        self._request: object = None  # the request that the copy was last refreshed for
        self.proved: object = None  # what the tests are known to pass without a mutant for, in this copy

    @property
    def copy(self) -> Sandbox:
        """The private copy, after `refresh`."""
        assert self._claim is not None
        return self._claim.result()

    async def refresh(self, request: object) -> None:
        """Bring the copy up to date, once for each request; raises `ToolError` when there's no room for it."""
        if self._request is request and request is not None:
            return
        if self._claim is not None and self._claim.done() and self._claim.exception() is not None:
            self._claim = None  # it failed when nobody waited for it any more
        if self._claim is None:  # when it is cancelled, the copy is claimed all the same, and found here the next time
            limit = COPIES * self._project.jobs
            home, root = self._project.cache, self._project.root
            claiming = asyncio.to_thread(Sandbox.claim, home, root, left_out=MADE_BY_MUTMUT, limit=limit)
            self._claim = asyncio.create_task(claiming, name="claiming a private copy")
        try:
            copy = await asyncio.shield(self._claim)
        except ToolError:
            self._claim = None
            raise
        await asyncio.to_thread(copy.refresh)
        if self._script is not None and self._stands_in != copy.identity:
            await self._script.end()
            self.proved = None
        self._request = request

    def forget(self) -> None:
        """The copy may have been left in disorder: refresh it before it is used again."""
        self._request = None

    async def run(
        self, command: TestCommand, files: Files, *, observed: bool, bytecode: bool = False, patience: float = 1
    ) -> Run:
        """Run the tests with other contents for some files; raises `ScriptEnded` when the worker died.

        `patience` multiplies the time that the tests may take.
        """
        report = self.copy.path.parent / "report.jsonl"
        request = {
            "argv": command.argv(self.copy.path),
            "timeout": command.timeout * patience,
            "env": command.environment(self.copy.path, report, observed=observed, bytecode=bytecode),
            "files": {
                path: [digest, base64.b64encode(content).decode("ascii")] for path, (digest, content) in files.items()
            },
            "report": str(report),
        }
        if self._script is None or self._script.ended:
            self._stands_in = self.copy.identity
            self._script = await Script.start(command.python, "worker", cwd=self.copy.path)
        unfinished, self._request = self._request, None
        reply = await self._script.ask(request, command.timeout * patience + MARGIN)
        if reply["outcome"] == "unwritable":
            raise unwritable(self.copy.path.parent, OSError(reply["errno"], reply["error"]))
        run = Run.of(reply)
        if run.outcome != "timeout":  # tests that were killed have put nothing right
            self._request = unfinished
        return run

    async def aclose(self) -> None:
        """End the script, and let others have the copy."""
        if self._script is not None:
            await self._script.end()
        if self._claim is not None:
            await asyncio.wait([self._claim])
            if self._claim.exception() is None:
                await asyncio.to_thread(self.copy.close)
