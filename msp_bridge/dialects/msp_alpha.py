"""The MSP 0.0.1-alpha.1 dialect: spoken by the first mutation servers (docs/reference/msp-alpha.md)."""

import contextlib
import enum
import re
from collections.abc import AsyncGenerator, Sequence
from typing import Any, ClassVar

from attrs import frozen

from msp_bridge.dialects.converter import STRICT, Token, reads
from msp_bridge.dialects.dialect import Dialect, Handshake, path_of
from msp_bridge.dialects.msp import wire_result
from msp_bridge.jsonrpc.connection import Connection, Method, Service
from msp_bridge.jsonrpc.messages import ErrorCode, RpcError
from msp_bridge.model import Status
from msp_bridge.notices import Told
from msp_bridge.rows import mutant_fields
from msp_bridge.session import Session
from msp_bridge.workspace.selection import Selection, Target

VERSION = "0.0.1-alpha.1"
# Semantic Versioning 2.0.0; what comes behind the three numbers makes no difference for us.
SEMANTIC_VERSION = re.compile(r"(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)([-+][0-9A-Za-z.+-]+)?")

MAX_GLOBS = 10_000  # in one request: each is compared with each file


class Code(enum.IntEnum):
    """The codes that are its own ("Response Message")."""

    REQUEST_CANCELLED = -32000
    SERVER_NOT_INITIALIZED = -32001
    UNKNOWN_PROTOCOL_VERSION = -5000


@frozen
class ClientInfo:
    """`version` is the protocol's ("Version handshake")."""

    version: str


@frozen
class InitializeParams:
    """`config_uri` is the tool's or the bridge's configuration file, as a file URI."""

    client_info: ClientInfo
    config_uri: str | None = None


@frozen
class GlobParams:
    """`instrument` and `mutate`: the files that one of the globs matches, all when absent."""

    glob_patterns: list[str] | None = None
    partial_result_token: Token | None = None


@frozen
class Wanted:
    """The selection of a request, and the token for its partial results."""

    selection: Selection
    token: Token | None


class MspAlpha(Dialect):
    """Serves one client. `initialize` is the first request; `instrument` discovers, `mutate` tests.

    Partial results: with a token all go out as `progress`, and the answer is empty; without one they are the answer.
    """

    title: ClassVar[str] = "MSP 0.0.1-alpha.1"

    def __init__(self, session: Session, client: Connection) -> None:
        super().__init__(session, client)
        self._handshake = Handshake(Code.SERVER_NOT_INITIALIZED)

    @property
    def service(self) -> Service:
        """The methods of the protocol."""
        methods: dict[str, Method[Any]] = {
            "initialize": Method(self._initialize, reads(InitializeParams), sequential=True),
            "instrument": Method(self._instrument, self._wanted, large=True),
            "mutate": Method(self._mutate, self._wanted, large=True),
        }
        return Service(methods, admit=self._handshake.admit, cancelled=Code.REQUEST_CANCELLED)

    async def _initialize(self, params: InitializeParams) -> Any:
        _check_version(params.client_info.version)
        path = None if params.config_uri is None else path_of(params.config_uri)
        if params.config_uri is not None and path is None:
            text = f"params.configUri: must be a file URI such as file:///a/b, not {params.config_uri[:80]!r}"
            raise RpcError(ErrorCode.INVALID_PARAMS, text)
        self._session = await self._session.configured(path)
        self._handshake.done = True
        partial = {"partialResults": True}
        capabilities = {"instrumentationProvider": partial, "mutationTestProvider": partial}
        return {"serverInfo": {"version": VERSION}, "capabilities": capabilities}

    async def _instrument(self, wanted: Wanted) -> Any:
        told = Told()

        async def pending() -> AsyncGenerator[Sequence[Any], None]:
            async with self._session.discover(wanted.selection, told.tell) as batches:
                async for files in batches:
                    pending = {"status": Status.PENDING.value}
                    found = (mutant for mutants in files.values() for mutant in mutants)
                    yield [{"fileName": mutant.path, **mutant_fields(mutant), **pending} for mutant in found]

        return await self._delivered(pending(), wanted.token, told)

    async def _mutate(self, wanted: Wanted) -> Any:
        told = Told()

        async def results() -> AsyncGenerator[Sequence[Any], None]:
            async with self._session.test(wanted.selection, told.tell) as batches:
                async for batch in batches:
                    yield [{"fileName": result.mutant.path, **wire_result(result)} for result in batch]

        return await self._delivered(results(), wanted.token, told)

    def _wanted(self, params: Any) -> Wanted:
        """The selection of `glob_patterns`: a pattern is also the name of a file: `app/[id].ts` may be one."""
        given = STRICT.params(params, GlobParams)
        globs = given.glob_patterns
        if globs is None:
            return Wanted(Selection(), given.partial_result_token)
        if len(globs) > MAX_GLOBS:
            text = f"params.globPatterns: at most {MAX_GLOBS} are taken, not {len(globs)}: name directories instead"
            raise RpcError(ErrorCode.INVALID_PARAMS, text)
        targets: list[Target] = []
        for at, glob in enumerate(globs):
            try:
                targets += (Target(glob), Target.matching(glob))
            except ValueError as error:
                raise RpcError(ErrorCode.INVALID_PARAMS, f"params.globPatterns[{at}]: {error}") from None
        return Wanted(Selection(targets=tuple(targets)), given.partial_result_token)

    async def _delivered(self, results: AsyncGenerator[Sequence[Any], None], token: Token | None, told: Told) -> Any:
        """The answer: all results, or none of them when there is a token to report them against.

        An empty one is an error where a file could not be used.
        """
        answer: list[Any] = []
        async with contextlib.aclosing(results) as batches:
            async for batch in batches:
                if token is None:
                    answer += batch
                elif batch:
                    await self._client.notify("progress", {"token": token, "value": batch})
        if not answer:
            told.check_files()
        return answer


def _check_version(version: str) -> None:
    """Versions of the same major number are compatible, 0 too ("Version handshake")."""
    parsed = SEMANTIC_VERSION.fullmatch(version)
    if parsed is None:
        text = f"params.clientInfo.version: must be a semantic version such as {VERSION}, not {version[:40]!r}"
        raise RpcError(ErrorCode.INVALID_PARAMS, text)
    if int(parsed[1]) != 0:
        text = f"the server speaks version {VERSION} of the protocol, and the client {version[:40]}: use one of 0.x.x"
        raise RpcError(Code.UNKNOWN_PROTOCOL_VERSION, text)
