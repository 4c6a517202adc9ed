"""The Python engine: tests mutants of Python projects under pytest, for any tool that says where its mutants are."""

from __future__ import annotations

from msp_bridge.python_engine.engine import PythonEngine
from msp_bridge.python_engine.program import ask_for_mutants, python_environment, start_program
from msp_bridge.python_engine.source import PythonEdit, PythonSource
from msp_bridge.python_engine.surroundings import python_surroundings
from msp_bridge.python_engine.test_plan import TestPlan

__all__ = [
    "PythonEdit",
    "PythonEngine",
    "PythonSource",
    "TestPlan",
    "ask_for_mutants",
    "python_environment",
    "python_surroundings",
    "start_program",
]
