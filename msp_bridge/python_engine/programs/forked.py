"""Forked: how a process that was forked to serve gets rid of the stack that it was forked on.

Theory of operation
-------------------
The recursion limit counts the frames below a test, and tests see them (`traceback`, `inspect.stack`). A test must find
as many as `python -m pytest` has: a test of deep recursion passes there with a few frames to spare. A server is forked
deep in the host, by a request of the bridge. So `Forked` is raised in it, through all frames of the host, none of which
catches it, down to the module that Python was started with. That one calls `serve`, a `functools.partial`, which needs
no frame. From there to a test lie these frames, five of ours for five of pytest's:

    ours          <module>       _serve         live, fresh or alone    pytest.main    pytest's _main …
    pytest's own  runpy's two    <module>       console_main            _main …

Further up, the hook `pytest_runtestloop` is ours: the frames of what a job does are not on the stack while a test runs:
that is a generator which yields each test to the hook (`pytest_session.Work`).

The exception keeps the host's frames alive, with all that they hold: nothing of the host's is finalised in the server.
"""

from __future__ import annotations

from collections.abc import Callable


class Forked(BaseException):
    """Raised in the forked process, to be caught at the bottom of its stack, where `serve` is called."""

    def __init__(self, serve: Callable[[], object]) -> None:
        super().__init__("forked")
        self.serve = serve
