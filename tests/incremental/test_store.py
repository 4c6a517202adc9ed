"""The store: used by several processes at once, bounded, and thrown away when it is damaged."""

from __future__ import annotations

import multiprocessing
import sqlite3
from pathlib import Path

import pytest

from msp_bridge.incremental import store
from msp_bridge.incremental.store import Store

VALUE = {"status": "Killed", "killed_by": ["tests/test_a.py::test_a", "ü"]}


def test_what_is_saved_is_found(tmp_path: Path) -> None:
    kept = Store(tmp_path / "new" / "verdicts.sqlite")
    assert kept.find([b"a"]) == {}
    kept.save({b"a": VALUE, b"b": None})
    assert Store(kept.file).find([b"a", b"b", b"c"]) == {b"a": VALUE, b"b": None}


@pytest.mark.parametrize("content", [b"", b"no database", b"SQLite format 3\0" + bytes(200)])
def test_a_damaged_file_is_made_anew(tmp_path: Path, content: bytes) -> None:
    kept = Store(tmp_path / "verdicts.sqlite")
    kept.file.write_bytes(content)
    assert kept.find([b"a"]) == {}
    kept.save({b"a": VALUE})
    assert kept.find([b"a"]) == {b"a": VALUE}


def test_a_file_that_was_cut_off_is_made_anew(tmp_path: Path) -> None:
    kept = Store(tmp_path / "verdicts.sqlite")
    kept.save({bytes([number]): [f"{number}" * 3000] for number in range(100)})
    with kept.file.open("r+b") as file:
        file.truncate(kept.file.stat().st_size // 2)
    kept.find([bytes([number]) for number in range(100)])
    kept.save({b"a": VALUE})
    assert kept.find([b"a"]) == {b"a": VALUE}


def test_a_value_that_can_not_be_read_is_no_value(tmp_path: Path) -> None:
    kept = Store(tmp_path / "verdicts.sqlite")
    kept.save({b"a": VALUE})
    with sqlite3.connect(kept.file) as connection:
        connection.execute("UPDATE verdicts SET value = ?", (b"nonsense",))
    connection.close()
    assert kept.find([b"a"]) == {}
    kept.save({b"a": VALUE})
    assert kept.find([b"a"]) == {b"a": VALUE}


def test_a_file_of_another_version_is_made_anew(tmp_path: Path) -> None:
    kept = Store(tmp_path / "verdicts.sqlite")
    kept.save({b"a": VALUE})
    with sqlite3.connect(kept.file) as connection:
        connection.execute(f"PRAGMA user_version = {store.VERSION + 1}")
    connection.close()
    assert kept.find([b"a"]) == {}
    kept.save({b"a": VALUE})
    assert kept.find([b"a"]) == {b"a": VALUE}


def test_what_nobody_asks_for_goes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1_000_000_000
    monkeypatch.setattr(store, "MAX_ROWS", 10)
    monkeypatch.setattr(store.time, "time", lambda: now)
    kept = Store(tmp_path / "verdicts.sqlite")
    kept.save({bytes([number]): number for number in range(10)})
    now += 2 * store.DAY
    assert kept.find([b"\1"]) == {b"\1": 1}
    kept.save({b"new": "new"})
    assert kept.find([b"\1", b"new"]) == {b"\1": 1, b"new": "new"}
    assert len(kept.find([bytes([number]) for number in range(10)])) == 7


def test_a_place_that_can_not_be_written_costs_nothing_but_time(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").touch()
    kept = Store(tmp_path / "file" / "verdicts.sqlite")
    kept.save({b"a": VALUE})
    assert kept.find([b"a"]) == {}
    assert "can't be used" in caplog.text


def _save(file: Path, name: str) -> None:
    for number in range(20):
        Store(file).save({f"{name} {number}".encode(): number})


def test_several_processes_write_at_once(tmp_path: Path) -> None:
    file, context = tmp_path / "verdicts.sqlite", multiprocessing.get_context("spawn")
    processes = [context.Process(target=_save, args=(file, name)) for name in "abc"]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
    keys = [f"{name} {number}".encode() for name in "abc" for number in range(20)]
    assert len(Store(file).find(keys)) == 60
