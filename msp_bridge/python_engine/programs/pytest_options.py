"""Which of the project's own options of pytest hold: none that makes runs differ, repeats tests or writes elsewhere.

A pytest plugin. An option of a plug-in that is left out is taken from the arguments, as pytest does not know it then.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from typing import Any

import pytest

OF_ORDER = ("--randomly-dont-reset-seed", "--randomly-dont-reorganize", "--random-order")
LEFT_OUT = (*OF_ORDER, "--testmon", "--testmon-forceselect", "--testmon-nocollect", "--testmon-noselect")
LEFT_OUT_WITH_VALUE = ("--randomly-seed", "--random-order-bucket", "--random-order-seed")
REMEMBERING = ("lfplugin", "nfplugin")  # write to the cache which tests failed, and which there were


def arguments(extra: Iterable[str]) -> list[str]:
    """pytest's arguments: the project's own, and ours."""
    return ["--rootdir=.", "--tb=line", "-q", "-p", "no:randomly", *extra]


@pytest.hookimpl(wrapper=True)
def pytest_load_initial_conftests(early_config: Any, args: list[str]) -> Generator[None, None, None]:
    """Have pytest-cov measure nothing. Not by --no-cov: with it, tests that are marked `no_cover` fail."""
    early_config.known_args_namespace.cov_source = []
    early_config.pluginmanager.set_blocked("stepwise")
    args[:] = _without_left_out(args)
    return (yield)


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: Any) -> None:
    """Run tests here, not in the processes of pytest-xdist, and what pytest-benchmark repeats for seconds once.

    For these processes pytest-rerunfailures would count in a thread, which no fork has.
    """
    option = config.option
    if hasattr(reruns := config.pluginmanager.get_plugin("rerunfailures"), "ServerStatusDB"):
        reruns.ServerStatusDB = reruns.StatusDB
    if hasattr(option, "numprocesses"):
        option.numprocesses, option.dist, option.tx = 0, "no", []
    if hasattr(option, "benchmark_max_time"):  # not disabled: the tests may look at the benchmark's times
        option.benchmark_min_time = option.benchmark_max_time = type(option.benchmark_max_time)(0)
        option.benchmark_min_rounds, option.benchmark_warmup = 1, False


def pytest_configure(config: Any) -> None:
    """Leave tests the cache, but choose none by what it says."""
    for name in filter(config.pluginmanager.hasplugin, REMEMBERING):
        config.pluginmanager.unregister(name=name)


def _without_left_out(arguments: Iterable[str]) -> Iterator[str]:
    words = iter(arguments)
    for word in words:
        option, equals, _ = word.partition("=")
        if option in LEFT_OUT_WITH_VALUE and not equals:
            next(words, None)
        elif option not in LEFT_OUT + LEFT_OUT_WITH_VALUE:
            yield word
