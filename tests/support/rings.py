"""The rings of tests: which run in `make check`, in `make test`, and only in `make test-all`. A plug-in of pytest.

There are three rings, each within the next. `rings.toml` says which test is in which:

- The core (`make check`, `pytest --core`): tests that need no tool; the aim is a minute for all of them. A new file
  is in the core unless `not_core` names it.
- The main ring (`make test`, `pytest --main`): each promise to users, with each real tool; the aim is eight minutes on two
  cores. Of each tool it has verdicts, edits, a cancel, a suite that fails, and a tree that stays as it was; of the Python
  engine what each request meets; of faults of disks, trees and processes those of one tool.
- All (`make test-all`, `pytest`): also what `further` names. That is the same promise once more: with another version of
  the tool, on a platform without isolation, through another transport, at each await or each message instead of some,
  with random edits, or for one more project. And it is what takes a second of CPU or more to show what few projects meet.

CI runs all. `make soak` runs `tests/soak` and `tests/fuzz` for hours instead of seconds.
"""

import random
import tomllib
from functools import cache
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
IN_CORE = pytest.StashKey[bool]()
TABLES = Path(__file__).with_suffix(".toml")
Table = dict[str, tuple[str, ...]]  # files and directories, and parts of the names of their tests; none: all


def _table(section: str) -> Table:
    names = tomllib.loads(TABLES.read_text())[section]
    return dict.fromkeys(names.pop("whole", []), ()) | {file: tuple(parts) for file, parts in names.items()}


NOT_CORE, FURTHER, ELSEWHERE, FIRST = (_table(section) for section in ("not_core", "further", "elsewhere", "first"))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--core", action="store_true", help="only the tests that need no tool")
    parser.addoption("--main", action="store_true", help="each promise, without what is dear or the same once more")
    parser.addoption("--in-process", action="store_true", help="without the tests that start Python processes")
    parser.addoption("--shuffle", type=int, metavar="SEED", help="files, and the tests of each, in a random order")


def pytest_configure(config: pytest.Config) -> None:
    gone = [name for name in (*NOT_CORE, *FURTHER, *ELSEWHERE, *FIRST) if not (TESTS / name).exists()]
    if gone:
        raise pytest.UsageError(f"{TABLES} names what is not there: {', '.join(sorted(gone))}")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    if not collection_path.is_relative_to(TESTS):
        return None
    name = collection_path.relative_to(TESTS).as_posix()
    left_out = NOT_CORE if config.option.core else FURTHER if config.option.main else {}
    return True if left_out.get(name) == () else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    whole = Path(config.rootpath) == TESTS.parent and config.args == ["tests"]
    if whole and not config.option.core:
        for table in (NOT_CORE, ELSEWHERE, FURTHER)[: 2 if config.option.main else 3]:
            _check_names(table, items)
    for item in items:
        core = not _named(item, NOT_CORE)
        item.stash[IN_CORE] = core
        if core:
            item.add_marker(pytest.mark.filterwarnings("error::pytest.PytestUnraisableExceptionWarning"))
    if config.option.core:
        _select(config, items, [item for item in items if item.stash[IN_CORE]])
    if config.option.in_process:
        _select(config, items, [item for item in items if not _named(item, ELSEWHERE)])
    if config.option.main:
        _select(config, items, [item for item in items if not _named(item, FURTHER)])
    if config.option.shuffle is not None:
        _shuffle(items, random.Random(config.option.shuffle))
    items.sort(key=lambda item: (not item.stash[IN_CORE], _file_of(item) not in FIRST))


def _select(config: pytest.Config, items: list[pytest.Item], selected: list[pytest.Item]) -> None:
    kept = set(selected)
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    items[:] = selected


def _shuffle(items: list[pytest.Item], chance: random.Random) -> None:
    """Shuffle files, and the tests within each: tests of one file share what is expensive."""
    files: dict[Path, list[pytest.Item]] = {}
    for item in items:
        files.setdefault(item.path, []).append(item)
    order = list(files)
    chance.shuffle(order)
    for tests in files.values():
        chance.shuffle(tests)
    items[:] = [item for path in order for item in files[path]]


@cache
def _names_of(path: Path) -> tuple[str, ...]:
    """The names by which a table can have the file: its own, and those of the directories around it."""
    if not path.is_relative_to(TESTS):
        return ("",)
    file = path.relative_to(TESTS)
    return (file.as_posix(), *(parent.as_posix() for parent in file.parents))


def _file_of(item: pytest.Item) -> str:
    return _names_of(item.path)[0]


def _named(item: pytest.Item, table: Table) -> bool:
    """Whether `table` names the test, its file or a directory around it."""
    tables = (table[name] for name in _names_of(item.path) if name in table)
    return any(not parts or any(part in item.name for part in parts) for parts in tables)


def _check_names(table: Table, items: list[pytest.Item]) -> None:
    """Raises UsageError if `table` names a test that is not there."""
    names: dict[str, list[str]] = {}
    for item in items:
        names.setdefault(_file_of(item), []).append(item.name)
    for file, parts in table.items():
        for part in parts:
            if not any(part in name for name in names.get(file, [])):
                raise pytest.UsageError(f"{TABLES} names {file}::{part}, which is not there")
