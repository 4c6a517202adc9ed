"""The Python engine: tests mutants of Python projects under pytest, for any tool that says where its mutants are."""

from __future__ import annotations

from msp_bridge.python_engine.engine import PythonEngine
from msp_bridge.python_engine.listing_program import ListingProgram
from msp_bridge.python_engine.plan import TestPlan
from msp_bridge.python_engine.program import (
    digest_of_programs,
    mutants_in,
    pytest_command,
    python_environment,
    python_surroundings,
    start_program,
)
from msp_bridge.python_engine.source import PythonEdit, PythonSource, likely_sources

__all__ = [
    "ListingProgram",
    "PythonEdit",
    "PythonEngine",
    "PythonSource",
    "TestPlan",
    "digest_of_programs",
    "likely_sources",
    "mutants_in",
    "pytest_command",
    "python_environment",
    "python_surroundings",
    "start_program",
]
