"""Discovery: which files mutmut mutates, and the mutants of a text. Reads directories, runs nothing."""

from __future__ import annotations

import bisect
import re

from .channel import READY, Channel, Message
from .configuration import Configuration
from .mutations import Change, Mutations


def main(options: Message) -> None:
    """Answer the bridge until it closes the channel; the current directory is the project's root."""
    channel = Channel.to_bridge()
    configuration = Configuration(options["config_file"])
    channel.send(READY)
    for request in channel.messages():
        try:
            answer = files(configuration) if request["do"] == "files" else mutants(request["path"], request["text"])
        except Exception as error:  # whatever mutmut and libcst raise: the one file, or the configuration, is at fault
            answer = {"problem": f"{type(error).__name__}: {error}"}
        channel.send({"id": request["id"], **answer})


def files(configuration: Configuration) -> Message:
    """The files to mutate, and what of the configuration the bridge should tell."""
    found = configuration.files()
    config = configuration.read()
    return {
        "files": found,
        "source_paths": [path.as_posix() for path in config.source_paths],
        "unused": configuration.unused(),
    }


def mutants(path: str, text: str) -> Message:
    """The mutants of `text`: rows of handle, mutator, start, end, replacement; offsets in `text` as it was given."""
    configured_newlines = Newlines(text)
    changes = Mutations(path, configured_newlines.normal).changes()
    return {"mutants": [configured_newlines.row(change) for change in changes]}


class Newlines:
    """mutmut reads with universal newlines, an editor does not: the way from the one text to the other."""

    def __init__(self, text: str) -> None:
        self.normal = re.sub("\r\n?", "\n", text)
        self._collapsed: list[int] = []  # offsets in `normal` of each "\n" that is "\r\n" in `text`
        for match in re.finditer("\r\n", text):
            self._collapsed.append(match.start() - len(self._collapsed))
        self._newline = "\r\n" if len(self._collapsed) * 2 > self.normal.count("\n") else "\n"

    def offset(self, offset: int) -> int:
        """In `text`, of an offset in `normal`."""
        return offset + bisect.bisect_left(self._collapsed, offset)

    def row(self, change: Change) -> list[object]:
        """A change of `normal` as a change of `text`."""
        replacement = change.replacement.replace("\n", self._newline)
        return [change.handle, change.mutator, self.offset(change.start), self.offset(change.end), replacement]
