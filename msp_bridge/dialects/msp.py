"""The MSP 0.4 dialect: its methods, the wire's params to a Selection, and mutants and results to the wire."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterable
from typing import Any, ClassVar, TypeVar

from msp_bridge import model
from msp_bridge.dialects import msp_types as msp
from msp_bridge.dialects.converter import StrictConverter
from msp_bridge.dialects.dialect import Dialect
from msp_bridge.jsonrpc.connection import Connection, Method, Service
from msp_bridge.notices import Told, UnusableFile
from msp_bridge.session import Session
from msp_bridge.workspace.selection import KnownMutant, Selection, Target

T = TypeVar("T")

PROGRESS = "reportMutationTestProgress"


class Msp(Dialect):
    """The MSP methods of one client (MSP 0.4, "Methods").

    Progress has no request id in MSP: every running request of the client sees it. The final answer of `mutationTest`
    is empty: results go out before. A `configure` can't be cancelled, as what comes behind it counts on it.
    A file in scope that can't be parsed is an error once all results are out, and of `discover` where nothing else was
    found: an answer has no place for it, and a client would take it for a file without mutants.
    """

    title: ClassVar[str] = "MSP"

    def __init__(self, session: Session, client: Connection) -> None:
        super().__init__(session, client)
        self._wire = Wire()

    @property
    def service(self) -> Service:
        """`configure` is sequential: requests behind it count on it."""
        return Service(
            {
                "configure": Method(self._configure, sequential=True),
                "discover": Method(self._discover),
                "mutationTest": Method(self._mutation_test),
            }
        )

    async def _configure(self, params: Any) -> Any:
        self._session = await self._session.configured(self._wire.configure_params(params).config_file_path)
        return self._wire.configured()

    async def _discover(self, params: Any) -> Any:
        session = self._session  # also when `configure` comes meanwhile
        selection = await asyncio.to_thread(self._wire.discover_selection, params)
        found: list[tuple[str, Any]] = []
        paths: dict[str, None] = {}
        told = Told()
        async with contextlib.aclosing(session.discover(selection, told.tell)) as batches:
            async for batch in batches:
                paths |= dict.fromkeys(batch)
                found += [
                    (path, self._wire.discovered(mutant)) for path, mutants in batch.items() for mutant in mutants
                ]
        if not found:
            told.check_files()
        for file in told.of(UnusableFile):  # of which "no mutants" would be wrong
            paths.pop(file.path, None)
        return self._wire.files(found, paths)

    async def _mutation_test(self, params: Any) -> Any:
        session = self._session  # also when `configure` comes meanwhile
        selection = await asyncio.to_thread(self._wire.test_selection, params)
        told = Told()
        async with contextlib.aclosing(session.test(selection, told.tell)) as batches:
            async for batch in batches:
                tested = ((result.mutant.path, self._wire.tested(result)) for result in batch)
                await self._client.notify(PROGRESS, self._wire.files(tested))
        told.check_files()
        return self._wire.files(())


class Wire:
    """Translates one way on the way in (JSON values; RpcError -32602 with the first faults), the other on the way out.

    What a client may send many of is read in a thread: 100,000 paths take half a second, and delay no other client.
    """

    def __init__(self) -> None:
        self._converter = StrictConverter()

    def configure_params(self, params: Any) -> msp.ConfigureParams:
        """The params of `configure`."""
        return self.params(params, msp.ConfigureParams)

    def discover_selection(self, params: Any) -> Selection:
        """The selection of the params of `discover`."""
        return _files(self.params(params, msp.DiscoverParams).files)

    def test_selection(self, params: Any) -> Selection:
        """The selection of the params of `mutationTest`: `mutants` wins over `files`."""
        selected = self.params(params, msp.MutationTestParams)
        if selected.mutants is None:
            return _files(selected.files)
        return Selection(
            mutants=tuple(_known(path, mutant) for path, file in selected.mutants.items() for mutant in file.mutants)
        )

    def configured(self) -> Any:
        """The answer of `configure`."""
        return self._converter.unstructure(msp.ConfigureResult(msp.VERSION))

    def discovered(self, mutant: model.Mutant) -> Any:
        """A DiscoveredMutant. Made by hand, as `tested`: the converter would take four times as long."""
        wire = {"id": mutant.id, "location": _wire_location(mutant.location), "mutatorName": mutant.mutator}
        if mutant.description is not None:
            wire["description"] = mutant.description
        wire["replacement"] = mutant.replacement
        return wire

    def tested(self, result: model.Result) -> Any:
        """A MutantResult."""
        wire = self.discovered(result.mutant)
        wire["status"] = result.status.value
        for name, value in (
            ("coveredBy", result.covered_by),
            ("duration", result.duration),
            ("killedBy", result.killed_by),
            ("static", result.static),
            ("statusReason", result.status_reason),
            ("testsCompleted", result.tests_completed),
        ):
            if value is not None:
                wire[name] = list(value) if isinstance(value, tuple) else value
        return wire

    def files(self, mutants: Iterable[tuple[str, Any]], named: Iterable[str] = ()) -> Any:
        """A DiscoverResult or MutationTestResult: pairs of path and mutant; each of `named` is there, if only empty."""
        files: dict[str, Any] = {path: {"mutants": []} for path in named}
        for path, mutant in mutants:
            files.setdefault(path, {"mutants": []})["mutants"].append(mutant)
        return {"files": files}

    def params(self, params: Any, expected: type[T]) -> T:
        """The params of a request, in any dialect."""
        return self._converter.params(params, expected)


def _files(files: list[msp.FileRange] | None) -> Selection:
    if files is None:
        return Selection()
    return Selection(targets=tuple(Target(file.path, _model_location(file.range)) for file in files))


def _known(path: str, mutant: msp.DiscoveredMutant) -> KnownMutant:
    location = _model_location(mutant.location)
    assert location is not None
    return KnownMutant(path, location, mutant.mutator_name, mutant.replacement)


def _model_location(location: msp.Location | None) -> model.Location | None:
    if location is None:
        return None
    start, end = location.start, location.end
    return model.Location(model.Position(start.line, start.column), model.Position(end.line, end.column))


def _wire_location(location: model.Location) -> dict[str, Any]:
    start, end = location.start, location.end
    return {"start": {"line": start.line, "column": start.column}, "end": {"line": end.line, "column": end.column}}
