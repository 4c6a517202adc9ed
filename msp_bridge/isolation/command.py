"""Runs a command in namespaces of its own, with one directory mounted at the path of another.

`command_line` gives the arguments that start it; `namespaces.enter_host` names the options. They are in the text of the
program, which needs no parser but Python's own: each import costs milliseconds whenever a command is isolated.

The exit code is what a shell would give: the command's own, or 128 and the number of the signal that has ended it; 126
and 127 if it can't be run; 125 if the kernel refuses the namespaces. If the part "pid" is permitted, all that the
command has started ends with this process.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Mapping

from .namespaces import HostWorld, enter_host

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any, NoReturn

NO_WORLD, NOT_EXECUTABLE, NOT_FOUND, BY_SIGNAL = 125, 126, 127, 128
IGNORED_BY_PYTHON = ("SIGPIPE", "SIGXFSZ")
HERE = os.path.dirname(os.path.abspath(__file__))
BOOT = (  # a module's bytecode is cached, a script's is not
    f"import sys; sys.path.append({os.path.dirname(HERE)!r}); from {os.path.basename(HERE)}.command import main; "
)


def command_line(options: Mapping[str, object], file: Path | None = None) -> list[str]:
    """Return the arguments that run `main` with `options` in an interpreter that imports nothing of a project.

    `file` becomes the program: Linux limits a single argument to 128 KB.
    """
    program = f"{BOOT}main({dict(options)!a})"
    if file is not None:
        file.write_text(program, "ascii")
    return [sys.executable, "-I", "-S", *(["-c", program] if file is None else [str(file)])]


def main(options: dict[str, Any]) -> NoReturn:
    """Run `options["command"]`; the other options are the arguments of `enter_host`.

    An empty command: `serve` the commands that stdin names.
    `report` may name a file, to which the world's parts are written before the command starts: see `reported`.
    """
    command: list[str] = options.pop("command")
    report = options.pop("report", None)
    try:
        world = enter_host(**options)
        if report is not None:
            _report(report, world)
        if not command:
            from .serving import serve  # here: it imports json, which no single command waits for

            serve(world, _become)
            world.end()
            os._exit(0)
        pid, namespace = world.fork(world.parts)
        if pid == 0:
            _become(command, world)
    except OSError as refusal:
        _say(f"no world of its own: {refusal}")
        os._exit(NO_WORLD)
    _, status = os.waitpid(pid, 0)
    world.end_child(pid, namespace)
    world.end()
    code = os.waitstatus_to_exitcode(status)
    os._exit(code if code >= 0 else BY_SIGNAL - code)


def _report(file: str, world: HostWorld) -> None:
    refused = [text for part in world.refused.items() for text in part]
    with open(file, "w", encoding="utf-8", errors="surrogateescape") as stream:
        stream.write("\0".join([" ".join(sorted(world.parts)), *refused]))


def reported(file: Path) -> tuple[frozenset[str], dict[str, str]]:
    """The parts of a world, and what the kernel has refused, with its reason. Raises OSError."""
    parts, *refused = file.read_text("utf-8", "surrogateescape").split("\0")
    return frozenset(parts.split()), dict(zip(refused[::2], refused[1::2], strict=False))


def _become(command: list[str], world: HostWorld) -> NoReturn:
    """In the child."""
    try:
        world.enter_child(world.parts)
    except OSError as refusal:
        _say(f"no world of its own: {refusal}")
        os._exit(NO_WORLD)
    for name in IGNORED_BY_PYTHON:  # the command would inherit that
        signal.signal(getattr(signal, name), signal.SIG_DFL)
    try:
        os.execvp(command[0], command)
    except OSError as error:
        _say(f"{command[0]}: {error.strerror}")
        os._exit(NOT_FOUND if isinstance(error, FileNotFoundError) else NOT_EXECUTABLE)


def _say(text: str) -> None:
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()
