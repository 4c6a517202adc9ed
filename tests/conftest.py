"""What the tests share."""

from __future__ import annotations

import logging
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")  # a loaded machine is slow: that is no fault of what is tested

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # in the background of a script; what tests start is to heed it
    signal.signal(signal.SIGINT, signal.default_int_handler)

TESTS = Path(__file__).parent
sys.path.insert(0, str(TESTS))  # the scripted plugin is installed, as far as importlib.metadata can tell

# `--core` leaves out these, which start programs or wait for them, and every test that is skipped where some program is
# missing. All others are the core: a new file belongs to it by itself, and fails `make check` when it is slow.
NOT_CORE = {
    "adapters",
    "cli",
    "cluster",
    "dialects",
    "editors",
    "faults",
    "fuzz",
    "processes",
    "python_engine",
    "real",
    "server",
    "soak",
    "test_conformance_suite.py",
    "test_docker.py",
    "test_oracle.py",
    "test_round_trip.py",
    "test_the_written_adapter.py",
}


@pytest.fixture(scope="session", autouse=True)
def plugins_of_projects() -> Iterator[None]:
    """The pytest of a project loads none of the plug-ins that are here for our own tests: each start takes a second less.

    A test of a project that needs a plug-in names it with `-p`, or has the variable removed.
    """
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
        yield


@pytest.fixture(autouse=True)
def logging_as_it_was() -> Iterator[None]:
    """A command that a test runs in this process sets up logging for a terminal: not for the tests after it."""
    root = logging.getLogger()
    level, before = root.level, set(root.handlers)
    yield
    root.setLevel(level)
    for handler in set(root.handlers) - before:
        if not type(handler).__module__.startswith("_pytest"):
            root.removeHandler(handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--core", action="store_true", help="only the fast tests that need no tool and start no program")


def pytest_configure(config: pytest.Config) -> None:
    gone = [name for name in NOT_CORE if not (TESTS / name).exists()]
    if gone:
        raise pytest.UsageError(f"NOT_CORE in {__file__} names what is not there: {', '.join(sorted(gone))}")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    within = collection_path.is_relative_to(TESTS) and collection_path.relative_to(TESTS).parts
    return True if config.option.core and within and within[0] in NOT_CORE else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.option.core:
        left_out = [item for item in items if item.get_closest_marker("skipif") is not None]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in set(left_out)]
