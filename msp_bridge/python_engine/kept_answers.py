"""KeptAnswers: what a tool's program has answered about the mutants of files, kept for the next bridge.

To find the mutants of a file takes a tool up to seconds, and depends on little: the text of the file, the versions of
the tool and of the interpreter, the tool's configuration, and our program that asks the tool. An adapter names these in
`key`. Each file has its last answer alone, so what is kept is bounded by the project.
"""

from __future__ import annotations

import json
import logging
from functools import cache
from hashlib import blake2b
from pathlib import Path

from attrs import frozen

from msp_bridge.python_engine.program import PROGRAMS
from msp_bridge.toolkit.json_lines import Answer
from msp_bridge.writing import replace_content

log = logging.getLogger(__name__)

DIRECTORY = "mutants"  # in the project's cache


@frozen
class KeptAnswers:
    """Those of one project, by the path of the file. Both methods block."""

    _directory: Path
    _programs: str

    @classmethod
    def of(cls, cache: Path, programs: Path) -> KeptAnswers:
        """Those of the tool whose program is in the folder `programs`; `cache` is the project's."""
        return cls(cache / DIRECTORY / programs.parent.name, _digest_of_programs(programs))

    def read(self, path: str, *key: object) -> Answer | None:
        """The answer about the file `path`, if it was given for `key`."""
        try:
            kept = json.loads(self._file(path).read_bytes())
            answer: Answer = kept["answer"]
            return answer if kept["key"] == self._key(path, key) else None
        except (OSError, ValueError, TypeError, KeyError):
            return None

    def write(self, path: str, answer: Answer, *key: object) -> None:
        """In the place of what was kept of the file. That it can't be written is logged: it costs time alone."""
        try:
            replace_content(self._file(path), json.dumps({"key": self._key(path, key), "answer": answer}))
        except OSError as error:
            log.debug("the mutants of %s are not kept for the next bridge: %s", path, error)

    def _file(self, path: str) -> Path:
        return self._directory / f"{_digest(path)}.json"

    def _key(self, path: str, key: tuple[object, ...]) -> str:
        return _digest(repr((self._programs, path, *key)))


@cache
def _digest_of_programs(folder: Path) -> str:
    """Of what asks the tool, and of the parts of the engine that it uses."""
    files = sorted(file for place in (folder, PROGRAMS) for file in place.glob("*.py"))
    return blake2b(b"\0".join(file.read_bytes() for file in files), digest_size=16).hexdigest()


def _digest(text: str) -> str:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
