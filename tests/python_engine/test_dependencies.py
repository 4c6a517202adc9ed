"""Dependencies: which functions of a project a process has run."""

import ast
import subprocess
import sys
from pathlib import Path

from msp_bridge.python_engine.programs.dependencies import joined

CODE = """import threading, types

def threaded(): pass
def gone(): return inner()
def inner(): pass
def outer():
    def nested(): pass
    return nested
def number(): yield 1
def copied(): pass
def given(): pass
def other(): pass
def never(): pass

class Thing:
    def method(self): pass

thread = threading.Thread(target=threaded)
thread.start()
thread.join()
gone()
del gone
outer()()
next(number())
types.FunctionType(copied.__code__.replace(co_name="copy"), {})()
other.__code__ = given.__code__.replace()
other()
Thing().method()
"""
PROGRAM = """import sys
from msp_bridge.python_engine.programs.dependencies import DependencyTrace

sys.path.insert(0, sys.argv[1])
trace = DependencyTrace(sys.argv[1])
trace.begin()
import shop
found = [trace.report()]
trace.renew()
shop.inner()
shop.never()
found.append(trace.report())
for hides in sys.argv[2:]:
    trace.renew()
    exec(hides)
    found.append(trace.report()["hidden"])
print(found)
"""
HIDES = [
    "import subprocess; subprocess.run([sys.executable, '-c', 'import shop'], check=True)",
    "import os; os.waitpid(os.posix_spawn('/bin/true', ['true'], {}), 0)",
    *(["sys.setprofile(None)", "sys.monitoring.free_tool_id(3)"] if sys.version_info >= (3, 12) else []),
]


def test_each_function_that_ran_is_named_whatever_has_run_it(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(CODE)
    command = [sys.executable, "-c", PROGRAM, tmp_path, *HIDES]
    ran, more, *hidden = ast.literal_eval(subprocess.check_output(command, env={"PYTHONPATH": tmp_path}, text=True))
    names = ["Thing", "Thing.method", "copied", "given", "gone", "inner", "number", "outer", "threaded"]
    assert ran == {"functions": {"shop.py": names}, "texts": [], "hidden": False}
    assert more["functions"] == {"shop.py": ["never"]}, "what ran before is known"
    assert hidden == [True] * len(HIDES), "what starts a process, or takes the notes away, depends on everything"
    assert joined([{"functions": {}, "texts": [], "hidden": hides} for hides in (False, True)]) is None
