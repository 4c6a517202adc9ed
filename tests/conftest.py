"""What the tests share."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import pytest

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # in the background of a script; what tests start is to heed it
    signal.signal(signal.SIGINT, signal.default_int_handler)

TESTS = Path(__file__).parent
sys.path.insert(0, str(TESTS))  # the stranger's plugin is installed, as far as importlib.metadata can tell

# `--core` leaves out these, which start programs or wait for them, and every test that is skipped where some program is
# missing. All others are the core: a new file belongs to it by itself, and fails `make check` when it is slow.
NOT_CORE = {
    "adapters",
    "cli",
    "faults",
    "fuzz",
    "processes",
    "real",
    "server",
    "soak",
    "test_conformance_suite.py",
    "test_docker.py",
    "test_interpreter.py",
    "test_newest_first.py",
    "test_open_workspaces.py",
    "test_round_trip.py",
    "test_several_projects.py",
    "test_the_written_adapter.py",
    "test_upstream.py",
}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--core", action="store_true", help="only the fast tests that need no tool and start no program")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    within = collection_path.is_relative_to(TESTS) and collection_path.relative_to(TESTS).parts
    return True if config.option.core and within and within[0] in NOT_CORE else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.option.core:
        left_out = [item for item in items if item.get_closest_marker("skipif") is not None]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in set(left_out)]
