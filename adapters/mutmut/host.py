"""WarmHost: the bridge's side of the process that judges mutants, from its start to its end."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

from attrs import define, field

from msp_bridge.adapter import Mutant, Result, Status, ToolError, log_failing_tests
from msp_bridge.concurrency import wait_shielded
from msp_bridge.counts import counted
from msp_bridge.toolkit import unwritable

from .channel import Answer, Channel

log = logging.getLogger(__name__)

PATIENCE = 3600.0  # s for all tests, without a mutant
PREFIX = "msp-"  # of the names of temporary directories; short, for some tests put sockets there

UNUSED = {
    "mutate_only_covered_lines": "mutants that no test reaches are reported as NoCoverage",
    "type_check_command": "mutants are tested without a type checker",
}


class Interrupted(Exception):
    """The mutant was being tested when a file changed: its tests were ended."""


@define(eq=False)
class WarmHost:
    """One host process. Raises ChannelClosed everywhere when the process has ended.

    What tests write to temporary directories goes to one of the host's own, and is deleted with it.
    """

    _channel: Channel
    _scratch: tempfile.TemporaryDirectory[str]
    _home: Path
    _tests: list[str] = field(factory=list, init=False)
    _coverage: dict[str, tuple[str, ...]] = field(factory=dict, init=False)
    failing: dict[str, str] = field(factory=dict, init=False)  # tests that fail without any mutant, and why
    _asked: set[int] = field(factory=set, init=False)
    _told: set[str] = field(factory=set, init=False)

    @classmethod
    async def start(
        cls, python: Path, options: Mapping[str, object], *, copy: Path, env: Mapping[str, str | None]
    ) -> WarmHost:
        """In the private copy at `copy`. Raises ToolError."""
        try:
            scratch = await asyncio.to_thread(_scratch, copy.parent / "scratch")
        except OSError as error:
            raise ToolError(
                f"no temporary directory for the tests can be made: {error}; free some space, or set TMPDIR elsewhere"
            ) from error
        try:
            channel = await Channel.open(python, "host", options, cwd=copy, env={**env, "TMPDIR": scratch.name})
        except BaseException:
            scratch.cleanup()
            raise
        return cls(channel, scratch, copy.parent)

    @property
    def alive(self) -> bool:
        """Whether it can still be asked."""
        return not self._channel.closed

    @property
    def pid(self) -> int:
        """Changes when, and only when, there is another host."""
        return self._channel.pid

    @property
    def busy(self) -> bool:
        """Whether a mutant is being tested."""
        return bool(self._asked)

    @property
    def size(self) -> int:
        """How many tests there are."""
        return len(self._tests)

    async def prepare(self, changed: frozenset[str], content: str) -> None:
        """Generate what has changed, collect, and measure the suite where need be. Raises ToolError."""
        try:
            async with asyncio.timeout(PATIENCE):
                answer = await self._channel.ask({"do": "prepare", "changed": sorted(changed), "content": content})
        except TimeoutError:
            raise ToolError(
                f"the tests have not ended within {PATIENCE:.0f} s, without any mutant: see which test hangs "
                "(`python -m pytest -v`) and mend it, or exclude it with pytest_add_cli_args"
            ) from None
        if "errno" in answer:
            raise unwritable(self._home, OSError(answer["errno"], answer["error"]))
        if "error" in answer:
            if answer.get("said"):
                log.info("%s\n%s", answer["error"], answer["said"])
            raise ToolError(answer["error"])
        self._tests = answer["tests"]
        self._coverage = {
            function: tuple(self._tests[test] for test in tests) for function, tests in answer["coverage"].items()
        }
        self.failing = answer["failing"]
        self._tell(answer)

    async def test(self, mutant: Mutant, digest: str) -> Result | None:
        """The verdict; None when the host knows another version of the file. Raises Interrupted.

        Cancelling waits until the mutant's processes are gone.
        """
        number, future, line = self._channel.post(
            {"do": "test", "path": mutant.path, "mutant": mutant.handle, "digest": digest}
        )
        self._asked.add(number)
        try:
            await self._channel.send(line)
            answer = await asyncio.shield(future)
        except asyncio.CancelledError:
            await wait_shielded(asyncio.create_task(self._stop([number], [future])))
            raise
        finally:
            self._asked.discard(number)
        if answer["status"] == "stopped":
            raise Interrupted
        return None if answer["status"] == "stale" else self._result(mutant, answer)

    async def interrupt(self) -> None:
        """End the workers of all mutants that are being tested; their `test` raises Interrupted."""
        await self._stop(list(self._asked), [])

    async def end(self) -> None:
        """End it, its workers, and what those have left; idempotent."""
        await self._channel.close()
        await asyncio.to_thread(self._scratch.cleanup)

    async def _stop(self, numbers: list[int], futures: list[asyncio.Future[Answer]]) -> None:
        with contextlib.suppress(ToolError):  # a host that has ended has no workers
            await self._channel.ask({"do": "stop", "ids": numbers})
            await asyncio.gather(*futures)

    def _result(self, mutant: Mutant, answer: Answer) -> Result:
        killer, seconds = answer.get("killed_by"), answer.get("seconds")
        covered = self._coverage.get(answer["function"], ())
        if "covered" in answer:
            covered = tuple(self._tests[test] for test in answer["covered"])
        return Result(
            mutant,
            Status(answer["status"]),
            duration=None if seconds is None else round(seconds * 1000, 3),
            covered_by=covered,
            killed_by=(killer,) if killer else None,
            static=answer["static"],
            status_reason=answer.get("reason"),
            tests_completed=answer.get("tests"),
        )

    def _tell(self, answer: Answer) -> None:
        """What the user should know and isn't an error, once."""
        for path, problem in answer["problems"].items():
            self._warn(f"{path} is tested without mutants: {problem}")
        new = {test: text for test, text in answer["failing"].items() if test not in self._told}
        self._told.update(new)
        log_failing_tests(log, new)
        for option in answer["unused"]:
            self._warn(f"mutmut's option {option} is not used: {UNUSED[option]}")
        if answer["cold"]:
            self._warn(
                "every mutant is tested in a process that imports everything anew (process_isolation, or threads)"
            )
        log.info(
            "mutmut is ready: %s; generated in %.2f s, collected in %.2f s, measured in %.2f s",
            counted(len(self._tests), "test"),
            *answer["seconds"],
        )

    def _warn(self, text: str) -> None:
        if text not in self._told:
            self._told.add(text)
            log.warning("%s", text)


def _scratch(record: Path) -> tempfile.TemporaryDirectory[str]:
    """A new temporary directory; that of a host whose bridge was killed, and which is on `record`, is deleted."""
    with contextlib.suppress(OSError, ValueError):
        old = Path(record.read_text("utf-8"))
        if old.name.startswith(PREFIX) and old.parent == Path(tempfile.gettempdir()) and not old.is_symlink():
            shutil.rmtree(old, ignore_errors=True)
    scratch = tempfile.TemporaryDirectory(prefix=PREFIX, ignore_cleanup_errors=True)
    with contextlib.suppress(OSError):  # should the bridge be killed then, nobody deletes it
        record.write_text(scratch.name, "utf-8")
    return scratch
