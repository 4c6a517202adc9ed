"""What holds for all tests.

`support/rings.py` says which run when, `support/skips.py` which may be skipped in CI, `support/cpu_times.py` what they cost.
"""

import compileall
import gc
import logging
import os
import signal
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from support.servers import ScriptedProject, scripted_project

settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")  # a loaded machine is slow: that is no fault of what is tested

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # in the background of a script; what tests start is to heed it
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Most tests have a new cache, in which each process that they start would compile the bridge's programs anew: half a second.
for package in ("msp_bridge", "adapters"):
    compileall.compile_dir(Path(__file__).parents[1] / package, quiet=2)
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# The scripted plugin is installed, as far as importlib.metadata can tell.
sys.path.insert(0, str(Path(__file__).parent))

gc.disable()  # while modules are loaded, which stay

pytest_plugins = ("support.rings", "support.cpu_times", "support.skips")


def pytest_collection_finish() -> None:
    """What is loaded by now stays: looking for cycles in it, again and again, is a part of what the tests cost."""
    gc.freeze()
    gc.enable()


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


@pytest.fixture
def every_case(request: pytest.FixtureRequest) -> bool:
    """Whether a test that has many similar cases tries them all; in the main ring, it tries some."""
    return not request.config.option.main


@pytest.fixture
async def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[ScriptedProject]:
    """A project with a script and no file yet, of the scripted adapter."""
    monkeypatch.setenv("MSP_BRIDGE_CACHE", str(tmp_path / "cache"))
    async with scripted_project(tmp_path) as project:
        yield project
