import importlib
import runpy

from subject import core


def test_import_alone():
    importlib.import_module("subject.views")


def test_shown():
    assert core.handler("/shown")([1, 2, 3, 4]) == [1, 2, 3]


def test_count():
    assert core.handler("/count")([]) == 1


def test_script():
    assert runpy.run_path("subject/script.py")["result"] == 42


def test_again():
    import subject.again

    subject.again.STARTS.append(5)
    importlib.reload(subject.again)
    assert subject.again.started(4) == 0
