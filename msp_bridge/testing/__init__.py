"""The conformance suite for adapters: what an editor and its user rely on, checked on a real project.

In your own tests, on a copy of a small project that the tool can mutate:

    async def test_my_adapter_conforms(tmp_path):
        root = shutil.copytree("tests/projects/small", tmp_path / "small")
        await check_adapter(MyAdapter, Project(root=root, cache=tmp_path / "cache", jobs=2))

`verify` checks the verdicts of an adapter against those of an `Oracle`, which tests each mutant in a fresh process.
"""

from msp_bridge.python_engine import pytest_command
from msp_bridge.testing.comparison import Difference, Verdict, Verification
from msp_bridge.testing.conformance import RunningProcesses, TreeState, check_adapter
from msp_bridge.testing.oracle import Oracle, verify

__all__ = [
    "Difference",
    "Oracle",
    "RunningProcesses",
    "TreeState",
    "Verdict",
    "Verification",
    "check_adapter",
    "pytest_command",
    "verify",
]
