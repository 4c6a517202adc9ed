"""What is no report is told, with the place and the reason."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.viewers import killed, reported

import msp_bridge.reports
from msp_bridge.reports import validation


def test_the_schema_is_the_published_one() -> None:
    shipped = Path(msp_bridge.reports.__file__).parent / validation.SCHEMA
    assert shipped.read_bytes() == (Path(__file__).parent / validation.SCHEMA).read_bytes()


def test_our_own_reports_are_valid(tmp_path: Path) -> None:
    report = reported(tmp_path, killed(killed_by=("t.py::test_a",)), shard={"number": 1})
    assert validation.invalid([report]) == [None]


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ([], "the report must be object"),
        ({"files": {}}, "the report must contain ['schemaVersion', 'thresholds'] properties"),
    ],
)
def test_what_is_no_report_at_all_is_told(value: Any, says: str) -> None:
    assert validation.invalid([value]) == [says]


def test_the_place_of_a_fault_is_told(tmp_path: Path) -> None:
    report = reported(tmp_path, killed())
    odd = json.loads(json.dumps(report).replace('"Killed"', '"Dead"'))
    good, bad = validation.invalid([report, odd])
    assert good is None
    assert bad is not None
    assert bad.startswith("files.shop.py.mutants[0].status must be one of ['Killed', ")
