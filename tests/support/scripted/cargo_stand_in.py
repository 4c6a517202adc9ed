"""A stand-in for cargo with cargo-mutants 27.1, for machines that have neither; constructed after what the real ones do.

`python cargo_stand_in.py locate-project …` and `… mutants …` understand what the adapter says to them, and answer and write
as the real ones do: see tests/projects/rust_recorded. Mutants are `+` and `<` within functions. Nothing is built or run: a
comment at the end of a mutant's line says what becomes of it, `// caught`, `// unviable` or `// timeout`; else it is missed.

A file `stand-in.json` in the project may say otherwise: {"missing": true} has no subcommand `mutants`, {"baseline": "fails"}
(or "fails in place"), {"nameless": true} lists as before 26.1, {"json": TEXT} prints that for a list in JSON, {"hangs": true} never ends after its first outcome,
{"exit": 70} fails at once, {"device": NUMBER} has a baseline that passes only where /tmp is on that device, {"meet": DIRECTORY} tests
a second mutant without a baseline when two other runs have begun, {"spoils": TEXT} writes that beside each file whose mutants it tests, by an absolute
path, {"locks": true} makes Cargo.lock in its baseline and builds nothing without it. Each run in place notes in CARGO_TARGET_DIR/runs how it came by its limit of time. Each mutant changes its file, and what
was changed is changed back.
"""

import argparse
import json
import os
import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

OPERATORS = {"+": ["-", "*"], "<": ["==", ">", "<="]}
SUMMARIES = {"caught": "CaughtMutant", "unviable": "Unviable", "timeout": "Timeout"}
NO_SUCH_COMMAND = "error: no such command: `mutants`\n\nhelp: view all installed commands with `cargo --list`"


def workspace_root() -> Path:
    packages = [directory for directory in (Path.cwd(), *Path.cwd().parents) if (directory / "Cargo.toml").is_file()]
    if not packages:
        sys.exit("error: could not find `Cargo.toml` in the directory or any parent directory")
    return next((root for root in packages if "[workspace]" in (root / "Cargo.toml").read_text()), packages[0])


def mutants(root: Path, below: Path) -> Iterator[dict[str, Any]]:
    for file in sorted(below.rglob("*.rs")):
        text = file.read_bytes().decode("utf-8").replace("\r\n", "\n")
        if text.count("{") != text.count("}"):
            sys.exit(f"Error: failed to parse {file.relative_to(root)}\n\nCaused by:\n    cannot parse string")
        function = ""
        for number, line in enumerate(text.partition("#[cfg(test)]")[0].split("\n"), 1):
            function = match[1] if (match := re.search(r"\bfn (\w+)", line)) else function
            for found in re.finditer(r" ([+<]) ", line):
                for replacement in OPERATORS[found[1]]:
                    yield mutant(
                        str(file.relative_to(root)), function, number, found.start(1) + 1, found[1], replacement
                    )


def mutant(file: str, function: str, line: int, column: int, original: str, replacement: str) -> dict[str, Any]:
    return {
        "name": f"{file}:{line}:{column}: replace {original} with {replacement} in {function}",
        "package": file.split("/")[0],
        "file": file,
        "function": {"function_name": function},
        "span": {"start": {"line": line, "column": column}, "end": {"line": line, "column": column + 1}},
        "replacement": replacement,
        "genre": "BinaryOperator",
    }


def outcome(scenario: Any, summary: str, log: str) -> dict[str, Any]:
    phases = [{"phase": "Build", "duration": 0.25}, {"phase": "Test", "duration": 0.125}]
    return {"scenario": scenario, "summary": summary, "log_path": log, "phase_results": phases}


def summary_of(root: Path, fields: dict[str, Any]) -> str:
    line = (root / fields["file"]).read_text("utf-8").split("\n")[fields["span"]["start"]["line"] - 1]
    return SUMMARIES.get(line.rpartition("// ")[2], "MissedMutant")


class Output:
    def __init__(self, parent: str) -> None:
        self.directory = Path(parent) / "mutants.out"
        (self.directory / "log").mkdir(parents=True)
        self.outcomes: list[dict[str, Any]] = []

    def add(self, added: dict[str, Any], word: str) -> None:
        self.outcomes.append(added)
        with (self.directory / "outcomes.json").open("w") as file:  # not at once, as the real one does
            json.dump({"outcomes": self.outcomes}, file, indent=2)
        print(word, flush=True)


def test(root: Path, chosen: list[dict[str, Any]], options: argparse.Namespace, script: dict[str, Any]) -> int:
    output = Output(options.output)
    if options.in_place:
        copy, target = str(root), Path(os.environ["CARGO_TARGET_DIR"])
        target.mkdir(exist_ok=True)
        with (target / "runs").open("a") as runs:
            runs.write(f"{options.baseline} {options.timeout}\n")
    else:
        import shutil  # with `tempfile`, a third of the start, which most runs do without
        import tempfile

        copy = tempfile.mkdtemp(prefix="cargo-mutants-", suffix=".tmp")
        shutil.copytree(root, copy, dirs_exist_ok=True)
    print(f"Found {len(chosen)} mutants to test", flush=True)
    fails = script.get("baseline") == "fails" or (script.get("baseline") is not None and options.in_place)
    fails = fails or os.stat("/tmp").st_dev != script.get("device", os.stat("/tmp").st_dev)
    log = "test tests::add ... FAILED\n\nthread 'tests::add' (1) panicked at src/lib.rs:1:1:\nleft is not right\n\n"
    (output.directory / "log" / "baseline.log").write_text(log if fails else "")
    if fails:
        output.add(outcome("Baseline", "Failure", "log/baseline.log"), "FAILED   Unmutated baseline")
        print("ERROR cargo test failed in an unmutated tree, so no mutants were tested", file=sys.stderr)
        return 4
    if options.baseline != "skip":
        output.add(outcome("Baseline", "Success", "log/baseline.log"), "ok       Unmutated baseline")
        (output.directory / "debug.log").write_text(
            "0.1s  INFO cargo_mutants::timeouts: Auto-set test timeout to 20s\n"
        )
    lock = Path(copy, "Cargo.lock")
    skips = options.baseline == "skip"
    if "locks" in script and not skips:
        lock.write_text("# of all packages")
    if "meet" in script:
        Path(script["meet"], Path(options.output).name).touch()
    for number, fields in enumerate(chosen):
        time.sleep(0.02)
        while number == 1 and "meet" in script and skips and len(os.listdir(script["meet"])) < 3:
            time.sleep(0.02)
        log_path = f"log/mutant-{number}.log"
        summary = summary_of(root, fields) if "locks" not in script or lock.exists() else "Unviable"
        file = Path(copy) / fields["file"]
        original = file.read_bytes()
        file.write_bytes(original + b"// a mutant")
        if "spoils" in script:
            (root.resolve() / fields["file"]).with_suffix(".spoilt").write_text(script["spoils"])
        (output.directory / log_path).write_text(log if summary == "CaughtMutant" else "")
        output.add(outcome({"Mutant": fields}, summary, log_path), f"tested {fields['name']}")
        if "hangs" in script:
            time.sleep(3600)
        file.write_bytes(original)
    if not options.in_place:
        shutil.rmtree(copy)
    return 2


def main() -> int:
    if sys.argv[1] == "locate-project":
        print(workspace_root() / "Cargo.toml")
        return 0
    script_file = Path("stand-in.json")
    script = json.loads(script_file.read_text()) if script_file.is_file() else {}
    if "missing" in script:
        print(NO_SUCH_COMMAND, file=sys.stderr)
        return 101
    if "exit" in script:
        print("thread 'main' panicked\n\nStack backtrace:\n   0: <unknown>", file=sys.stderr)
        return int(script["exit"])
    parser = argparse.ArgumentParser()
    for flag in ("version", "list", "json", "workspace", "no-shuffle", "caught", "unviable", "in-place"):
        parser.add_argument(f"--{flag}", action="store_true")
    for option in ("colors", "config", "output", "jobs", "baseline", "timeout", "jobserver-tasks"):
        parser.add_argument(f"--{option}")
    parser.add_argument("--re", action="append", default=[])
    options = parser.parse_args(sys.argv[2:])
    if options.version:
        print("cargo-mutants 27.1.0")
        return 0
    root = workspace_root()
    listed = list(mutants(root, root if options.workspace else Path.cwd()))
    chosen = [one for one in listed if not options.re or any(re.search(name, one["name"]) for name in options.re)]
    if not options.list:
        return test(root, chosen, options, script) if chosen else 0
    if options.json and "json" in script:
        print(script["json"])
    elif options.json:
        hidden = {"name"} if "nameless" in script else set()
        shown = [{key: value for key, value in one.items() if key not in hidden} for one in chosen]
        print(json.dumps(shown, indent=2))
    else:
        print("".join(f"{one['name']}\n" for one in chosen), end="")
    return 0


if __name__ == "__main__":
    os.environ.pop("PYTHONPATH", None)
    sys.exit(main())
