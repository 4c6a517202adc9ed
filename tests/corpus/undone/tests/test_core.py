import json
import logging
import os
import signal
import time
import warnings

import pytest
from subject.core import handled, logged, replaced, strictly, variable

LOGGER = logging.getLogger("subject")
NAME = "SUBJECT_LANGUAGE"
USED_BY_PROCESSES = [(json, "dumps"), (os, "write"), (os, "_exit"), (time, "perf_counter")]


def deprecated():
    warnings.warn("old", DeprecationWarning)
    return 1


def test_variable():
    with variable(NAME):
        assert os.environ[NAME] == NAME


def test_handled():
    signals = []
    with handled(lambda number, _: signals.append(number)):
        os.kill(os.getpid(), signal.SIGUSR1)
        assert signals == [signal.SIGUSR1]


def test_logged():
    handler = logging.Handler()
    records = []
    handler.emit = records.append
    logged(LOGGER, handler, lambda: LOGGER.error("no"))
    assert len(records) == 1


def test_strictly():
    with pytest.raises(DeprecationWarning):
        strictly(deprecated)


@pytest.mark.parametrize(("module", "name"), USED_BY_PROCESSES)
def test_replaced(module, name):
    assert replaced(module, name, str, lambda: getattr(module, name)(None)) == "None"


def test_variable_is_gone():
    assert NAME not in os.environ


def test_signal_has_no_handler():
    assert signal.getsignal(signal.SIGUSR1) == signal.SIG_DFL


def test_log_has_no_handler():
    assert LOGGER.handlers == []


def test_warning_is_no_error():
    assert deprecated() == 1


@pytest.mark.parametrize(("module", "name"), USED_BY_PROCESSES)
def test_module_is_as_before(module, name):
    assert getattr(module, name) is not str
