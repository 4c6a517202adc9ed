"""`mutate`, the tool of docs/how-to/writing-an-adapter.md, made real: it mutates `*.src` files, and tests them by running check.py.

`mutate list --json FILE…` prints one JSON object a line; `mutate test ID…` prints `ID STATUS MILLISECONDS` lines. An ID
names the file's content, too: one of a file that has changed since is passed over. Nothing is written into the project.
"""

import hashlib
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

OPERATORS = {"+": "-", "*": "+", "<": "<="}
RUN_TIMEOUT_S = 20


def mutants(file: Path) -> Iterator[dict[str, Any]]:
    try:
        text = file.read_bytes().decode("utf-8")
    except UnicodeDecodeError:
        sys.exit(f"{file} is no UTF-8")
    digest = hashlib.sha256(text.encode()).hexdigest()[:12]
    for at, character in enumerate(text):
        if character in OPERATORS:
            entry = {"file": file.as_posix(), "from": at, "to": at + 1, "operator": f"{character} changed"}
            yield entry | {"text": OPERATORS[character], "id": f"{file.as_posix()}@{at}@{digest}"}


def test(entry: dict[str, Any]) -> str:
    with tempfile.TemporaryDirectory() as directory:
        copy = Path(shutil.copytree(".", Path(directory) / "copy"))
        text = (copy / entry["file"]).read_bytes().decode("utf-8")
        mutated = text[: entry["from"]] + entry["text"] + text[entry["to"] :]
        (copy / entry["file"]).write_bytes(mutated.encode())
        command = [sys.executable, "-S", "-B", "check.py"]
        try:
            done = subprocess.run(command, cwd=copy, capture_output=True, timeout=RUN_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            return "timeout"
        return "killed" if done.returncode else "alive"


def main(what: str, *arguments: str) -> None:
    if what == "--version":
        print("mutate 1.0")
        return
    if what == "list":
        files = [Path(name) for name in arguments if name != "--json"]
        for file in sorted(files or Path().rglob("*.src")):
            for entry in mutants(file):
                print(json.dumps(entry))
        return
    for name in arguments:
        file = Path(name.split("@")[0])
        known = {entry["id"]: entry for entry in mutants(file)} if file.is_file() else {}
        if name in known:
            began = time.monotonic()
            print(name, test(known[name]), round((time.monotonic() - began) * 1000), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
