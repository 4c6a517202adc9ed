import subprocess
import sys

import pytest
from truth import ids, state
from truth.at_import import SECRET, SQUARES, secret
from truth.interrupting import stop


def test_squares():
    assert SQUARES[3] == 9


def test_secret_is_what_it_was():
    assert secret() == SECRET


def test_values_exist(values):
    assert values


def test_values_are_right(values):
    assert values == [1, 2]


def words():
    return ["hé", "ß", "🙂"]


@pytest.mark.parametrize("word", words(), ids=lambda word: f"→{word}")
def test_shout(word):
    assert ids.shout(word).endswith("!")


def test_remember():
    assert state.remember("a") == 1


def test_last():
    assert state.last() == "a"


def test_command():
    code = "from truth.command import main; main()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "result 21\n"


def test_stop():
    assert stop(False) == "go"
