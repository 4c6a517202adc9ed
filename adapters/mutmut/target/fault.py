"""Fault: why no mutant can be tested, in one sentence made of the many lines that pytest says."""

from __future__ import annotations

from .channel import Message

MARK = "E   "  # pytest's, before the lines of an exception
TRACEBACK = "Traceback (most recent call last):"
CUT = "…"  # in the place of the beginning of a message that was too long


class Unprepared(Exception):
    """The project can't be tested: why, in one sentence, and all that was said of it."""

    def __init__(self, why: str, said: str = "") -> None:
        super().__init__(why)
        self.said = said


def fault_of(answer: Message, log: str) -> Unprepared:
    """Why pytest didn't get as far as the tests, though no mutant is active; `log` is the end of what it printed."""
    if answer["broken"]:
        test, text = answer["broken"][0]
        others = len(answer["broken"]) - 1
        nor = f", nor can {others} other{'s' * (others > 1)}" if others else ""
        return Unprepared(
            f"{test} can't be imported{nor}: {gist(text)}; mend it, or leave it out with pytest_add_cli_args", text
        )
    if answer["exit"] == 5:
        return Unprepared(
            "pytest finds no tests: name them with pytest_add_cli_args_test_selection in mutmut's configuration"
        )
    return Unprepared(f"pytest can't start (exit code {answer['exit']}): {last_error(log)}", log)


def gist(text: str) -> str:
    """The line that names the exception, of what pytest says of a test or a module."""
    lines = text.splitlines() or [""]
    if marked := [line[len(MARK) :] for line in lines if line.startswith(MARK)]:
        return next((line for line in reversed(marked) if line[:1].strip()), marked[-1].strip())
    if text.startswith(CUT):
        return lines[-1].strip()
    if TRACEBACK in lines:
        lines = lines[len(lines) - lines[::-1].index(TRACEBACK) :]
    return next((line for line in lines if line[:1].strip()), lines[0].strip())


def last_error(log: str) -> str:
    """The last line that speaks of an error, or else the last one."""
    lines = [line.strip() for line in log.splitlines()] or ["it says nothing"]
    return next((line for line in reversed(lines) if "error" in line.lower()), lines[-1])
