"""Runs a command in namespaces of its own, with one directory mounted at the path of another.

`command_line` gives the arguments that start it; `namespaces.enter_host` names the options, a JSON object. `{"file":
PATH}` names a file that holds it, since Linux limits a single argument to 128 KB.

The exit code is what a shell would give: the command's own, or 128 and the number of the signal that has ended it; 126
and 127 if it can't be run; 125 if the kernel refuses the namespaces. If the part "pid" is permitted, all that the
command has started ends with this process.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Mapping
from typing import Any, NoReturn

from .namespaces import HostWorld, enter_host
from .serving import serve

NO_WORLD, NOT_EXECUTABLE, NOT_FOUND, BY_SIGNAL = 125, 126, 127, 128
IGNORED_BY_PYTHON = ("SIGPIPE", "SIGXFSZ")
HERE = os.path.dirname(os.path.abspath(__file__))
BOOT = (  # a module's bytecode is cached, a script's is not
    f"import json, sys; sys.path.append({os.path.dirname(HERE)!r}); "
    f"from {os.path.basename(HERE)}.command import main; main(json.loads(sys.argv[1]))"
)


def command_line(options: Mapping[str, object]) -> list[str]:
    """Return the arguments that run `main` with `options` in an interpreter that imports nothing of a project."""
    return [sys.executable, "-I", "-S", "-c", BOOT, json.dumps(options)]


def main(options: dict[str, Any]) -> NoReturn:
    """Run `options["command"]`; the other options are the arguments of `enter_host`.

    An empty command: `serve` the commands that stdin names.
    `report` may name a file, to which `parts` and `refused` of the world are written as JSON before the command starts.
    """
    if "file" in options:
        with open(options["file"], encoding="utf-8") as stored:
            options = json.load(stored)
    command: list[str] = options.pop("command")
    report = options.pop("report", None)
    try:
        world = enter_host(**options)
        if report is not None:
            with open(report, "w", encoding="utf-8") as stream:
                json.dump({"parts": sorted(world.parts), "refused": world.refused}, stream)
        if not command:
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
    if namespace is not None:
        namespace.end()
    world.forget(pid)
    world.end()
    code = os.waitstatus_to_exitcode(status)
    os._exit(code if code >= 0 else BY_SIGNAL - code)


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
