"""`watch` tests what is saved, shows survivors alone, and ends with all of its processes."""

import queue
import signal
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.command_line import WAIT_S, bridge, command, environment, script


class Watching:
    """A `watch` that runs, and its lines."""

    def __init__(self, project: Path, *arguments: str) -> None:
        argv = command("watch", *arguments, "--adapter", "scripted")
        self.process = subprocess.Popen(argv, cwd=project, env=environment(project), stdout=subprocess.PIPE, text=True)
        self._lines: queue.Queue[str] = queue.Queue()
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.put(line)

    def until(self, text: str) -> list[str]:
        """The lines up to the next that has `text` in it."""
        lines = [self._lines.get(timeout=WAIT_S)]
        while text not in lines[-1]:
            lines.append(self._lines.get(timeout=WAIT_S))
        return lines

    def end(self) -> int:
        self.process.send_signal(signal.SIGINT)
        code = self.process.wait(WAIT_S)
        self._reader.join(WAIT_S)
        assert self.process.stdout is not None
        self.process.stdout.close()
        return code


@pytest.fixture
def watching(project: Path) -> Iterator[Watching]:
    running = Watching(project)
    running.until("watching")
    yield running
    assert running.end() == 130


def test_saved_lines_are_tested_and_survivors_alone_are_shown(project: Path, watching: Watching) -> None:
    (project / "b.py").write_text("w = v + u\nk = w + u\n")
    assert "1 mutant tested, 0 survive" in watching.until("tested")[0]
    (project / "a.py").write_text("# new\nx = y + 1\nz = 11\n")
    lines = watching.until("tested")
    assert lines[:3] == ["Survived  a.py:3:5  digit\n", "    - z = 11\n", "    + z = 21\n"]
    assert "2 mutants tested, 2 survive" in lines[-1]
    assert "plus" in bridge(project, "show", "b.py:2").stdout  # what was tested is kept
    assert "Survived  a.py:3:5" in bridge(project, "results").stdout


def test_a_saved_test_tests_the_survivors_again(project: Path, watching: Watching) -> None:
    (project / "a.py").write_text("x = y + 1\nz = 1 \n")
    assert "1 survive" in watching.until("tested")[-1]
    (project / "a.py").write_text("# moved\nx = y + 1\nz = 1 \n")
    (project / "notes.txt").write_text("as of a test")
    script(project, mutations=[{"mutator": "digit", "find": "1", "replacement": "2"}])
    assert "0 survive" in watching.until("0 survive")[-1]
