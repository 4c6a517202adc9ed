"""The params of LSP that we read, as its specification names them: what else clients send is left out.

The package lsprotocol has them all, and takes half a second to import, twice what `initialize` may take altogether
(`docs/reference/lsp.md`). So the tests check these types with it instead. Positions are 0-based, in units of the
negotiated encoding.
"""

from typing import Any

from attrs import field, frozen
from attrs.validators import ge

from msp_bridge.dialects.converter import Token


@frozen
class Position:
    """A place between two characters."""

    line: int = field(validator=ge(0))
    character: int = field(validator=ge(0))


@frozen
class Range:
    """`start` is inclusive, `end` exclusive."""

    start: Position
    end: Position


@frozen
class WorkspaceFolder:
    """A folder that is open in the client."""

    uri: str


@frozen
class InitializeParams:
    """`initialize`: what the client can do, and which folders it has open."""

    capabilities: dict[str, Any]
    process_id: int | None = None
    root_uri: str | None = None
    root_path: str | None = None
    workspace_folders: list[WorkspaceFolder] | None = None
    initialization_options: Any = None


@frozen
class FoldersChange:
    """The `event` of `workspace/didChangeWorkspaceFolders`."""

    added: list[WorkspaceFolder]
    removed: list[WorkspaceFolder]


@frozen
class DidChangeWorkspaceFoldersParams:
    """`workspace/didChangeWorkspaceFolders`."""

    event: FoldersChange


@frozen
class DidChangeConfigurationParams:
    """`workspace/didChangeConfiguration`."""

    settings: Any = None


@frozen
class TextDocumentItem:
    """A document that the client has opened, with its text."""

    uri: str
    text: str
    version: int = 0


@frozen
class TextDocument:
    """A document by its URI; `version` where the method has one."""

    uri: str
    version: int | None = None


@frozen
class DidOpenParams:
    """`textDocument/didOpen`."""

    text_document: TextDocumentItem


@frozen
class ContentChange:
    """`text` takes the place of what is in `range`, of the whole document without one."""

    text: str
    range: Range | None = None


@frozen
class DidChangeParams:
    """`textDocument/didChange`: the changes follow one after another."""

    text_document: TextDocument
    content_changes: list[ContentChange]


@frozen
class DocumentParams:
    """The methods that are about a document: `didSave`, `didClose`, `codeLens`, `diagnostic`."""

    text_document: TextDocument


@frozen
class PlaceParams:
    """`textDocument/hover`."""

    text_document: TextDocument
    position: Position


@frozen
class CodeActionContext:
    """Which kinds of actions the client wants; all without `only`."""

    only: list[str] | None = None


@frozen
class CodeActionParams:
    """`textDocument/codeAction`."""

    text_document: TextDocument
    range: Range
    context: CodeActionContext


@frozen
class ExecuteCommandParams:
    """`workspace/executeCommand`."""

    command: str
    arguments: list[Any] | None = None
    work_done_token: Token | None = None


@frozen
class MutantsParams:
    """`msp-bridge/mutants`: the mutants of a document or directory, of all folders without."""

    uri: str | None = None


@frozen
class ListedMutant:
    """A mutant as `msp-bridge/mutants` has listed it."""

    uri: str
    range: Range
    mutator: str
    replacement: str


@frozen
class TestParams:
    """`msp-bridge/test`: exactly `mutants`, or those of documents and directories; all of all folders without both."""

    uris: list[str] | None = None
    mutants: list[ListedMutant] | None = None


@frozen
class ProgressCancelParams:
    """`window/workDoneProgress/cancel`."""

    token: Token


@frozen
class CommandArguments:
    """The only argument of our own commands: the document, and what of it."""

    uri: str
    range: Range | None = None
    mutant: str | None = None  # its id
    reason: str | None = None  # of an accepted survivor; None: the user is asked
