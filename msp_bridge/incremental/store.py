"""Store: the verdicts of earlier runs, in one SQLite file that several processes may use at once.

It is a cache: losing it loses nothing but time. So a file that is damaged, or of another version, is deleted and made
anew, and one that can't be written is left alone, with a warning. What is in it is bounded: those verdicts go first
that nobody has asked for longest. A write is one transaction: whole or not at all.
"""

from __future__ import annotations

import contextlib
import json
import logging
import sqlite3
import time
import zlib
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from attrs import frozen

log = logging.getLogger(__name__)

T = TypeVar("T")

VERSION = 3  # of the tables, and of what the keys are made of
MAX_ROWS = 200_000
KEPT_SHARE = 0.8  # of them, when there are too many
BUSY_S = 10.0  # that another process may take for its transaction
DAY = 24 * 60 * 60  # s: how exactly it is noted when a verdict was last asked for
DELETE_OLDEST = "DELETE FROM verdicts WHERE key IN (SELECT key FROM verdicts ORDER BY used LIMIT ?)"
TABLES = """
CREATE TABLE verdicts (key BLOB PRIMARY KEY, value BLOB NOT NULL, used INTEGER NOT NULL) WITHOUT ROWID;
CREATE INDEX by_use ON verdicts (used);
"""


@frozen
class Store:
    """Verdicts by key. Every method blocks: call them in a thread. None raises when the file can't be used."""

    file: Path

    def find(self, keys: Sequence[bytes]) -> dict[bytes, Any]:
        """The values of those of `keys` that are there."""
        return self._transaction(partial(_find, keys)) or {}

    def save(self, values: Mapping[bytes, Any]) -> None:
        """All of them, or none."""
        self._transaction(partial(_save, values))

    def _transaction(self, work: Callable[[sqlite3.Connection], T]) -> T | None:
        """What `work` returns; None when the file can't be used. One that is damaged is made anew."""
        for _ in range(2):
            try:
                with contextlib.closing(self._connected()) as connection, connection:
                    return work(connection)
            except (sqlite3.OperationalError, OSError) as error:  # locked, read-only, a full disk
                log.warning("the verdicts in %s can't be used: %s", self.file, error)
                return None
            except (sqlite3.DatabaseError, zlib.error, ValueError) as error:
                self._delete(error)
        return None

    def _connected(self) -> sqlite3.Connection:
        self.file.parent.mkdir(parents=True, exist_ok=True)
        connection = sqlite3.connect(self.file, timeout=BUSY_S)
        try:
            [version] = connection.execute("PRAGMA user_version").fetchone()
            if version not in (0, VERSION):
                raise sqlite3.DatabaseError(f"it is of version {version}, and not {VERSION}")
            if version == 0:
                with connection:
                    connection.execute("BEGIN IMMEDIATE")
                    if not _has_tables(connection):  # another process may have made them meanwhile
                        for statement in filter(str.strip, TABLES.split(";")):
                            connection.execute(statement)
                        connection.execute(f"PRAGMA user_version = {VERSION}")
        except BaseException:
            connection.close()
            raise
        return connection

    def _delete(self, error: Exception) -> None:
        log.warning("the verdicts in %s are damaged and are thrown away: %s", self.file, error)
        for name in (self.file, self.file.with_name(f"{self.file.name}-journal")):
            with contextlib.suppress(OSError):
                name.unlink(missing_ok=True)


def _find(keys: Sequence[bytes], connection: sqlite3.Connection) -> dict[bytes, Any]:
    found, old = {}, []
    for key in keys:
        row = connection.execute("SELECT value, used FROM verdicts WHERE key = ?", (key,)).fetchone()
        if row is not None:
            found[key] = _read(row[0])
            if row[1] < _now() - DAY:
                old.append((_now(), key))
    connection.executemany("UPDATE verdicts SET used = ? WHERE key = ?", old)
    return found


def _save(values: Mapping[bytes, Any], connection: sqlite3.Connection) -> None:
    rows = ((key, _written(value), _now()) for key, value in values.items())
    connection.executemany("INSERT OR REPLACE INTO verdicts VALUES (?, ?, ?)", rows)
    [count] = connection.execute("SELECT count(*) FROM verdicts").fetchone()
    if count > MAX_ROWS:
        connection.execute(DELETE_OLDEST, (count - int(MAX_ROWS * KEPT_SHARE),))


def _has_tables(connection: sqlite3.Connection) -> bool:
    return connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'verdicts'").fetchone() is not None


def _written(value: Any) -> bytes:
    return zlib.compress(json.dumps(value, separators=(",", ":")).encode("ascii"), 6)


def _read(value: bytes) -> Any:
    return json.loads(zlib.decompress(value))


def _now() -> int:
    return int(time.time())
