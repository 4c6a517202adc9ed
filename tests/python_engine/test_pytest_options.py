"""Options of the project that do not hold: plug-ins do not repeat tests, give them to other processes, or choose some."""

import os
from decimal import Decimal
from types import SimpleNamespace

import pytest

from msp_bridge.python_engine.programs import pytest_options

XDIST = {"numprocesses": 8, "dist": "load", "tx": ["8*popen"]}
BENCHMARK = {
    "benchmark_min_time": Decimal("0.000005"),
    "benchmark_max_time": Decimal("1.0"),
    "benchmark_min_rounds": 5,
    "benchmark_warmup": True,
}
ONCE = {
    "benchmark_min_time": 0,
    "benchmark_max_time": 0,
    "benchmark_min_rounds": 1,
    "benchmark_warmup": False,
}


@pytest.mark.parametrize(
    ("given", "used"),
    [({}, {}), (XDIST, {"numprocesses": 0, "dist": "no", "tx": []}), (BENCHMARK, ONCE)],
    ids=["plain", "pytest-xdist", "pytest-benchmark"],
)
def test_plugins_neither_repeat_tests_nor_run_them_elsewhere(given, used) -> None:
    option = SimpleNamespace(**given)
    pytest_options.pytest_cmdline_main(SimpleNamespace(option=option, pluginmanager=pytest.PytestPluginManager()))
    assert vars(option) == used


class Reruns:
    """pytest-rerunfailures beside pytest-xdist, which it counts failures for: by a thread, or in the process alone."""

    class StatusDB:
        by_thread = False

    class ServerStatusDB(StatusDB):
        by_thread = True

    def pytest_configure(self, config) -> None:
        self.failures_db = self.ServerStatusDB()


def test_no_thread_counts_failures_for_other_processes(tmp_path) -> None:
    reruns = Reruns()
    naming = SimpleNamespace(pytest_addoption=lambda pluginmanager: pluginmanager.register(reruns, "rerunfailures"))
    options = pytest_options.arguments(["-c", os.devnull, str(tmp_path)])
    assert pytest.main(options, plugins=[naming, pytest_options]) == pytest.ExitCode.NO_TESTS_COLLECTED
    assert not reruns.failures_db.by_thread


class PluginOptions:
    """The options of pytest-cov, and where it begins to measure, if it has sources."""

    def pytest_addoption(self, parser) -> None:
        parser.addoption("--cov", dest="cov_source", action="append", default=[])

    @pytest.hookimpl(tryfirst=True)
    def pytest_load_initial_conftests(self, early_config) -> None:
        self.sources = early_config.known_args_namespace.cov_source


class Run(SimpleNamespace):
    """What holds in a run without tests."""

    def pytest_sessionstart(self, session) -> None:
        option = session.config.option
        self.is_chosen = option.lf and session.config.pluginmanager.hasplugin("lfplugin")
        self.has_cache = session.config.cache is not None


def test_coverage_is_not_measured_and_no_order_is_random_but_there_is_a_cache(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(
        "PYTEST_ADDOPTS", "--cov=subject --randomly-seed 5 --random-order-seed=3 --random-order --testmon --lf --sw"
    )
    cov, run = PluginOptions(), Run()
    options = pytest_options.arguments(["-c", os.devnull, str(tmp_path)])
    assert pytest.main(options, plugins=[cov, run, pytest_options]) == pytest.ExitCode.NO_TESTS_COLLECTED
    assert (cov.sources, run.is_chosen, run.has_cache) == ([], False, True)
    assert list(tmp_path.iterdir()) == []
