"""Paths: which file of the project a report means, however its tool writes paths."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Sequence
from pathlib import Path

from attrs import frozen


@frozen
class Paths:
    """The files that one tool mutates."""

    ran_in: Path  # the project, or its private copy
    root: Path
    files: Sequence[str]

    def locate(self, key: str, source: str) -> str | None:
        """The file's path from the root; None when it is none of the tool's.

        A key is absolute, relative to the root, or, as Infection writes it, relative to whatever directory the files of
        the report have in common: then the file is the one whose path ends so. PIT's plugin puts a package's name
        before the file's: then only that counts. Where several files fit, it is the one whose text is `source`.
        """
        path = self._relative(key)
        if path is None:
            return None
        if path in self.files and (not source or self._has(path, source)):
            return path
        for end in (path, posixpath.basename(path)):
            fitting = [file for file in self.files if file.endswith(f"/{end}")]
            if len(fitting) > 1 or end != path:
                fitting = [file for file in fitting if self._has(file, source)]
            if len(fitting) == 1:
                return fitting[0]
        return path if path in self.files else None

    def _relative(self, key: str) -> str | None:
        if not os.path.isabs(key):
            return posixpath.normpath(key)
        for base in (self.ran_in, self.root):
            for start in (str(base), os.path.realpath(base)):
                for path in (os.path.normpath(key), os.path.realpath(key)):
                    if path.startswith(start + os.sep):
                        return path[len(start) + 1 :].replace(os.sep, "/")
        return None

    def _has(self, path: str, source: str) -> bool:
        try:
            text = (self.ran_in / path).read_bytes().decode("utf-8-sig", "replace")
        except OSError:
            return False
        return _plain(text) == _plain(source.removeprefix("\ufeff"))


def _plain(text: str) -> str:
    return text.replace("\r\n", "\n").rstrip("\n")
