"""Bytecode beside its source is read, and nothing is written there."""

import os
import py_compile
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
from _pytest.assertion import rewrite

from msp_bridge.python_engine.programs.bytecode import VARIABLE, is_current, read_beside_plugins

IMPORT = (
    "import sys; from msp_bridge.python_engine.programs import bytecode; sys.path[:0] = [{place!r}]; "
    "bytecode.read_beside_sources(); "
    "import m; print(m.__cached__)"
)
IMPORT_IN_TEST = IMPORT.replace(
    "import m", "import builtins, os, time; builtins.open = os.stat = time.time = None; import m"
)
OLD = 1_500_000_000.0  # s since the epoch: July 2017
LATEST = 4_000_000_000.0  # later than whenever this runs
VALUE = (
    "import sys; from msp_bridge.python_engine.programs import bytecode; sys.path[:0] = [{place!r}]; "
    "bytecode.read_beside_sources(); "
    "import m; print(m.VALUE)"
)
MODES = [py_compile.PycInvalidationMode.TIMESTAMP, py_compile.PycInvalidationMode.CHECKED_HASH]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    file = tmp_path / "place" / "m.py"
    file.parent.mkdir()
    save(file, "VALUE = 1\n", OLD)
    return file


def save(file: Path, text: str, time: float) -> None:
    file.write_text(text)
    os.utime(file, (time, time))


def imported_from(source: Path, cache: Path, code: str = IMPORT) -> Path:
    """The bytecode that another process imports `source` from."""
    return Path(printed(code, source, cache))


def printed(code: str, source: Path, cache: Path) -> str:
    """What another process prints."""
    code = code.format(place=str(source.parent))
    environment = {**os.environ, VARIABLE: str(cache), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.mark.parametrize("mode", MODES)
def test_bytecode_beside_its_source_is_used_while_it_is_current(
    source: Path, tmp_path: Path, mode: py_compile.PycInvalidationMode
) -> None:
    beside = Path(py_compile.compile(str(source), invalidation_mode=mode) or "")
    assert imported_from(source, tmp_path / "cache") == beside
    before = beside.read_bytes()
    save(source, "VALUE = 22\n", OLD)
    assert not is_current(str(beside), source)
    assert imported_from(source, tmp_path / "cache").is_relative_to(tmp_path / "cache")
    assert beside.read_bytes() == before


def test_it_is_used_in_a_test_that_has_replaced_functions(source: Path, tmp_path: Path) -> None:
    beside = Path(py_compile.compile(str(source)) or "")
    assert imported_from(source, tmp_path / "cache", IMPORT_IN_TEST) == beside


def test_without_bytecode_nothing_is_written_beside_a_source(source: Path, tmp_path: Path) -> None:
    compiled = imported_from(source, tmp_path / "cache")
    assert compiled.is_relative_to(tmp_path / "cache")
    assert compiled.is_file()
    assert [file.name for file in source.parent.iterdir()] == ["m.py"]


def test_a_process_that_writes_none_reads_what_is_current(source: Path, tmp_path: Path) -> None:
    cache, reading = tmp_path / "cache", VALUE.replace("import m;", "bytecode.write_none(); import m;")
    assert printed(reading, source, cache) == "1"
    assert not cache.exists()
    compiled = imported_from(source, cache)
    compiled.write_bytes(compiled.read_bytes().replace(b"VALUE", b"OTHER"))
    with pytest.raises(subprocess.CalledProcessError):
        printed(reading, source, cache)


def test_of_two_versions_saved_in_one_second_the_second_one_is_imported(source: Path, tmp_path: Path) -> None:
    for value in ("1", "2"):
        save(source, f"VALUE = {value}\n", LATEST)
        assert printed(VALUE, source, tmp_path / "cache") == value


def test_a_test_has_no_bytecode_where_none_is_written_or_two_versions_may_be_of_one_second(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "pycache_prefix", str(tmp_path / "cache"))
    rewriting = ModuleType("rewriting")
    vars(rewriting).update(get_cache_dir=lambda file: tmp_path / "cache", PYC_TAIL="-pytest.pyc")
    read_beside_plugins(rewriting)
    file = tmp_path / "test_m.py"
    save(file, "", OLD)
    assert rewriting.get_cache_dir(file) == tmp_path / "cache"
    with monkeypatch.context() as none:
        none.setattr("msp_bridge.python_engine.programs.bytecode._writes", False)
        assert not rewrite.try_makedirs(rewriting.get_cache_dir(file)), "pytest would write bytecode"
    save(file, "", LATEST)
    assert not rewrite.try_makedirs(rewriting.get_cache_dir(file)), "pytest would write bytecode"


@pytest.mark.parametrize("content", [b"", b"short", b"\0" * 16])
def test_damaged_bytecode_is_not_used(source: Path, content: bytes) -> None:
    compiled = source.with_suffix(".pyc")
    compiled.write_bytes(content)
    assert not is_current(str(compiled), source)
    assert not is_current(str(source.with_name("missing")), source)
