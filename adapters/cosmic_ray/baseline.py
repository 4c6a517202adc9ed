"""Baseline: in a private copy the tests must pass without a mutant, and fail when its modules are broken."""

from __future__ import annotations

import asyncio
import logging
import shutil
from collections import deque
from collections.abc import Hashable, Sequence
from pathlib import Path

from attrs import define, field

from msp_bridge.adapter import ToolError

from .command import TestCommand
from .run import Run
from .worker import Files, Worker

log = logging.getLogger(__name__)

CANARY = b'raise RuntimeError("msp-bridge: this module is broken on purpose")\n'
REMEMBERED = 16  # versions of the project
DAMAGED = "marshal data"  # bytecode that a full disk has cut short (https://github.com/python/cpython/issues/126606)
PATIENCE = 3.0  # times `timeout` for tests that start without bytecode


@define(eq=False)
class Baseline:
    """What has been proved of the tests, by the digest of the project's content."""

    observed: bool = True  # whether the pytest plugin can be used
    _green: deque[Hashable] = field(factory=lambda: deque(maxlen=REMEMBERED))
    _noticed: set[Hashable] = field(factory=set)  # commands that were seen to test the copy
    _turn: asyncio.Lock = field(factory=asyncio.Lock)

    async def prove(self, worker: Worker, command: TestCommand, modules: Sequence[str]) -> None:
        """Raises `ToolError` when the tests fail without a mutant, take too long, or don't test the copy.

        One run is proof for all copies with the same content, but each copy has its first run: it makes the bytecode
        that the runs with mutants use, for these write none.
        """
        key = (worker.copy.digest, command)
        if worker.proved == key:
            return
        if worker.proved is None:
            await self._run(worker, command, key, modules)
        else:
            async with self._turn:
                if key not in self._green:
                    await self._run(worker, command, key, modules)
        worker.proved = key

    async def _run(self, worker: Worker, command: TestCommand, key: Hashable, modules: Sequence[str]) -> None:
        run = await self._attempt(worker, command)
        if DAMAGED in (run.reason or ""):
            await asyncio.to_thread(_forget_bytecode, worker.copy.path)
            run = await self._attempt(worker, command)
        if run.outcome == "passed" and run.duration > command.timeout * 1000:
            run = await self._attempt(worker, command)  # with the bytecode that the first one wrote
        if run.outcome == "timeout" or (run.outcome == "passed" and run.duration > command.timeout * 1000):
            raise ToolError(
                f"the tests take {run.duration / 1000:.1f} s without any mutant, but `timeout` is {command.timeout:g}: "
                "raise it in cosmic-ray's configuration"
            )
        if run.outcome != "passed":
            raise ToolError(self._red(run, command, others=key in self._green))
        self._refuse_strangers(run, command, modules)
        if command not in self._noticed:
            await self._expect_canary(worker, command, modules)
            self._noticed.add(command)
        self._green.append(key)

    async def _attempt(self, worker: Worker, command: TestCommand) -> Run:
        run = await self._plain(worker, command, observed=self.observed)
        if run.outcome == "failed" and self.observed and not run.observed:
            # An interpreter that ignores PYTHONPATH can't import the plugin that PYTEST_ADDOPTS names.
            plain = await self._plain(worker, command, observed=False)
            if plain.outcome == "passed":
                log.warning("the tests don't take the bridge's pytest plugin: which test kills a mutant stays unknown")
                self.observed = False
                return plain
        return run

    async def _plain(self, worker: Worker, command: TestCommand, *, observed: bool) -> Run:
        run = await worker.run(command, {}, observed=observed, bytecode=True, patience=PATIENCE)
        if run.was_killed:  # by somebody else: that says nothing of the tests
            run = await worker.run(command, {}, observed=observed, bytecode=True, patience=PATIENCE)
        return run

    def _red(self, run: Run, command: TestCommand, *, others: bool) -> str:
        shown = " ".join(command.words)
        if run.outcome == "unable":
            return f"`{shown}` can't be run: {run.reason}; correct `test-command` in cosmic-ray's configuration"
        if others:
            return f"the tests fail when they run in two private copies at once: set `jobs` to 1 ({run.reason})"
        return f"the tests fail without any mutant, mend them first (`{shown}`, in a private copy): {run.reason}"

    def _refuse_strangers(self, run: Run, command: TestCommand, modules: Sequence[str]) -> None:
        mutated = {str(command.root / module) for module in modules}
        strangers = sorted(mutated.intersection(run.outside))
        if strangers:
            raise ToolError(
                f"the tests import {strangers[0]} from your tree and not from the private copy, so that no mutant is "
                "tested: remove what adds that path (a conftest.py, a .pth file, an absolute path in the test command)"
            )

    async def _expect_canary(self, worker: Worker, command: TestCommand, modules: Sequence[str]) -> None:
        present = [module for module in modules if (worker.copy.path / module).is_file()]
        broken: Files = dict.fromkeys(present, (None, CANARY))
        run = await worker.run(command, broken, observed=self.observed, patience=PATIENCE)
        if run.was_killed:
            run = await worker.run(command, broken, observed=self.observed, patience=PATIENCE)
        if run.outcome == "passed":
            raise ToolError(
                f"the tests pass in {worker.copy.path} although every module of `module-path` is broken there: they "
                f"import an installed package, or none. Install it editable (`{command.python} -m pip install -e .`), "
                "and correct `module-path` and `test-command`"
            )


def _forget_bytecode(copy: Path) -> None:
    for directory in list(copy.rglob("__pycache__")):
        shutil.rmtree(directory, ignore_errors=True)
