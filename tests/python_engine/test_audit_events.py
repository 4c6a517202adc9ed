"""Audit events: Python calls each hook for each frame of each stack that a test looks at, so there is one."""

import subprocess
import sys
from pathlib import Path

HOOKS = """import pathlib
import sys
count = []
sys.addaudithook(lambda event, _: count.append(event) if event == "sys.addaudithook" else None)
from msp_bridge.python_engine.programs.code_runs import CodeRuns
from msp_bridge.python_engine.programs.imports import ImportTrace
from msp_bridge.python_engine.programs.line_coverage import TestCoverage, lines_of, monitoring
from msp_bridge.python_engine.programs.live_code import LiveFunctions
ImportTrace(frozenset()).start()
if monitoring is not None:
    monitoring.free_tool_id(4)
CodeRuns(lambda name: False)
functions = LiveFunctions(frozenset())
TestCoverage().measure(lines_of(functions, (), None), (), (), (), pathlib.Path(sys.argv[1]))
print(len(count))
"""


def test_all_that_is_noted_while_tests_are_measured_takes_one_hook(tmp_path: Path) -> None:
    run = subprocess.run([sys.executable, "-c", HOOKS, tmp_path], capture_output=True, text=True, check=True)
    assert run.stdout == "1\n"
