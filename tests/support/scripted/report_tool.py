"""A mutation testing tool that does what a script says: `python report_tool.py DIRECTORY SCRIPT [ARGUMENT]...`

DIRECTORY/SCRIPT.json is a list of steps, each an object with one key; `{0}`, `{1}` … in a string are the arguments:

    {"write": [PATH, TEXT or JSON]}   a file, as text or as JSON
    {"await": NAME}                   waits until DIRECTORY/NAME is there
    {"chat until": NAME}              the same, with a line to stdout at each look
    {"touch": NAME}                   makes DIRECTORY/NAME
    {"out": TEXT}, {"err": TEXT}      a line to stdout, to stderr
    {"exit": CODE}                    ends

Each run adds a line to DIRECTORY/log: the script's name, the working directory, and the arguments.
"""

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

LOOK = 0.01  # s between two looks for a file


def filled(text: str, arguments: list[str]) -> str:
    for number, argument in enumerate(arguments):
        text = text.replace(f"{{{number}}}", argument)
    return text


def do(directory: Path, step: dict[str, Any], arguments: list[str]) -> None:
    ((action, value),) = step.items()
    if action == "write":
        path = Path(filled(value[0], arguments))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(value[1] if isinstance(value[1], str) else json.dumps(value[1]), encoding="utf-8")
    elif action == "await":
        while not (directory / value).exists():
            time.sleep(LOOK)
    elif action == "chat until":
        while not (directory / value).exists():
            print("waiting", flush=True)
            time.sleep(LOOK)
    elif action == "touch":
        (directory / value).touch()
    elif action == "out":
        print(value, flush=True)
    elif action == "err":
        print(value, file=sys.stderr, flush=True)
    elif action == "exit":
        sys.exit(value)


def main() -> None:
    directory, name, arguments = Path(sys.argv[1]), sys.argv[2], sys.argv[3:]
    with (directory / "log").open("a", encoding="utf-8") as log:
        log.write(f"{json.dumps([name, os.getcwd(), *arguments])}\n")
    for step in json.loads((directory / f"{name}.json").read_text(encoding="utf-8")):
        do(directory, step, arguments)


if __name__ == "__main__":
    main()
