"""The keeper: a small process between the bridge and one tool, which outlives both just long enough to clean up.

Run as a script (`python -I -S keeper.py LIFELINE COOKIE GRACE SITE -- ARGV…`), it starts the tool with its own stdin,
stdout and stderr and waits for whichever comes first: the tool's end, or the end of the lifeline, a socket whose other
end the bridge holds, so that it closes even when the bridge is killed with SIGKILL. Then it ends every descendant and
writes the tool's exit status to the lifeline. On Linux it is a "child subreaper": orphans become its children, so that
none is lost; elsewhere a process that leaves both its parent and its environment behind escapes.
"""

from __future__ import annotations

import os
import select
import signal
import sys

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36


class Keeper:
    """Keeps one tool."""

    def __init__(self, lifeline: int, cookie: str, grace: float, site: str) -> None:
        self._lifeline, self._cookie, self._grace, self._site = lifeline, cookie, grace, site
        self._tool = 0
        self._status: int | None = None

    def keep(self, argv: list[str]) -> None:
        """Runs `argv` to its end, or to the lifeline's."""
        os.set_inheritable(self._lifeline, False)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)  # only the lifeline ends a keeper: it must be the last to go
        exact = _prctl(PR_SET_CHILD_SUBREAPER, 1)
        wake, sleep = os.pipe()
        os.set_blocking(sleep, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(sleep, warn_on_full_buffer=False)
        self._tool = self._spawn(argv)
        self._let_go_of_streams()
        self._wait(wake)
        if not (exact and self._childless()):
            self._end_descendants()
        self._report(f"status {-signal.SIGKILL if self._status is None else self._status}")

    def _spawn(self, argv: list[str]) -> int:
        keeper = os.getpid()
        pid = os.fork()
        if pid:
            return pid
        try:
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD):
                signal.signal(number, signal.SIG_DFL)
            _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() == keeper:  # else the keeper died before the line above could notice
                os.execvp(argv[0], argv)
        except OSError as error:
            os.write(2, f"can't run {argv[0]}: {error.strerror}\n".encode("utf-8", "surrogateescape"))
        os._exit(127)

    def _let_go_of_streams(self) -> None:
        """The tool's pipes must close when the tool lets go of them."""
        null = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(null, stream)
        os.close(null)

    def _wait(self, wake: int) -> None:
        while self._status is None:
            ready, _, _ = select.select([self._lifeline, wake], [], [])
            if self._lifeline in ready:
                return  # the bridge wants the end, or is gone
            os.read(wake, 4096)
            self._reap()

    def _reap(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if not pid:
                return
            if pid == self._tool:
                self._status = os.waitstatus_to_exitcode(status)

    def _childless(self) -> bool:
        """Whether nothing is left, told without the cost of looking at every process."""
        self._reap()
        try:
            os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return True
        return False

    def _end_descendants(self) -> None:
        sys.path[:0] = [os.path.dirname(os.path.abspath(__file__)), self._site]
        import sweep  # type: ignore[import-not-found,unused-ignore]  # beside this file; needs psutil: only now, for a fast start

        sweep.end(self._cookie, os.getpid(), self._grace, self._reap)
        self._reap()

    def _report(self, line: str) -> None:
        try:
            os.write(self._lifeline, line.encode() + b"\n")
        except OSError:
            return  # the bridge is gone: nobody to tell


def _prctl(option: int, value: int) -> bool:
    """Whether the kernel took it: Linux alone has prctl."""
    if sys.platform != "linux":
        return False
    import ctypes

    return bool(ctypes.CDLL(None).prctl(option, value, 0, 0, 0) == 0)


def main(arguments: list[str]) -> None:
    """The arguments are LIFELINE COOKIE GRACE SITE -- ARGV."""
    lifeline, cookie, grace, site, _, *argv = arguments
    Keeper(int(lifeline), cookie, float(grace), site).keep(argv)


if __name__ == "__main__":
    main(sys.argv[1:])
