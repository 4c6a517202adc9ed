"""What the Language Server Protocol costs beyond MSP: the start, and a line that is saved.

Each side has a server of its own, on a copy of `examples/shop`. An edit writes the same line anew, with another comment
at its end; one mutant of it survives. MSP is asked to test the line, and LSP is notified that the file was saved.
"""

from __future__ import annotations

import contextlib
import itertools
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from attrs import define, field

from benchmarks.client import Client
from benchmarks.laboratory import HERE, Laboratory, RealProject
from benchmarks.measuring import Comparison, Values, alternate, compare
from benchmarks.start import start

ROUNDS = 15
SHOP = HERE.parent / "examples" / "shop"
PATH, LINE = "src/shop/cart.py", "    if amount >= FREE_SHIPPING_FROM:"
LSP = ("serve", "stdio", "--dialect", "lsp")
INITIALIZE: dict[str, Any] = {"processId": None, "rootUri": None, "capabilities": {}}


def measure(laboratory: Laboratory, project: RealProject, rounds: int | None) -> list[Comparison]:
    """The project is where both start; the saved line is in the shop."""
    bridge, goes = laboratory.bridge(project), rounds or ROUNDS
    with laboratory.copy_of(project) as root:
        started = alternate(
            goes,
            {
                "LSP": lambda: start([bridge, *LSP], root, "initialize", INITIALIZE),
                "MSP": lambda: start([bridge, "serve", "stdio"], root),
            },
        )
    with _edited(laboratory, bridge, *LSP) as lsp, _edited(laboratory, bridge, "serve", "stdio") as msp:
        lsp.open()
        msp.client.request("configure", {})
        saved = alternate(goes, {"LSP": lsp.saved_in_lsp, "MSP": msp.tested_by_msp})
    most = "\N{LESS-THAN OR EQUAL TO}"
    return [
        *compare(
            "start to `initialize`, to `configure`", started, "LSP", "MSP", {"wall ms": f"{most} 1.5", "CPU ms": ""}
        ),
        *compare("a saved line to its diagnostic, to its result", saved, "LSP", "MSP", {"wall ms": f"{most} 1.3"}),
    ]


@define
class Edited:
    """A project of which one line is edited again and again, and its server."""

    client: Client
    root: Path
    _text: str
    _numbers: Iterator[int] = field(factory=lambda: itertools.count(1))

    @property
    def _document(self) -> dict[str, Any]:
        return {"uri": (self.root / PATH).as_uri()}

    def open(self) -> None:
        """As an editor does it."""
        self.client.request("initialize", {**INITIALIZE, "rootUri": self.root.as_uri()})
        self.client.notify("initialized", {})
        item = {**self._document, "languageId": "python", "version": 1, "text": self._text}
        self.client.notify("textDocument/didOpen", {"textDocument": item})

    def saved_in_lsp(self) -> Values:
        """From the save to the first diagnostic of the line."""
        text, line = self._edit()
        began = time.perf_counter()
        changed = {"textDocument": {**self._document, "version": 2}, "contentChanges": [{"text": text}]}
        self.client.notify("textDocument/didChange", changed)
        self.client.notify("textDocument/didSave", {"textDocument": self._document})
        self.client.until(
            lambda message: (
                message.get("method") == "textDocument/publishDiagnostics"
                and any(found["range"]["start"]["line"] == line - 1 for found in message["params"]["diagnostics"])
            )
        )
        return {"wall ms": 1000 * (time.perf_counter() - began)}

    def tested_by_msp(self) -> Values:
        """From the request for the line to its first result."""
        _, line = self._edit()
        span = {"start": {"line": line, "column": 1}, "end": {"line": line + 1, "column": 1}}
        results: list[float] = []
        began = time.perf_counter()
        files = {"files": [{"path": PATH, "range": span}]}
        self.client.request("mutationTest", files, lambda _: results.append(time.perf_counter()))
        return {"wall ms": 1000 * (results[0] - began)}

    def _edit(self) -> tuple[str, int]:
        """The text that is in the file now, and the line (1-based) that has another comment."""
        text = self._text.replace(LINE, f"{LINE}  # {next(self._numbers)}")
        (self.root / PATH).write_text(text, encoding="utf-8")
        return text, text[: text.index(LINE)].count("\n") + 1


@contextlib.contextmanager
def _edited(laboratory: Laboratory, bridge: Path, *arguments: str) -> Iterator[Edited]:
    with laboratory.directory() as directory:
        root = directory / "shop"
        shutil.copytree(SHOP, root, ignore=shutil.ignore_patterns("mutants", ".*"))
        options = ("--adapter", "mutmut", "--jobs", "2", "--root", str(root))
        with Client.of([bridge, *arguments, *options], root, {"MSP_BRIDGE_CACHE": str(directory / "cache")}) as client:
            yield Edited(client, root, (root / PATH).read_text(encoding="utf-8"))
