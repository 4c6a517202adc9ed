"""Measurement: the one run of the suite without a mutant, and its record for the next process."""

from __future__ import annotations

import json
import os
import sysconfig
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

from mutmut.configuration import config

from .channel import Message
from .fault import Unprepared, fault_of, gist
from .generation import save
from .nursery import Nursery
from .suite import Suite

STATS = "stats"


class Measurement:
    """Of the suite as it is when the project has a certain content."""

    def __init__(self, file: Path, nursery: Nursery) -> None:
        self._file, self._nursery = file, nursery
        self._saved: Message = {}

    def suite(self, content: str, collected: Message | None) -> Suite:
        """As it was measured for this content, or measured now. Raises Unprepared."""
        return self._known(content, collected) or self._measured(content, collected)

    def note(self, alone: dict[int, Message | None]) -> None:
        """What each test does alone."""
        self._save({"alone": alone})

    def _measured(self, content: str, collected: Message | None) -> Suite:
        pool = self._nursery.warm or self._nursery.cold
        assert pool is not None
        pool.channel.send({"id": 0, "do": "run", "mutant": STATS, "tests": None, "limit": None, "failing": []})
        answer = next(pool.channel.messages(), None)
        report = answer and answer["report"]
        if not report:
            code = answer["exit"] if answer else "?"
            raise Unprepared(
                f"the tests end pytest itself (exit code {code}) before any mutant is active: "
                "exclude the test that does, with pytest_add_cli_args"
            )
        if "durations" not in report:
            raise fault_of(report, self._nursery.log("cold"))
        if collected is None or pool is self._nursery.cold:
            collected = report["collected"]
        suite = Suite.of(report, collected)
        if len(suite.failing) == len(suite.tests):
            test, text = next(iter(suite.failing.items()))
            said = f"{suite.tests[test]} says: {gist(text)}"
            raise Unprepared(f"every test fails before any mutant is active: mend them first; {said}", text)
        self._saved = {"key": _key(), "content": content, "report": report, "collected": collected}
        self._save({})
        return suite

    def _save(self, more: Message) -> None:
        """For the next process that finds the same project."""
        self._saved.update(more)
        save(self._file, self._saved)

    def _known(self, content: str, collected: Message | None) -> Suite | None:
        """What was measured earlier, when neither the project nor its environment has changed since."""
        try:
            saved: dict[str, Any] = json.loads(self._file.read_bytes())
            if saved["key"] != _key() or saved["content"] != content:
                return None
            if collected is not None and saved["collected"]["tests"] != collected["tests"]:
                return None
            suite = Suite.of(saved["report"], collected or saved["collected"])
            if (alone := saved.get("alone")) is not None:
                suite = suite.surveyed({int(test): report for test, report in alone.items()})
        except (OSError, ValueError, TypeError, AttributeError, KeyError):  # none, or damaged: measured anew
            return None
        self._saved = saved
        return suite


def _key() -> list[Any]:
    site = sysconfig.get_path("purelib")
    return [
        version("mutmut"),
        version("pytest"),
        os.stat(site).st_mtime_ns if os.path.isdir(site) else 0,
        repr(asdict(config())),
    ]
