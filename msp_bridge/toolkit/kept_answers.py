"""KeptAnswers: what was found out, kept under a key, in one SQLite file that several processes may use at once.

How to use it: `key_of` makes the key of everything that the answer depends on, so an answer is there or it isn't, and
is never out of date. The answer is a JSON value. `find` takes a function that turns the value into what the caller
wants and raises ValueError for another shape.

It is a cache: losing it loses nothing but time. So there is one rule for damage: whatever can't have been written here
(another schema or version, another type, a row whose digest is not that of its key and content, JSON of another shape)
has the whole file moved aside, to NAME.damaged, and made anew. A row is bound to its key by that digest: no damage
gives the answer of another key.

A file that can't be used (locked, read-only, on a full disk) is left alone for `LEAVE_S`, with a warning.
What it holds is bounded: what nobody has asked for longest goes first. A write is one transaction: whole or not at all.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import sqlite3
import time
import zlib
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import Any, TypeVar

from attrs import define, field

log = logging.getLogger(__name__)

T = TypeVar("T")

NAME = "answers.sqlite"
VERSION = 4  # of the schema, of the rows, and of what the keys are made of
MAX_ROWS = 200_000
MAX_BYTES = 256 << 20
KEPT_SHARE = 0.8  # of the rows, when there is too much
BUSY_S = 1.0  # that another process may take for its transaction
LEAVE_S = 60.0  # for which a file that can't be used is not tried again
DAY = 24 * 60 * 60  # s: how exactly it is noted when an answer was last asked for
SIZE = 16  # bytes of a digest
SCHEMA = (
    "CREATE TABLE answers (key BLOB PRIMARY KEY, value BLOB NOT NULL, used INTEGER NOT NULL) WITHOUT ROWID",
    "CREATE INDEX by_use ON answers (used)",
)
SIDECARS = ("-journal", "-wal", "-shm")
OF_ANOTHER = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL})
OF_THE_PLACE = frozenset({sqlite3.SQLITE_FULL, sqlite3.SQLITE_PERM, sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_INTERRUPT})
PERHAPS_OF_THE_PLACE = frozenset({sqlite3.SQLITE_READONLY, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN})
DAMAGE = (
    sqlite3.Error,
    zlib.error,
    ValueError,
    TypeError,
    LookupError,
    AttributeError,
    ArithmeticError,
    RecursionError,
)


def key_of(*depends_on: object) -> bytes:
    """The key of an answer that depends on these values alone: texts, bytes, numbers, None, and sequences of them."""
    return blake2b(repr(depends_on).encode("utf-8", "surrogatepass"), digest_size=SIZE).digest()


@define(eq=False)
class KeptAnswers:
    """The answers in one file. Every method blocks: call it in a thread. What is wrong with the file raises nothing."""

    file: Path
    busy_s: float = BUSY_S
    _left_until: float = field(default=0.0, init=False)  # by the monotonic clock

    @classmethod
    def of(cls, cache: Path) -> KeptAnswers:
        """Open the kept answers of a project; `cache` is the directory that its adapter has in the cache."""
        return cls(cache / NAME)

    def find(self, keys: Iterable[bytes], read: Callable[[Any], T]) -> dict[bytes, T]:
        """Find the values of `keys`, each made by `read`; a key that is not there is left out."""
        found, stale = self._transaction(partial(_find, list(keys), read)) or ({}, [])
        if stale:
            self._transaction(partial(_note_use, stale))
        return found

    def get(self, key: bytes, read: Callable[[Any], T]) -> T | None:
        """The one value of `key`, as `find` has it; None when it is not there."""
        return self.find([key], read).get(key)

    def save(self, values: Mapping[bytes, Any]) -> None:
        """All of them, or none."""
        self._transaction(partial(_save, [(key, _sealed(key, value), _now()) for key, value in values.items()]))

    def _transaction(self, work: Callable[[sqlite3.Connection], T]) -> T | None:
        """Return the result of `work`; None if the file can't be used. A damaged file is made anew."""
        for _ in range(2):
            if time.monotonic() < self._left_until:
                return None
            try:
                with contextlib.closing(self._connected()) as connection, connection:
                    return work(connection)
            except (OSError, *DAMAGE) as error:
                reason = self._unusable(error) or self._moved_aside(error)
                if reason is not None:
                    self._left_until = time.monotonic() + LEAVE_S
                    log.warning("%s can't be used, and this run goes on without it: %s", self.file, reason)
        return None

    def _connected(self) -> sqlite3.Connection:
        self.file.parent.mkdir(parents=True, exist_ok=True)
        connection = sqlite3.connect(self.file, timeout=self.busy_s, isolation_level=None)
        try:
            connection.text_factory = bytes  # damaged text need not be UTF-8
            connection.execute("PRAGMA synchronous = OFF")  # what a power failure damages is detected
            connection.execute("PRAGMA cell_size_check = ON")
            if _identity(connection) != (VERSION, SCHEMA):
                connection.execute("BEGIN IMMEDIATE")
                with connection:  # another process may have made it meanwhile
                    _make(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _unusable(self, error: Exception) -> str | None:
        """Why the file can't be used; None where it is damaged."""
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF  # without what extended codes add
        if code in OF_ANOTHER:
            return f"another process has locked it for more than {self.busy_s:g} s"
        place = isinstance(error, OSError) or code in OF_THE_PLACE
        if place or (code in PERHAPS_OF_THE_PLACE and not self._is_writable()):
            return str(error)
        return None

    def _is_writable(self) -> bool:
        """Whether it is damage that makes SQLite say that it can't open or write the file."""
        return self.file.is_file() and all(
            os.access(place, os.R_OK | os.W_OK) for place in (self.file, self.file.parent)
        )

    def _moved_aside(self, error: Exception) -> str | None:
        """Make way for a new file; returns why that can't be done."""
        try:  # the file is not deleted: the user may have named another one by mistake
            self.file.replace(self.file.with_name(f"{self.file.name}.damaged"))
            for suffix in SIDECARS:
                self.file.with_name(f"{self.file.name}{suffix}").unlink(missing_ok=True)
        except FileNotFoundError:  # another process has moved it
            return None
        except OSError as refused:
            return f"it is damaged, and can't be moved aside: {refused}"
        log.warning("%s is damaged, or no such store, and is made anew: %s", self.file, error)
        return None


def _identity(connection: sqlite3.Connection) -> tuple[object, tuple[str, ...]]:
    """The version, and the statements that make the schema."""
    [version] = connection.execute("PRAGMA user_version").fetchone()
    rows = connection.execute("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY rowid").fetchall()
    return version, tuple(str(sql, "ascii") for (sql,) in rows)


def _make(connection: sqlite3.Connection) -> None:
    """The tables, where there are none. Raises ValueError for a file that is of another version, or no such store."""
    match _identity(connection):
        case (0, ()):
            for statement in (*SCHEMA, f"PRAGMA user_version = {VERSION}"):
                connection.execute(statement)
        case found if found != (VERSION, SCHEMA):
            raise ValueError(f"its version is {found[0]}, and not {VERSION}, or it has other tables")


def _find(
    keys: list[bytes], read: Callable[[Any], T], connection: sqlite3.Connection
) -> tuple[dict[bytes, T], list[bytes]]:
    """The answers, and the keys of those whose use is to be noted."""
    found, stale = {}, []
    for key in keys:
        row = connection.execute("SELECT value, used FROM answers WHERE key = ?", (key,)).fetchone()
        if row is not None:
            found[key] = read(_opened(key, row[0]))
            if row[1] < _now() - DAY:
                stale.append(key)
    return found, stale


def _note_use(keys: list[bytes], connection: sqlite3.Connection) -> None:
    connection.execute("BEGIN IMMEDIATE")
    connection.executemany("UPDATE answers SET used = ? WHERE key = ?", ((_now(), key) for key in keys))


def _save(rows: list[tuple[bytes, bytes, int]], connection: sqlite3.Connection) -> None:
    connection.execute("BEGIN IMMEDIATE")
    connection.executemany("INSERT OR REPLACE INTO answers VALUES (?, ?, ?)", rows)
    [count] = connection.execute("SELECT count(*) FROM answers").fetchone()
    most = MAX_ROWS
    while count > most or (count and _bytes(connection) > MAX_BYTES):
        most = min(count - 1, int(min(most, count) * KEPT_SHARE))
        oldest = "DELETE FROM answers WHERE key IN (SELECT key FROM answers ORDER BY used LIMIT ?)"
        connection.execute(oldest, (count - most,))
        count = most


def _bytes(connection: sqlite3.Connection) -> int:
    """Bytes that the rows take."""
    [pages], [free], [size] = (
        connection.execute(f"PRAGMA {name}").fetchone() for name in ("page_count", "freelist_count", "page_size")
    )
    return int(pages - free) * int(size)


def _sealed(key: bytes, value: Any) -> bytes:
    """The value as it is stored, after a digest of it and of its key."""
    body = zlib.compress(json.dumps(value, separators=(",", ":")).encode("ascii"), 6)
    return _digest(key, body) + body


def _opened(key: bytes, stored: bytes) -> Any:
    """Raises TypeError, ValueError for what was not written under this key."""
    digest, body = stored[:SIZE], stored[SIZE:]
    if digest != _digest(key, body):
        raise ValueError("a row is not as it was written")
    return json.loads(zlib.decompress(body))


def _digest(key: bytes, body: bytes) -> bytes:
    return blake2b(body, key=key, digest_size=SIZE).digest()


def _now() -> int:
    return int(time.time())
