"""Launch and Observer: how StrykerJS is started and configured in a private copy, and what it sends from within.

`programs/configuration.mjs` reads what `Launch` writes; `programs/observer.mjs` sends what `Observer` understands.
"""

import asyncio
import contextlib
import json
import logging
import os
import shutil
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from attrs import evolve, field, frozen

from msp_bridge.adapter import BridgeError, Mutant, Status, ToolError
from msp_bridge.concurrency import in_thread
from msp_bridge.errors import suggestion
from msp_bridge.jsonrpc.client import MessageReader
from msp_bridge.jsonrpc.framing import frame
from msp_bridge.jsonrpc.messages import Message, notification
from msp_bridge.processes import ProcessTree
from msp_bridge.rows import mutant_row
from msp_bridge.toolkit import Isolation, own_tmpdir, writes_in
from msp_bridge.writing import replace_content

from . import plug_n_play
from .failures import BaselineFailure, failure, logged_errors, missing_plugin
from .installation import Toolchain
from .mutants import Raw, StrykerJsListing, StrykerJsTestPlan, Tested
from .sandbox import PathMap, ProjectSandbox

log = logging.getLogger(__name__)

TOOL = "StrykerJS"  # in messages
PROGRAMS = Path(__file__).with_name("programs")
CONFIGURATION, PLUGIN = "configuration.mjs", "command_line_plugin.mjs"  # there
RUN, ISOLATION = "msp-bridge-run.json", "msp-bridge-isolation"  # beside the copy
NEXT = frame(notification("msp-bridge/next", {}))  # one more mutant may start
AGAIN = frame(notification("msp-bridge/again", {}))  # the open run goes on, with the mutants that are configured now
OVER = frame(notification("msp-bridge/over", {}))  # the open run ends
STARTED = {Status.KILLED.value, Status.SURVIVED.value, Status.TIMEOUT.value, Status.RUNTIME_ERROR.value}
REMOVE = "remove it, or name the plugin that takes it in `plugins`"
UNCOVERED = (
    "no test runs any of the mutated code: where the tests run what is built from it, "
    "set `buildCommand` in StrykerJS's configuration"
)
LOG_CHECKS, LOG_INTERVAL_S = 40, 0.05  # the log comes by another pipe than the answer


@frozen
class StrykerJsRunConfig:
    """The differences of one run from the project's own configuration."""

    concurrency: int = 1
    files: Sequence[str] | None = None  # mutate only these files that the project's `mutate` matches
    only: StrykerJsTestPlan | None = None  # leave out all mutants but these
    options: Mapping[str, Any] = field(factory=dict)  # any others; None removes one
    plugin: bool = False  # whether to load the plugin for the command line
    warm: float = 0  # s that the run may stay open for more mutants when it is done


@frozen
class Launch:
    """One StrykerJS on one private copy."""

    toolchain: Toolchain
    paths: PathMap
    config: Path | None  # the project's own file, as StrykerJS sees it
    warm: float  # s that a run stays open for more mutants when it is done
    parts: frozenset[str]  # of isolation
    sandbox: ProjectSandbox = field(eq=False)
    isolation: Isolation = field(eq=False)

    @contextlib.asynccontextmanager
    async def running(
        self, command: str, *arguments: str | Path, env: Mapping[str, str] | None = None
    ) -> AsyncIterator[ProcessTree]:
        """`stryker` with these arguments in the copy, with a stdin; it ends with the block. Raises ToolError."""
        argv: list[str | Path] = [
            self.toolchain.node.program,
            self.toolchain.installation.program,
            command,
            *arguments,
        ]
        copy = self.sandbox.path
        async with contextlib.AsyncExitStack() as stack:
            changes = {**self._environment(), **(env or {})}
            if self.paths.isolated:
                argv = [*await in_thread(self._isolated, argv)]
            else:
                changes |= await stack.enter_async_context(own_tmpdir())
            running = ProcessTree.running(argv, cwd=copy, env=changes, stdin=True, shell_status=self.paths.isolated)
            yield await stack.enter_async_context(running)

    async def note(self) -> None:
        """Note which parts of isolation StrykerJS has, once it has answered, for the log and for `doctor`."""
        if self.paths.isolated:
            await in_thread(self.isolation.note, self.sandbox.home / ISOLATION)

    @property
    def programs(self) -> Path:
        """Where StrykerJS finds our files. The bridge may be installed in the project, in what the copy leaves out."""
        return self.sandbox.home / ISOLATION / PROGRAMS.name if self.paths.isolated else PROGRAMS

    def _isolated(self, argv: Sequence[str | Path]) -> list[str]:
        home, command = self.sandbox.home / ISOLATION, [str(word) for word in argv]
        with writes_in(home):
            shutil.copytree(PROGRAMS, self.programs, dirs_exist_ok=True)
            return self.isolation.command(self.sandbox.path, command, [home.parent], home, self.sandbox.around())

    def _environment(self) -> dict[str, str | None]:
        node, installation = self.toolchain.node, self.toolchain.installation
        settings = {
            "config": None if self.config is None else str(self.config),
            "core": str(installation.directory),
            "run": str(self._run_file),
        }
        # Where npm scripts, and all that is started by npx, find the programs of packages:
        places = (above / "node_modules" / ".bin" for above in (self.paths.root, *self.paths.root.parents))
        programs = [str(place) for place in places if place.is_dir()]
        path = os.pathsep.join([str(node.program.parent), *programs, os.environ.get("PATH", os.defpath)])
        changes: dict[str, str | None] = {
            "MSP_BRIDGE_STRYKER": json.dumps(settings),
            "PATH": path,
            "FORCE_COLOR": None,
        }
        if (maps := self.sandbox.maps) is not None:
            changes["NODE_OPTIONS"] = plug_n_play.node_options(maps)
        return changes

    def configure(self, run: StrykerJsRunConfig) -> None:
        """Write what the next run is about, for programs/configuration.mjs to read. Raises ToolError on a full disk."""
        content = {
            "concurrency": run.concurrency,
            "files": None if run.files is None else list(run.files),
            # programs/observer.mjs makes the same of StrykerJS's mutants
            "only": None if run.only is None else [mutant_row(mutant) for mutant in run.only.mutants],
            "options": dict(run.options),
            "plugin": str(self.programs / PLUGIN) if run.plugin else None,
            "warm": round(1000 * run.warm),
            "directories": [str(self.paths.sandbox), *(str(copy) for _, copy in self.paths.members)],
        }
        with writes_in(self.sandbox.home):
            replace_content(self._run_file, json.dumps(content))

    @property
    def _run_file(self) -> Path:
        return self.sandbox.home / RUN


class Observer:
    """Messages of one run, kept until the next `begin`."""

    def __init__(self, tree: ProcessTree, reader: MessageReader, paths: PathMap) -> None:
        self.tree, self.reader, self._paths = tree, reader, paths
        self._logged_before = ""
        self.begin()

    def begin(self) -> None:
        """A new run, or a discovery."""
        self._names: dict[str, str] = {}  # of tests, by ids that are no names
        self._listing = StrykerJsListing()  # without mutants yet
        self._missing_runner: str | None = None
        self._has_tests = True  # whether the dry run found any
        self.resume()

    def resume(self) -> None:
        """The same run goes on with other mutants."""
        self._baseline = BaselineFailure()
        self._logged_before = self._log

    def takes(self, message: Message) -> bool:
        """Whether the message comes from the observer; then it is understood here."""
        params = message.get("params") or {}
        match message.get("method"):
            case "msp-bridge/tests":
                self._names = dict(params["names"])
            case "msp-bridge/failed":
                failing = [(name, self._paths.to_user(text)) for name, text in params["failing"]]
                self._baseline = BaselineFailure(self._paths.to_user(params.get("error") or ""), failing)
            case "msp-bridge/broken":
                reason = self._paths.to_user(params["reason"])
                self._listing = evolve(self._listing, broken={**self._listing.broken, params["file"]: reason})
            case "msp-bridge/patterns":
                patterns, matched = params["patterns"], frozenset(params["matched"])
                self._listing = evolve(self._listing, patterns=patterns, matched=matched)
            case "msp-bridge/no-runner":
                self._missing_runner = params["name"]
            case "msp-bridge/options":
                unknown = {name: suggestion(name, params["known"], REMOVE) for name in params["unknown"]}
                threshold, runner = params["threshold"], params["runner"]
                self._listing = evolve(self._listing, threshold=threshold, unknown=unknown, runner=runner)
            case "msp-bridge/no-tests":
                self._has_tests = False
            case "msp-bridge/uncovered":
                log.warning(UNCOVERED)
            case _:
                return False
        return True

    def listing(self, found: Sequence[tuple[Mutant, str | None]]) -> StrykerJsListing:
        """The mutants that were found, with what was sent of the files."""
        runner, news = self._missing_runner, self._paths.to_user(self._news)
        missing = None if runner is None else missing_plugin("TestRunner", runner, news, self._paths.root)
        return evolve(self._listing, found=found, missing_runner=missing)

    def understood(self, raw: Raw) -> Raw:
        """The result with the names of tests in place of their ids, and the user's paths in its reason."""
        better: dict[str, Any] = {
            key: [self._names.get(str(id), str(id)) for id in raw[key]]
            for key in ("coveredBy", "killedBy")
            if raw.get(key) is not None
        }
        if raw.get("statusReason"):
            better["statusReason"] = self._paths.to_user(raw["statusReason"])
        return {**raw, **better}

    def uncovered(self, plan: StrykerJsTestPlan) -> Iterator[Tested]:
        """The results of a run that has found no test for its files; none when there were tests."""
        if not self._has_tests:
            raw = {"status": Status.NO_COVERAGE.value, "coveredBy": [], "statusReason": "no test imports its file"}
            yield from ((mutant, raw) for mutant in plan.mutants)

    async def allow_next(self, raw: Raw) -> None:
        """The result has been taken: the next mutant may start in its place."""
        if raw["status"] in STARTED:
            with contextlib.suppress(ToolError):  # StrykerJS has ended, but its last results are still to be read
                await self.tree.write(NEXT)

    async def failed(self, message: str) -> BridgeError:
        """The error to raise when StrykerJS gives `message` as the reason why it can't go on."""
        for _ in range(LOG_CHECKS):
            if self._baseline != BaselineFailure() or logged_errors(self._news):
                break
            await asyncio.sleep(LOG_INTERVAL_S)
        news = self._paths.to_user(self._news)
        return failure(self._paths.to_user(message), self._baseline, news, self._paths.root)

    @property
    def _log(self) -> str:
        return self.tree.errors + self.reader.noise

    @property
    def _news(self) -> str:
        """The log since the run began, as far as it is remembered."""
        return self._log.removeprefix(self._logged_before)
