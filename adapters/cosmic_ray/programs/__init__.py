"""Programs under the project's interpreter: cosmic-ray's mutants, and the runs of a test command.

None of them is started by its name: see `msp_bridge.python_engine.program`.
"""
