"""The MSP 0.4 dialect: its methods, the wire's params to a Selection, and mutants and results to the wire.

The params are as the specification names them, in lsprotocol's style: attrs classes, snake_case fields. On the wire the
fields are camelCase, and absent when None. Positions and locations are the model's own. The params are not compared and
have no `repr`: attrs would compile that for each of them while an editor waits.
"""

from collections.abc import Iterable
from typing import Any, ClassVar

from attrs import frozen

from msp_bridge import model
from msp_bridge.dialects.converter import STRICT, reads
from msp_bridge.dialects.dialect import Dialect
from msp_bridge.jsonrpc.connection import Method, Service
from msp_bridge.model import Location
from msp_bridge.notices import Told, UnusableFile
from msp_bridge.rows import mutant_fields, outcome_fields
from msp_bridge.workspace.selection import KnownMutant, Selection, Target

VERSION = "0.4.0"  # the VS Code client compares the whole string
PROGRESS = "reportMutationTestProgress"


@frozen(eq=False, repr=False)
class FileRange:
    """A file, a part of one, or a directory, whose path ends in `/` ("Targeting mutants")."""

    path: str
    range: Location | None = None


@frozen(eq=False, repr=False)
class ConfigureParams:
    """`configure`: the tool's or the bridge's configuration file, absolute or relative to the working directory."""

    config_file_path: str | None = None


@frozen(eq=False, repr=False)
class DiscoverParams:
    """`discover`: where to look; the whole project when absent."""

    files: list[FileRange] | None = None


@frozen(eq=False, repr=False)
class DiscoveredMutant:
    """A mutant before its test."""

    id: str
    location: Location
    mutator_name: str
    description: str | None = None
    replacement: str | None = None


@frozen(eq=False, repr=False)
class DiscoveredFile:
    """The mutants of one file."""

    mutants: list[DiscoveredMutant]


@frozen(eq=False, repr=False)
class MutationTestParams:
    """`mutationTest`: `mutants` wins over `files`; the whole project when both are absent."""

    files: list[FileRange] | None = None
    mutants: dict[str, DiscoveredFile] | None = None


class Msp(Dialect):
    """The MSP methods of one client (MSP 0.4, "Methods").

    Progress has no request id in MSP: every running request of the client sees it. The final answer of `mutationTest`
    is empty: results go out before. A `configure` can't be cancelled, as what comes behind it counts on it.
    A file in scope that can't be parsed is an error once all results are out, and of `discover` where nothing else was
    found: an answer has no place for it, and a client would take it for a file without mutants.
    """

    title: ClassVar[str] = "MSP"

    @property
    def service(self) -> Service:
        """`configure` is sequential: requests behind it count on it. A client may send 100,000 paths, or mutants."""
        return Service(
            {
                "configure": Method(self._configure, reads(ConfigureParams), sequential=True),
                "discover": Method(self._discover, to_discover, large=True),
                "mutationTest": Method(self._mutation_test, to_test, large=True),
            }
        )

    async def _configure(self, params: ConfigureParams) -> Any:
        self._session = await self._session.configured(params.config_file_path)
        return {"version": VERSION}

    async def _discover(self, selection: Selection) -> Any:
        found: list[tuple[str, Any]] = []
        paths: dict[str, None] = {}
        told = Told()
        async with self._session.discover(selection, told.tell) as batches:
            async for batch in batches:
                paths |= dict.fromkeys(batch)
                found += [(path, mutant_fields(mutant)) for path, mutants in batch.items() for mutant in mutants]
        if not found:
            told.check_files()
        for file in told.of(UnusableFile):  # of which "no mutants" would be wrong
            paths.pop(file.path, None)
        return wire_files(found, paths)

    async def _mutation_test(self, selection: Selection) -> Any:
        told = Told()
        async with self._session.test(selection, told.tell) as batches:
            async for batch in batches:
                await self._client.notify(
                    PROGRESS, wire_files((result.mutant.path, wire_result(result)) for result in batch)
                )
        told.check_files()
        return wire_files(())


def to_discover(params: Any) -> Selection:
    """The selection of the params of `discover`. Raises RpcError."""
    return _files(STRICT.params(params, DiscoverParams).files)


def to_test(params: Any) -> Selection:
    """The selection of the params of `mutationTest`: `mutants` wins over `files`. Raises RpcError."""
    selected = STRICT.params(params, MutationTestParams)
    if selected.mutants is None:
        return _files(selected.files)
    return Selection(
        mutants=tuple(
            KnownMutant(path, mutant.location, mutant.mutator_name, mutant.replacement)
            for path, file in selected.mutants.items()
            for mutant in file.mutants
        )
    )


def wire_result(result: model.Result) -> Any:
    """A MutantResult."""
    return mutant_fields(result.mutant) | outcome_fields(result)


def wire_files(mutants: Iterable[tuple[str, Any]], named: Iterable[str] = ()) -> Any:
    """A DiscoverResult or MutationTestResult: pairs of path and mutant; each of `named` is there, if only empty."""
    found: dict[str, Any] = {path: {"mutants": []} for path in named}
    for path, mutant in mutants:
        found.setdefault(path, {"mutants": []})["mutants"].append(mutant)
    return {"files": found}


def _files(files: list[FileRange] | None) -> Selection:
    if files is None:
        return Selection()
    return Selection(targets=tuple(Target(file.path, file.range) for file in files))
