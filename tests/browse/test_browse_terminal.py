"""`msp-bridge browse` as a process in a terminal of its own: its editor, and its end."""

import fcntl
import json
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.command_line import WAIT_S, bridge, command, environment, make_project, script

EDITOR = """\
import json, os, sys
input("the editor has the terminal")
with open(__file__ + ".new", "w") as file:
    json.dump(sys.argv[1:], file)
os.rename(__file__ + ".new", __file__ + ".given")
"""


class Terminal:
    """The program in a terminal of 80 columns and 24 lines."""

    def __init__(self, project: Path, editor: str) -> None:
        self._main, side = pty.openpty()
        fcntl.ioctl(side, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        env = environment(project) | {"TERM": "xterm-256color", "EDITOR": editor}
        for name in ("COLUMNS", "VISUAL"):
            env.pop(name, None)
        argv = command("browse", "--adapter", "scripted")
        self.process = subprocess.Popen(argv, cwd=project, env=env, stdin=side, stdout=side, stderr=side)
        os.close(side)

    def press(self, keys: str) -> None:
        os.write(self._main, keys.encode())

    def until(self, text: str) -> None:
        """Read what is drawn from now on, up to `text`."""
        drawn, end = b"", time.monotonic() + WAIT_S
        while text.encode() not in drawn:
            assert time.monotonic() < end, drawn
            if select.select([self._main], [], [], 0.1)[0]:
                drawn += os.read(self._main, 65536)

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._main)


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    project = make_project(tmp_path / "project")
    script(project)
    assert bridge(project, "run").returncode == 0
    (tmp_path / "editor.py").write_text(EDITOR)
    running = Terminal(project, f"{sys.executable} {tmp_path / 'editor.py'}")
    running.until("missed: 2 of 4")
    yield running
    running.close()


def test_the_editor_has_the_terminal_until_it_ends_and_opens_at_the_line(terminal: Terminal, tmp_path: Path) -> None:
    terminal.press("ne")
    terminal.until("the editor has the terminal")
    terminal.press("\r")
    terminal.until("missed: 2 of 4")  # drawn again
    assert json.loads((tmp_path / "editor.py.given").read_text()) == ["+2", str(tmp_path / "project" / "a.py")]
    terminal.press("q")
    assert terminal.process.wait(WAIT_S) == 0


def test_a_signal_ends_it_as_it_ends_a_run(terminal: Terminal) -> None:
    terminal.process.send_signal(signal.SIGTERM)
    terminal.until("\x1b[?1049l")  # the screen that was there before
    assert terminal.process.wait(WAIT_S) == 130
