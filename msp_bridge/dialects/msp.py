"""The MSP 0.4 dialect: the wire's params to a Selection, and the model's mutants and results to the wire."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

from msp_bridge import model
from msp_bridge.dialects import msp_types as msp
from msp_bridge.dialects.converter import StrictConverter, WrongShape
from msp_bridge.jsonrpc.messages import ErrorCode, RpcError
from msp_bridge.workspace.selection import KnownMutant, Selection, Target

T = TypeVar("T")


class Msp:
    """Translates one way on the way in (JSON values; RpcError -32602 with every fault), the other on the way out."""

    progress_method = "reportMutationTestProgress"

    def __init__(self) -> None:
        self._converter = StrictConverter()

    def configure_params(self, params: Any) -> msp.ConfigureParams:
        """The params of `configure`."""
        return self._structure(params, msp.ConfigureParams)

    def discover_selection(self, params: Any) -> Selection:
        """What the params of `discover` select."""
        return _files(self._structure(params, msp.DiscoverParams).files)

    def test_selection(self, params: Any) -> Selection:
        """What the params of `mutationTest` select: `mutants` wins over `files`."""
        selected = self._structure(params, msp.MutationTestParams)
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

    def _structure(self, params: Any, expected: type[T]) -> T:
        try:
            return self._converter.structure({} if params is None else params, expected)
        except WrongShape as error:
            raise RpcError(ErrorCode.INVALID_PARAMS, str(error), {"faults": error.faults}) from None


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
