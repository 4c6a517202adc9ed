"""Host: the warm process that the bridge talks to. It never imports the project, nor pytest.

It owns the generated files, the zygotes and the judge, and makes them anew when the bridge says that files changed.
"""

from __future__ import annotations

import os
import select
import signal
import time
from itertools import pairwise
from pathlib import Path

from mutmut.configuration import ProcessIsolation

from . import descendants
from .channel import READY, Channel, Message
from .configuration import Configuration
from .fault import Unprepared, gist
from .generation import Generation, forget_bytecode
from .judge import Judge
from .measurement import Measurement
from .nursery import Nursery


def main(options: Message) -> None:
    """Serve the bridge until it closes the channel; the current directory is the copy."""
    channel = Channel.to_bridge()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    descendants.adopt_orphans()
    channel.send(READY)
    Host(channel, options).serve()


class Host:
    """Requests: prepare, test, stop. Each is answered once, under its id, in whatever order."""

    def __init__(self, channel: Channel, options: Message) -> None:
        home = Path(options["home"])  # private; the copy's parent
        self._channel, self._jobs, self._root = channel, options["jobs"], options["root"]
        self._configuration = Configuration(options["config_file"])
        self._generation = Generation(Path(options["root"]), home / "generated.json")
        self._generation.load()
        self._nursery = Nursery(options["root"], home, (channel.reader, channel.writer))
        self._measurement = Measurement(home / "suite.json", self._nursery)
        self._judge: Judge | None = None

    def serve(self) -> None:
        """Until the bridge closes the channel."""
        while True:
            pools = self._nursery.pools
            ready, _, _ = select.select([self._channel.reader, *(pool.channel.reader for pool in pools)], [], [])
            for pool in pools:
                if pool.channel.reader in ready and self._judge is not None:
                    self._judge.hear(pool)
            if self._channel.reader in ready:
                messages = self._channel.receive()
                if messages is None:
                    break
                for message in messages:
                    self._obey(message)
        self._nursery.end()

    def _obey(self, message: Message) -> None:
        if message["do"] == "test":
            self._test(message)
            return
        answer: Message = {}
        if message["do"] == "prepare":
            try:
                answer = self._prepare(message["changed"], message["content"])
            except Unprepared as error:
                self._nursery.end()
                answer = {"error": self._placed(str(error)), "said": self._placed(error.said)}
            except OSError as error:
                self._nursery.end()
                answer = {"error": str(error)}
                if error.errno is not None:  # else it comes from no system call: mutmut and pytest raise such, too
                    answer = {"error": f"{error.strerror}: {error.filename!r}", "errno": error.errno}
        elif self._judge is not None:
            self._judge.stop(message["ids"])
        self._channel.send({"id": message["id"], **answer})

    def _placed(self, text: str) -> str:
        """With the user's own files in the place of the copy's."""
        return text.replace(os.getcwd(), self._root)

    def _test(self, message: Message) -> None:
        made = self._generation.files.get(message["path"])
        if self._judge is None or made is None or made.digest != message["digest"]:
            self._channel.send({"id": message["id"], "status": "stale"})
        elif message["mutant"] not in made.handles:
            reason = made.problem or "mutmut doesn't generate this mutant"
            answer = {"status": "CompileError", "reason": reason, "function": "", "static": None}
            self._channel.send({"id": message["id"], **answer})
        else:
            self._judge.test(message["id"], message["mutant"])

    def _prepare(self, changed: list[str], content: str) -> Message:
        self._nursery.end()
        if self._judge is not None:
            self._judge.end()
            self._judge = None
        for path in changed:
            if path.endswith(".py"):
                forget_bytecode(path)
        marks = [time.perf_counter()]
        files, config = self._configuration.files(), self._configuration.read()
        self._generation.update(files, repr(config.do_not_mutate_patterns), self._jobs)
        marks.append(time.perf_counter())
        collected = self._nursery.start(config.process_isolation is ProcessIsolation.FORKSERVER)
        marks.append(time.perf_counter())
        suite = self._measurement.suite(content, collected)
        marks.append(time.perf_counter())
        self._judge = Judge(suite, self._nursery, self._measurement, self._jobs, self._channel.send)
        problems = {path: made.problem for path, made in self._generation.files.items() if made.problem is not None}
        return {
            "problems": problems,
            "tests": list(suite.tests),
            "coverage": {function: sorted(tests) for function, tests in suite.coverage.items()},
            "failing": {suite.tests[test]: gist(text) for test, text in suite.failing.items()},
            "cold": self._nursery.warm is None,
            "unused": self._configuration.unused(),
            "seconds": [round(later - earlier, 3) for earlier, later in pairwise(marks)],
        }
