"""The engine that tests the mutants of Python projects."""
