"""The CPU time of each test, that of its processes included. A plug-in of pytest: `--cpu 60` shows the 60 dearest tests.

The time of a module's fixtures counts for its first test, and that of a process for the test in which it is waited for.
"""

import resource
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from itertools import chain

import pytest

from support.rings import IN_CORE

CORE_CPU_S = 6.0  # that a test of the core may use, its processes included
CORE_STARTS = 50  # or what so many starts of pytest take, where this is more: cores differ, and are shared
NAME = "cpu_s"
BEGAN = pytest.StashKey[float]()


@pytest.fixture(autouse=True)
def core_is_quick(request: pytest.FixtureRequest) -> Iterator[None]:
    """A slow test of the core fails. CPU time counts, by the speed of the machine: neither its load nor its age is a fault."""
    before = _cpu_s()
    yield
    used = _cpu_s() - before
    if used > CORE_CPU_S and request.node.stash.get(IN_CORE, False):
        allowed = CORE_STARTS * _start_s()
        assert used < allowed, (
            f"takes {used:.1f} s of CPU, not {allowed:.1f}: make it cheaper, or name it in not_core of rings.toml"
        )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    item.stash[BEGAN] = _cpu_s()
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    if call.when == "teardown":
        item.user_properties.append((NAME, _cpu_s() - item.stash[BEGAN]))
    return (yield)


def _cpu_s() -> float:
    usages = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def _start_s() -> float:
    """Measure the CPU time of a Python that loads pytest, now."""
    before = _cpu_s()
    subprocess.run([sys.executable, "-c", "import pytest"], check=True)
    return _cpu_s() - before


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--cpu", type=int, default=0, metavar="N", help="show the CPU time of each file, and of N tests")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if not config.option.cpu:
        return
    tests: Counter[str] = Counter()
    for report in chain.from_iterable(terminalreporter.stats.values()):
        if isinstance(report, pytest.TestReport) and report.when == "teardown":
            tests[report.nodeid] = dict(report.user_properties).get(NAME, 0.0)  # type: ignore[assignment]
    files: Counter[str] = Counter()
    for test, used in tests.items():
        files[test.partition("::")[0]] += used
    terminalreporter.section(f"{files.total():.0f} s of CPU")
    for name, used in [*files.most_common(), *tests.most_common(config.option.cpu)]:
        terminalreporter.line(f"{used:7.1f} {name}")
