"""A small mutation testing tool: `python3 mutate.py [--list] [--jobs N] REPORT [FILE | FILE:FIRST-LAST]...`

It mutates Python files in place, one operator at a time, runs check.py, puts the file back, and rewrites REPORT (a
mutation-testing-report-schema JSON) after each mutant. REPORT `-` stands for out/report-<pid>.json. Exit code 3: some mutant survived.
"""

import argparse
import json
import os
import re
import subprocess
import sys

OPERATORS = {" + ": " - ", " * ": " + ", " < ": " <= ", " and ": " or ", " == ": " != "}
PATTERN = re.compile("|".join(map(re.escape, OPERATORS)))
EVERYTHING = ["prices/money.py", "prices/discount.py", "texts/labels.py"]


def utf16(text):
    return len(text.encode("utf-16-le")) // 2


def place(text, offset):
    line_start = text.rfind("\n", 0, offset) + 1
    return {"line": text.count("\n", 0, offset) + 1, "column": utf16(text[line_start:offset]) + 1}


def mutants_of(path, text, first, last):
    for match in PATTERN.finditer(text):
        start = place(text, match.start())
        rest = text[match.end() :].split("\n")[0]
        if first <= start["line"] <= last:
            yield (
                {
                    "id": f"{path}@{match.start()}",
                    "mutatorName": "Operator",
                    "description": f"{match[0].strip()} becomes {OPERATORS[match[0]].strip()}",
                    "replacement": OPERATORS[match[0]],
                    "location": {"start": start, "end": place(text, match.end())},
                    "status": "Ignored" if "# leave" in rest else "Pending",
                    "coveredBy": ["1"],
                },
                match.span(),
            )


def test(path, text, span, mutant):
    with open(path, "w", encoding="utf-8", newline="") as file:
        file.write(text[: span[0]] + mutant["replacement"] + text[span[1] :])
    try:
        done = subprocess.run([sys.executable, "-B", "check.py"], capture_output=True, text=True)
    finally:
        with open(path, "w", encoding="utf-8", newline="") as file:
            file.write(text)
    mutant["status"] = "Killed" if done.returncode else "Survived"
    mutant["statusReason"] = done.stderr.strip().rsplit("\n", 1)[-1]
    mutant["testsCompleted"] = 1


def write(report, files):
    os.makedirs(os.path.dirname(report), exist_ok=True)
    tests = {"check.py": {"tests": [{"id": "1", "name": "the check"}]}}
    whole = {"schemaVersion": "2.0", "thresholds": {"high": 80, "low": 60}, "files": files, "testFiles": tests}
    with open(report, "w", encoding="utf-8") as file:  # not at once: a reader may find half of it
        json.dump(whole, file)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--jobs", type=int)
    parser.add_argument("report")
    parser.add_argument("targets", nargs="*", default=EVERYTHING)
    options = parser.parse_args()
    report = f"out/report-{os.getpid()}.json" if options.report == "-" else options.report
    files, work = {}, []
    for target in options.targets:
        path, _, lines = target.partition(":")
        first, _, last = lines.partition("-")
        with open(path, encoding="utf-8", newline="") as file:
            text = file.read()
        entry = files.setdefault(os.path.abspath(path), {"language": "python", "source": text, "mutants": []})
        for mutant, span in mutants_of(path, text, int(first or 1), int(last or sys.maxsize)):
            if mutant["id"] not in {known["id"] for known in entry["mutants"]}:
                entry["mutants"].append(mutant)
                work.append((path, text, span, mutant))
    if not options.list:
        if subprocess.run([sys.executable, "-B", "check.py"], capture_output=True).returncode:
            sys.exit("check.py fails without a mutant")
        for path, text, span, mutant in work:
            if mutant["status"] == "Pending":
                write(report, files)
                test(path, text, span, mutant)
                print(mutant["id"], mutant["status"], flush=True)
    write(report, files)
    return 3 if any(mutant["status"] == "Survived" for *_, mutant in work) else 0


if __name__ == "__main__":
    sys.exit(main())
