"""Bytecode beside its source is read, and nothing is written there."""

from __future__ import annotations

import os
import py_compile
import subprocess
import sys
from pathlib import Path

import pytest

from msp_bridge.python_engine.program import TARGET
from msp_bridge.python_engine.target.bytecode import is_current

IMPORT = (
    "import sys; sys.path[:0] = [{target!r}, {place!r}]; import bytecode; bytecode.read_beside_sources(); "
    "import m; print(m.__cached__)"
)
MODES = [py_compile.PycInvalidationMode.TIMESTAMP, py_compile.PycInvalidationMode.CHECKED_HASH]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    file = tmp_path / "place" / "m.py"
    file.parent.mkdir()
    file.write_text("VALUE = 1\n")
    return file


def imported_from(source: Path, cache: Path) -> Path:
    """The bytecode that another process imports `source` from."""
    code = IMPORT.format(target=str(TARGET), place=str(source.parent))
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": str(cache), "PYTHONDONTWRITEBYTECODE": ""}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    return Path(done.stdout.strip())


@pytest.mark.parametrize("mode", MODES)
def test_bytecode_beside_its_source_is_used_while_it_is_current(
    source: Path, tmp_path: Path, mode: py_compile.PycInvalidationMode
) -> None:
    beside = Path(py_compile.compile(str(source), invalidation_mode=mode) or "")
    assert imported_from(source, tmp_path / "cache") == beside
    before = beside.read_bytes()
    source.write_text("VALUE = 22\n")
    assert not is_current(str(beside), source)
    assert imported_from(source, tmp_path / "cache").is_relative_to(tmp_path / "cache")
    assert beside.read_bytes() == before


def test_without_bytecode_nothing_is_written_beside_a_source(source: Path, tmp_path: Path) -> None:
    compiled = imported_from(source, tmp_path / "cache")
    assert compiled.is_relative_to(tmp_path / "cache")
    assert compiled.is_file()
    assert [file.name for file in source.parent.iterdir()] == ["m.py"]


@pytest.mark.parametrize("content", [b"", b"short", b"\0" * 16])
def test_damaged_bytecode_is_not_used(source: Path, content: bytes) -> None:
    compiled = source.with_suffix(".pyc")
    compiled.write_bytes(content)
    assert not is_current(str(compiled), source)
    assert not is_current(str(source.with_name("missing")), source)
