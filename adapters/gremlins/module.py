"""GoModule: one Go module with what has been measured of its tests, for as long as its files stay as they are."""

import contextlib
import logging
import re
import shutil
import tempfile
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path

from msp_bridge import reading
from msp_bridge.adapter import Mutant, Notice, Project, Result, Surroundings, ToolError
from msp_bridge.concurrency import in_thread
from msp_bridge.toolkit import JobScheduler
from msp_bridge.toolkit.tree import stamps

from .binaries import MutatedBinaries
from .execution import TestRunner, only
from .go import Go, Listed, SourceProgram
from .installation import gremlins
from .listing import GoListing
from .run import GremlinsRun
from .suite import MeasuredSuites, SuiteMeasurement

log = logging.getLogger(__name__)

SETTINGS = ("GOFLAGS", "GOOS", "GOARCH", "CGO_ENABLED", "CC", "CGO_CFLAGS", "GOEXPERIMENT", "GODEBUG")


class GoModule:
    """Everything that the requests of one project share."""

    def __init__(self, project: Project) -> None:
        self.go = Go(project.root.resolve())
        self._program = SourceProgram(self.go, project.cache / "gremlins")
        self.listing = GoListing(self.go, self._program, project.config_file)
        self.runner = TestRunner(project)
        self._scheduler = JobScheduler(lambda: project.jobs)
        self._measured: MeasuredSuites | None = None  # in the files as they were when the last request began
        self._outdated: list[MeasuredSuites] = []  # that a request may still use

    async def results(self, mutants: Sequence[Mutant]) -> AsyncGenerator[Result | Notice, None]:
        """Implement `Adapter.test`; raises `ToolError`."""
        if not mutants:
            return
        listed = await self.go.listed(*self.listing.options.for_builds)
        options = self.listing.options.with_flags(listed.flags)
        measured = await self._measured_now(SuiteMeasurement(self.go, self.runner, options), listed)
        request = Path(tempfile.mkdtemp(dir=self.runner.directory))
        binaries = MutatedBinaries(self.go, self._program, options, request, listed.flags)
        run = GremlinsRun(listed.packages, measured, binaries, self.runner, self._scheduler)
        measured.requests += 1
        try:
            async with contextlib.aclosing(run.results(dict.fromkeys(mutants))) as results:
                async for result in results:
                    yield result
        finally:
            measured.requests -= 1
            unused = [each for each in self._outdated if not each.requests]
            self._outdated = [each for each in self._outdated if each.requests]
            for directory in (request, *(each.directory for each in unused)):
                await in_thread(shutil.rmtree, directory, True)

    async def _measured_now(self, measurement: SuiteMeasurement, listed: Listed) -> MeasuredSuites:
        """Return the suites of the files as they are."""
        places = (self.go.root, *listed.outside, *([listed.workspace] if listed.workspace else []))
        state = (measurement.options, await in_thread(stamps, places))
        if self._measured is None or self._measured.state != state:
            directory = Path(tempfile.mkdtemp(dir=self.runner.directory))
            self._outdated += [] if self._measured is None else [self._measured]
            self._measured = MeasuredSuites(measurement, state, directory)
        return self._measured

    @property
    def skipped(self) -> list[str]:
        """The option of `go test` that leaves out the tests that were seen to fail without any mutant."""
        failing = self._measured.failing if self._measured else []
        return [f"-skip={only(failing)}"] if failing else []

    async def surroundings(self) -> Surroundings | None:
        """Return versions, the settings of gremlins and go, its workspace, and the directories outside of the module.

        None if go can't name them.
        """
        try:
            listed = await self.go.listed(*self.listing.options.for_builds)
        except ToolError as error:
            log.info("%s", error)
            return None
        tool = await self.go.output("version", "-m", gremlins())
        values = {
            "go": (await self.go.output("env", "GOVERSION", *SETTINGS)).decode().split("\n"),
            "go.work": await in_thread(reading.digest, listed.workspace) if listed.workspace else None,
            "options": repr(self.listing.options),
            "gremlins": re.findall(r"^\t(?:mod|dep)\t.*", tool.decode(), re.MULTILINE),
        }
        return Surroundings(values, listed.outside)

    async def aclose(self) -> None:
        """Delete the binaries."""
        await self.runner.aclose()
