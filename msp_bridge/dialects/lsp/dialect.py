"""Lsp: the methods and the life cycle of LSP 3.17, for one client.

A command is answered when its tests have begun, because some clients wait for nothing else meanwhile (Emacs), or not
for long (Helix); only one that gives a `workDoneToken` is answered at the end, as the token ends with the answer.
"""

import asyncio
import contextlib
import functools
import logging
from collections.abc import AsyncIterator, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from msp_bridge import __version__
from msp_bridge.dialects.converter import STRICT, reads
from msp_bridge.dialects.dialect import Dialect, Handshake, path_of
from msp_bridge.dialects.lsp import types as lsp
from msp_bridge.dialects.lsp.commands import ACCEPT, COMMANDS, IGNORE, SHOW, EditorCommands, Offers, symbols
from msp_bridge.dialects.lsp.documents import Document
from msp_bridge.dialects.lsp.editor import ERROR, LENSES, Editor
from msp_bridge.dialects.lsp.explorer import Explorer
from msp_bridge.dialects.lsp.folders import Folder, Folders
from msp_bridge.dialects.lsp.publisher import SLICE, Publisher
from msp_bridge.dialects.lsp.runs import Runs
from msp_bridge.errors import BridgeError, ConfigurationError
from msp_bridge.jsonrpc.connection import Connection, Method, Service
from msp_bridge.jsonrpc.messages import Call, ErrorCode, RpcError
from msp_bridge.model import Location, Position
from msp_bridge.session import Session
from msp_bridge.source import Changed, SourceText
from msp_bridge.workspace.selection import Selection, Target

log = logging.getLogger(__name__)

NOT_INITIALIZED = -32002  # ServerNotInitialized
MAX_FOLDERS = 100  # of one client: each may keep tools warm
ON_SAVE = ("changed", "file", "off")


class Lsp(Dialect):
    """One client, from `initialize` to `exit`."""

    title: ClassVar[str] = "LSP"

    def __init__(self, session: Session, client: Connection) -> None:
        super().__init__(session, client)
        self._folders = Folders()
        self._set_up({}, None)
        self._said: set[str] = set()  # why saves could not be tested, since one could
        self._on_save = ON_SAVE[0]
        self._testing: dict[str, asyncio.Task[None]] = {}  # by URI: what tests the document's last save, or recalls
        self._handshake = Handshake(NOT_INITIALIZED)

    @property
    def service(self) -> Service:
        """Every change of a text is made at its turn: what comes behind it sees it."""
        requests = {
            "initialize": Method(self._initialize, reads(lsp.InitializeParams), sequential=True),
            "shutdown": Method(self._shutdown, sequential=True),
            "textDocument/codeAction": Method(self._code_action, reads(lsp.CodeActionParams)),
            "textDocument/codeLens": Method(self._code_lens, reads(lsp.DocumentParams)),
            "textDocument/diagnostic": Method(self._diagnostic, reads(lsp.DocumentParams)),
            "textDocument/hover": Method(self._hover, reads(lsp.PlaceParams)),
            "workspace/diagnostic": Method(self._workspace_diagnostic),
            "workspace/executeCommand": Method(self._execute, reads(lsp.ExecuteCommandParams)),
            "msp-bridge/mutants": Method(self._mutants, reads(lsp.MutantsParams)),
            "msp-bridge/test": Method(self._test, reads(lsp.TestParams), large=True),
        }
        notifications = {
            "initialized": Method(self._check),
            "exit": Method(self._exit),
            "textDocument/didOpen": Method(self._did_open, reads(lsp.DidOpenParams), sequential=True),
            "textDocument/didChange": Method(self._did_change, reads(lsp.DidChangeParams)),
            "textDocument/didSave": Method(self._did_save, reads(lsp.DocumentParams)),
            "textDocument/didClose": Method(self._did_close, reads(lsp.DocumentParams), sequential=True),
            "window/workDoneProgress/cancel": Method(self._cancel_progress, reads(lsp.ProgressCancelParams)),
            "workspace/didChangeConfiguration": Method(
                self._did_change_configuration, reads(lsp.DidChangeConfigurationParams)
            ),
            "workspace/didChangeWorkspaceFolders": Method(
                self._did_change_folders, reads(lsp.DidChangeWorkspaceFoldersParams)
            ),
        }
        return Service(requests, notifications, self._admit)

    async def serve(self) -> None:
        """Serve the client, as the base class says."""
        try:
            await super().serve()
        finally:
            for folder in self._folders:
                await self._session.release(folder.session)

    def _admit(self, call: Call) -> None:
        """The order of the life cycle (LSP 3.17, "Server lifecycle"): `exit` may come at any time."""
        if call.method != "exit":
            self._handshake.admit(call)

    def _set_up(self, capabilities: Mapping[str, Any], options: Any) -> None:
        """The parts that depend on what the client says of itself in `initialize`."""
        self._editor = Editor(self._client, self._in_background, capabilities)
        self._explorer = Explorer(self._editor, self._folders)
        self._commands = EditorCommands(self._editor, self._folders)
        listing = self._explorer if isinstance(options, Mapping) and options.get("results") is True else None
        self._publisher = Publisher(self._editor, self._folders, self._in_background)
        self._runs = Runs(self._editor, self._folders, self._publisher, listing)

    async def _initialize(self, params: lsp.InitializeParams) -> Any:
        self._set_up(params.capabilities, params.initialization_options)
        self._configure(params.initialization_options)
        if params.workspace_folders:
            uris = [folder.uri for folder in params.workspace_folders]
        elif params.root_uri or params.root_path:
            uris = [params.root_uri or Path(params.root_path or "").absolute().as_uri()]
        else:
            uris = [self._session.root.as_uri()]
        unusable = await self._open_folders(uris)
        if unusable and not any(self._folders):
            raise RpcError(ErrorCode.REQUEST_FAILED, str(unusable[0]))
        self._handshake.done = True
        self._end_with_parent(params.process_id)
        capabilities: dict[str, Any] = {
            "positionEncoding": self._editor.units.encoding,
            "textDocumentSync": {"openClose": True, "change": 2, "save": {"includeText": False}},
            "codeActionProvider": {"codeActionKinds": ["quickfix"]} if self._editor.takes_actions else True,
            "codeLensProvider": {},
            "hoverProvider": True,
            "executeCommandProvider": {"commands": COMMANDS, "workDoneProgress": True},
            "workspace": {"workspaceFolders": {"supported": True, "changeNotifications": True}},
        }
        if self._editor.pulls:
            capabilities["diagnosticProvider"] = {"interFileDependencies": True, "workspaceDiagnostics": False}
        return {"capabilities": capabilities, "serverInfo": {"name": "msp-bridge", "version": __version__}}

    async def _check(self, _: Any) -> None:
        """`initialized`: what is wrong with the configuration is said now, not at the first test."""
        for folder in self._folders:
            async with self._saying_errors():
                await folder.session.configured(None)

    async def _shutdown(self, _: Any) -> None:
        """Answered when nothing runs any more: nothing is sent to the client after that."""
        await self._end_background()
        self._handshake.shut_down = True

    async def _exit(self, _: Any) -> None:
        self.exit_code = 0 if self._handshake.shut_down else 1
        self._client.end()

    async def _did_change_configuration(self, params: lsp.DidChangeConfigurationParams) -> None:
        settings = params.settings
        self._configure(settings.get("msp-bridge", settings) if isinstance(settings, dict) else None)

    async def _did_change_folders(self, params: lsp.DidChangeWorkspaceFoldersParams) -> None:
        event = params.event
        for gone in event.removed:
            path = path_of(gone.uri)
            folder = None if path is None else self._folders.remove(Path(path).resolve())
            if folder is not None:
                await self._publisher.clear(folder)
                await self._session.release(folder.session)
        for error in await self._open_folders([folder.uri for folder in event.added]):
            await self._editor.say(str(error), ERROR)

    async def _did_open(self, params: lsp.DidOpenParams) -> None:
        item = params.text_document
        place = self._folders.locate(item.uri)
        if place is None:
            return
        folder, path = place
        source, saved = SourceText(item.text), await folder.session.source(path)
        document = Document.opened(item.uri, path, source, item.version, saved)
        self._folders.documents[item.uri] = document
        known = folder.findings.get(path)
        if known and saved and known.edit(saved.text, Changed.between(saved.text, source.text)):
            self._publisher.edited(folder, path)
        if path not in folder.findings and item.uri not in self._testing:
            self._begin_test(item.uri, self._recall(folder, path), f"recall of {path}")
        elif self._editor.pulls:
            await self._editor.publish((folder.root / path).as_uri(), [])  # from now on it is pulled

    async def _recall(self, folder: Folder, path: str) -> None:
        try:
            await self._runs.recall(folder, path)
        except BridgeError as error:  # nobody has asked: a test will say so
            log.info("what is known of %s is not shown: %s", path, error)

    async def _did_change(self, params: lsp.DidChangeParams) -> None:
        document = self._folders.documents.get(params.text_document.uri)
        place = self._folders.locate(params.text_document.uri)
        if document is not None and place is not None:
            before = document.source.text
            changed = document.change(params.content_changes, self._editor.units)
            document.version = params.text_document.version
            folder, path = place
            if path in folder.findings and folder.findings[path].edit(before, changed):
                self._publisher.edited(folder, path)

    async def _did_save(self, params: lsp.DocumentParams) -> None:
        uri = params.text_document.uri
        document, place = self._folders.documents.get(uri), self._folders.locate(uri)
        if document is None or place is None:
            return
        folder, path = place
        if path in folder.findings:
            folder.findings[path].save()
        if folder.findings:
            self._in_background(self._runs.outdate(folder), f"look at {folder.root}")
        if self._on_save == "off" or not (changed := document.begin_test()):
            return
        lines: Sequence[Location | None] = changed if self._on_save == "changed" else [None]
        selection = Selection(targets=tuple(Target(path, each, partly=True) for each in lines))
        # Not here: however many documents are saved at once, the reader has to see what comes behind them.
        work = self._test_saved(folder, document, selection)
        self._begin_test(uri, work, f"test of what is saved of {path}")

    def _begin_test(self, uri: str, work: Coroutine[Any, Any, None], name: str) -> None:
        """Do in the background what finds out about a document, in the place of what did that before."""
        if (before := self._testing.get(uri)) is not None:
            before.cancel()
        task = self._in_background(work, name)
        self._testing[uri] = task
        task.add_done_callback(functools.partial(self._forget_test, uri))

    async def _test_saved(self, folder: Folder, document: Document, selection: Selection) -> None:
        """A user who saves again and again with tests that fail gets one message, until a save can be tested."""
        async with self._saying_errors(self._said):
            if await folder.session.tools([document.path]):
                await self._runs.test(folder, selection, f"what is saved of {document.path}")
                self._said.clear()
            document.end_test()

    def _forget_test(self, uri: str, task: asyncio.Task[None]) -> None:
        if self._testing.get(uri) is task:
            del self._testing[uri]

    async def _did_close(self, params: lsp.DocumentParams) -> None:
        uri = params.text_document.uri
        place = self._folders.locate(uri)
        document = self._folders.documents.pop(uri, None)
        if place is None or document is None:
            return
        folder, path = place
        saved = await folder.session.source(path) if path in folder.findings else None
        if saved is not None:  # what was not saved is gone
            folder.findings[path].close(document.source.text, saved.text)
            await self._publisher.publish(folder, path)

    async def _cancel_progress(self, params: lsp.ProgressCancelParams) -> None:
        self._editor.cancel(params.token)

    async def _diagnostic(self, params: lsp.DocumentParams) -> Any:
        place = self._folders.locate(params.text_document.uri)
        return {"kind": "full", "items": [] if place is None else await self._publisher.diagnostics(*place)}

    async def _workspace_diagnostic(self, _: Any) -> Any:
        return {"items": await self._publisher.reports()}

    async def _hover(self, params: lsp.PlaceParams) -> Any:
        uri = params.text_document.uri
        place, source = self._folders.locate(uri), await self._folders.source(uri)
        if place is None or source is None or place[1] not in place[0].findings:
            return None
        at = self._editor.units.model(source, params.position)
        here = Location(at, Position(at.line, at.column + 1))
        return place[0].findings[place[1]].hover(here, source, self._editor.units)

    async def _code_lens(self, params: lsp.DocumentParams) -> Any:
        uri = params.text_document.uri
        place, source = self._folders.locate(uri), await self._folders.source(uri)
        if place is None or source is None or not await place[0].session.tools([place[1]]):
            return []
        offers, (folder, path) = Offers(self._editor, uri, source), place
        known = folder.known(path)
        lenses = [offers.lens(known.summary())]
        for _, lines in await asyncio.to_thread(symbols, path, source):
            lenses.append(offers.lens(known.summary(lines), lines))
            if len(lenses) % SLICE == 0:
                await asyncio.sleep(0)
        return lenses

    async def _code_action(self, params: lsp.CodeActionParams) -> Any:
        uri, only = params.text_document.uri, params.context.only
        place, source = self._folders.locate(uri), await self._folders.source(uri)
        if place is None or source is None or not await place[0].session.tools([place[1]]):
            return []
        offers, (folder, path) = Offers(self._editor, uri, source), place
        first, last = (self._editor.units.model(source, end).line for end in (params.range.start, params.range.end))
        lines = Location(Position(first, 1), Position(last + 1, 1))
        tests = offers.tests(lines, await asyncio.to_thread(symbols, path, source)) if only is None else []
        wants_fixes = only is None or any("quickfix".startswith(kind) for kind in only)
        return tests + (
            offers.fixes(folder.known(path).undetected_in(lines), folder.tool(path), folder.outdated)
            if wants_fixes
            else []
        )

    async def _execute(self, params: lsp.ExecuteCommandParams) -> Any:
        if params.command not in COMMANDS:
            raise RpcError(ErrorCode.INVALID_PARAMS, f"there is no command {params.command!r:.100}")
        if params.arguments is None or len(params.arguments) != 1:
            raise RpcError(ErrorCode.INVALID_PARAMS, 'the command needs one argument, an object with an "uri"')
        argument = STRICT.params(params.arguments[0], lsp.CommandArguments)
        folder, path = self._folders.place(argument.uri)
        if params.command == SHOW:
            return await self._commands.show(folder, path, argument)
        if params.command == IGNORE:
            return await self._commands.ignore(folder, path, argument)
        if params.command == ACCEPT:
            if await self._commands.accept(folder, path, argument):
                await self._publisher.publish(folder, path)
                self._editor.refresh(LENSES)
            return None
        selection, what = await self._commands.selected(params.command, folder, path, argument)
        if selection is None:
            return None
        if params.work_done_token is not None:
            await self._runs.test(folder, selection, what, params.work_done_token)
        else:
            self._in_background(self._test_saying_errors(folder, selection, what), params.command)
        return None

    async def _mutants(self, params: lsp.MutantsParams) -> Any:
        return await self._explorer.mutants(params.uri)

    async def _test(self, params: lsp.TestParams) -> None:
        for folder, selection, what in await self._explorer.selected(params):
            await self._runs.test(folder, selection, what)

    async def _test_saying_errors(self, folder: Folder, selection: Selection, what: str) -> None:
        async with self._saying_errors():
            await self._runs.test(folder, selection, what)

    async def _open_folders(self, uris: Sequence[str]) -> list[BridgeError]:
        errors: list[BridgeError] = []
        for uri in uris:
            if len(self._folders) + len(errors) >= MAX_FOLDERS:
                errors.append(
                    ConfigurationError(f"more than {MAX_FOLDERS} folders can't be open", "close some of them")
                )
                break
            try:
                if (path := path_of(uri)) is None:
                    raise ConfigurationError(f"{uri} is no folder of this machine")
                session = self._session.acquire(Path(path))
                if not self._folders.add(session):
                    await self._session.release(session)
            except BridgeError as error:
                log.error("%s", error)
                errors.append(error)
        return errors

    def _configure(self, settings: Any) -> None:
        wanted = settings.get("testOnSave") if isinstance(settings, Mapping) else None
        if wanted in ON_SAVE:
            self._on_save = wanted
        elif wanted is not None:
            log.error("testOnSave must be one of %s, not %r", ", ".join(ON_SAVE), wanted)

    @contextlib.asynccontextmanager
    async def _saying_errors(self, said: set[str] | None = None) -> AsyncIterator[None]:
        """Show a BridgeError as a message, and log it. One that is in `said` is only logged; others are added to it."""
        try:
            yield
        except BridgeError as error:
            log.error("%s", error)
            if said is None or str(error) not in said:
                await self._editor.say(str(error), ERROR)
            if said is not None:
                said.add(str(error))
