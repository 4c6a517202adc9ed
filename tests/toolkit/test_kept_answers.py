"""Kept answers: used by several processes at once, bounded, and made anew whatever has damaged them."""

import multiprocessing
import random
import sqlite3
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing
from hashlib import blake2b
from pathlib import Path
from typing import Any

import pytest

from msp_bridge.toolkit import kept_answers
from msp_bridge.toolkit.kept_answers import KeptAnswers, key_of

VALUE = ["Killed", ["tests/test_a.py::test_a", "ü", "\udcff"]]
DEEP = b"[" * 100_000 + b"]" * 100_000


def as_is(value: Any) -> Any:
    return value


def text_of(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError("no text")
    return value


@pytest.fixture
def kept(tmp_path: Path) -> KeptAnswers:
    return KeptAnswers(tmp_path / "new" / "answers.sqlite")


def works(kept: KeptAnswers) -> bool:
    kept.save({b"a": VALUE})
    return kept.find([b"a"], as_is) == {b"a": VALUE}


def changed(file: Path, statement: str, *values: object) -> None:
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute(statement, values)


def test_what_is_saved_is_found(kept: KeptAnswers) -> None:
    assert kept.find([b"a"], as_is) == {}
    kept.save({b"a": VALUE, b"b": None})
    assert KeptAnswers(kept.file).find([b"a", b"b", b"c"], as_is) == {b"a": VALUE, b"b": None}


def test_a_key_is_made_of_all_that_is_named() -> None:
    assert key_of("a", 1, None) == key_of("a", 1, None)
    assert len({key_of("a", 1), key_of("a", "1"), key_of("a1"), key_of(("a", 1)), key_of("\udcff", 1)}) == 5


@pytest.mark.parametrize("content", [b"", b"no database", b"SQLite format 3\0" + bytes(200)])
def test_a_file_that_is_no_store_makes_way_for_one(kept: KeptAnswers, content: bytes) -> None:
    kept.file.parent.mkdir()
    kept.file.write_bytes(content)
    assert kept.find([b"a"], as_is) == {}
    assert works(kept)
    aside = kept.file.with_name(f"{kept.file.name}.damaged")
    assert aside.exists() is bool(content)
    assert not content or aside.read_bytes() == content, "it may be a file that the user has named by mistake"


ROWS: dict[str, object] = {
    "a number": 5,
    "a fraction": 0.5,
    "a text": "Killed",
    "nonsense": b"nonsense",
    "nothing": b"",
    "compressed, without a digest": zlib.compress(b"[]"),
    "a wrong digest": bytes(16) + zlib.compress(b"[]"),
    "deep nesting": zlib.compress(DEEP),
}


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS.keys())
def test_a_row_that_was_not_written_here_ends_the_store(kept: KeptAnswers, row: object) -> None:
    kept.save({b"a": VALUE, b"b": VALUE})
    changed(kept.file, "UPDATE answers SET value = ? WHERE key = CAST('a' AS BLOB)", row)
    assert kept.find([b"a"], as_is) == {}
    assert kept.find([b"b"], as_is) == {}, "what else is in it can't be trusted"
    assert works(kept)


@pytest.mark.parametrize("content", [DEEP, b"{", b'{"a": 1}', b"5", b"\xff"])
def test_json_of_another_shape_ends_the_store(kept: KeptAnswers, content: bytes) -> None:
    kept.save({b"a": "text"})
    assert kept.find([b"a"], text_of) == {b"a": "text"}
    body = zlib.compress(content)
    sealed = blake2b(body, key=b"a", digest_size=kept_answers.SIZE).digest() + body
    changed(kept.file, "UPDATE answers SET value = ?", sealed)
    assert kept.find([b"a"], text_of) == {}
    assert works(kept)


STATEMENTS = {
    "another version": "PRAGMA user_version = 99",
    "no table": "DROP TABLE answers",
    "no index": "DROP INDEX by_use",
    "another column": "ALTER TABLE answers RENAME COLUMN value TO other",
    "another table": "CREATE TABLE others (key)",
    "a trigger": "CREATE TRIGGER other AFTER INSERT ON answers BEGIN DELETE FROM answers; END",
    "no time": "UPDATE answers SET used = 'never'",
    "bytes for a time": "UPDATE answers SET used = x'00'",
}


@pytest.mark.parametrize("statement", STATEMENTS.values(), ids=STATEMENTS.keys())
def test_tables_of_another_shape_end_the_store(kept: KeptAnswers, statement: str) -> None:
    kept.save({b"a": VALUE})
    changed(kept.file, statement)
    assert kept.find([b"a"], as_is) == {}
    assert works(kept)


def test_a_row_counts_for_its_own_key_alone(kept: KeptAnswers) -> None:
    kept.save({b"a": "of a", b"b": "of b"})
    with closing(sqlite3.connect(kept.file)) as connection, connection:
        connection.execute("DELETE FROM answers WHERE key = CAST('a' AS BLOB)")
        connection.execute("UPDATE answers SET key = CAST('a' AS BLOB)")
    assert kept.find([b"a"], as_is) == {}


def damages(whole: bytes, chance: random.Random) -> Iterator[bytes]:
    """The file as accidents may leave it: cut off, with single bytes, stretches or pages changed, swapped or zero."""
    size = len(whole)
    while True:
        data, at, length = bytearray(whole), chance.randrange(size), chance.choice((1, 2, 16, 512, 4096))
        other = chance.randrange(size)
        match chance.randrange(6):
            case 0:
                del data[at:]
            case 1:
                data[at] ^= 1 << chance.randrange(8)
            case 2:
                data[at : at + length] = chance.randbytes(length)
            case 3:
                data[at : at + length] = bytes(length)
            case 4:
                data[at : at + length] = data[other : other + length]
            case 5:
                for page in (at // 4096, other // 4096):
                    data[page * 4096 : page * 4096 + 100] = chance.randbytes(100)
        yield bytes(data)


def test_no_damage_gives_an_answer_that_was_not_kept_or_ends_the_run(kept: KeptAnswers) -> None:
    seed = random.randrange(2**32)
    print("seed", seed)
    values = {key_of(number): [f"answer {number}", "x" * (number % 300)] for number in range(400)}
    kept.save(values)
    whole = kept.file.read_bytes()
    for data, _ in zip(damages(whole, random.Random(seed)), range(20), strict=False):
        kept = KeptAnswers(kept.file)
        kept.file.write_bytes(data)
        for _ in range(2):
            found = kept.find(values, as_is)
            assert {key: value for key, value in found.items() if value != values[key]} == {}
            kept.save(values)


def test_what_nobody_asks_for_goes_first(kept: KeptAnswers, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1_000_000_000
    monkeypatch.setattr(kept_answers, "MAX_ROWS", 10)
    monkeypatch.setattr(kept_answers.time, "time", lambda: now)
    kept.save({bytes([number]): number for number in range(10)})
    now += 2 * kept_answers.DAY
    assert kept.find([b"\1"], as_is) == {b"\1": 1}
    kept.save({b"new": "new"})
    assert kept.find([b"\1", b"new"], as_is) == {b"\1": 1, b"new": "new"}
    assert len(kept.find((bytes([number]) for number in range(10)), as_is)) == 7


def test_large_answers_take_no_more_than_there_is_room_for(kept: KeptAnswers, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_answers, "MAX_BYTES", 1 << 20)
    chance, now = random.Random(1), 1_000_000_000
    monkeypatch.setattr(kept_answers.time, "time", lambda: now)
    for number in range(30):
        now += 1
        kept.save({key_of(number): chance.randbytes(50_000).hex()})
    assert kept.file.stat().st_size < 2 << 20
    assert list(kept.find([key_of(0), key_of(29)], text_of)) == [key_of(29)]


def test_a_place_that_can_not_be_written_costs_nothing_but_time(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").touch()
    kept = KeptAnswers(tmp_path / "file" / "answers.sqlite")
    kept.save({b"a": VALUE})
    assert kept.find([b"a"], as_is) == {}
    assert caplog.text.count("can't be used") == 1
    assert KeptAnswers(tmp_path).find([b"a"], as_is) == {}
    assert tmp_path.is_dir()


def _lock(file: Path, how: str, locked: Callable[[], None], gone_on: Callable[[], None]) -> None:
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        connection.execute(f"BEGIN {how}")
        locked()
        gone_on()


@pytest.mark.parametrize(("how", "readable"), [("EXCLUSIVE", False), ("IMMEDIATE", True)])
def test_a_store_that_another_process_locks_is_waited_for_once(
    how: str, readable: bool, kept: KeptAnswers, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept.save({b"a": VALUE})
    monkeypatch.setattr(kept_answers, "LEAVE_S", 10_000.0)
    context = multiprocessing.get_context("spawn")
    locked, gone_on = context.Event(), context.Event()
    process = context.Process(target=_lock, args=(kept.file, how, locked.set, gone_on.wait))
    process.start()
    try:
        assert locked.wait(120)
        waited = []
        for number in range(20):
            began = time.perf_counter()
            found = kept.find([b"a"], as_is)
            kept.save({b"b": number})
            waited.append(time.perf_counter() - began)
            assert found == ({b"a": VALUE} if readable and not number else {})
        assert waited[0] >= kept_answers.BUSY_S
        assert sum(waited[1:]) < kept_answers.BUSY_S, "only the first waits"
    finally:
        gone_on.set()
        process.join()
    assert caplog.text.count("another process has locked it") == 1
    assert KeptAnswers(kept.file).find([b"a"], as_is) == {b"a": VALUE}, "what was locked is not damaged"


def _save(file: Path, name: str) -> None:
    for number in range(20):
        KeptAnswers(file, busy_s=120).save({f"{name} {number}".encode(): number})


def test_several_processes_write_at_once(kept: KeptAnswers) -> None:
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=_save, args=(kept.file, name)) for name in "abc"]
    for process in processes:
        process.start()
    for process in processes:
        process.join(120)
    keys = [f"{name} {number}".encode() for name in "abc" for number in range(20)]
    assert len(kept.find(keys, as_is)) == 60
