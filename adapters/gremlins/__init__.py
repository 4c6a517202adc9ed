"""gremlins through the bridge: its mutants, many of them in one test binary, tested by the tests that cover them."""

from .adapter import Gremlins

__all__ = ["Gremlins"]
