"""The script `test` of a package.json: what it says of the test runner, the files of tests, and Node's options."""

import itertools
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from msp_bridge import reading

RUN_SCRIPT = re.compile(r"\b(?:npm|pnpm|yarn|bun)(?: run)?(?: -s| --silent)? ([\w:.-]+)")
MAX_NESTED_SCRIPTS = 5  # that call one another
LONGEST_SCRIPT = 10_000  # characters: what scripts that call one another several times come to grows fast
MOCHA = re.compile(r"\bmocha\b([^&|;]*)")
TAP = re.compile(r"(?:\b(?:tape?|borp)|\bnode\b[^&|;]*\s--test)(?=\s|$)([^&|;]*)")
NODE_TEST = re.compile(r"\bnode\b[^&|;]*\s--test\b|\bborp\b")  # that writes TAP, too
LINTER = re.compile(r"\b(?:lint|\w*lint|standard|xo|prettier|biome|tsc|tsd|tstyche|attw|publint|audit)\b")
STARTS_PROGRAM = re.compile(r"(?:node|npx|npm|pnpm|yarn|bun|make|\w+=\S+) ")
FILE = re.compile(r"\.[cm]?[jt]sx?$")
NODE = re.compile(r"\bnode(\s+-[^&|;]*)")
NODE_OPTIONS = re.compile(r"""\bNODE_OPTIONS=(?:'([^']*)'|"([^"]*)"|(\S+))""")
ALONE = re.compile(r"--experimental-(?!test-|loader)[\w-]+")
WITH_VALUE = frozenset(["--import", "--loader", "--experimental-loader", "--require", "-r", "--conditions", "-C"])
OF_NODE = frozenset(["--import", "--loader", "--experimental-loader"])  # what mocha hands on
TAP_ARGUMENTS = ("--test-reporter=tap", "-r", "{{hookFile}}", "{{testFile}}")  # the tap runner's default


def script_of(root: Path) -> str:
    """The script for the tests, with the scripts that it runs in their places."""
    scripts = reading.table(root / "package.json").get("scripts")
    if not isinstance(scripts, dict):
        return ""
    script = str(scripts.get("test", ""))
    for _ in range(MAX_NESTED_SCRIPTS):
        if sum(len(str(scripts.get(name, ""))) for name in RUN_SCRIPT.findall(script)) > LONGEST_SCRIPT:
            break
        script = RUN_SCRIPT.sub(lambda match: str(scripts.get(match[1], match[0])), script)
    return script[:LONGEST_SCRIPT]


def tests_alone(script: str) -> str | None:
    """The command of the tests, where the script has linters or the like besides, which would judge mutants, too."""
    parts = [part.strip() for part in script.split("&&")]
    tests = [part for part in parts if not LINTER.search(part)]
    if len(tests) != 1 or len(parts) == 1:
        return None
    (command,) = tests
    return command if STARTS_PROGRAM.match(command) else f"npx {command}"


def specs_behind(runner: re.Pattern[str], script: str) -> list[str]:
    """The files of tests that the script names behind the runner."""
    words = _words_behind(runner, script)
    return [
        word
        for before, word in zip(["", *words], words, strict=False)
        if not word.startswith("-") and before not in OF_NODE and (not before.startswith("-") or FILE.search(word))
    ]


def mocha_options(script: str) -> dict[str, Any]:
    """The options of mocha in the script, where StrykerJS has the same."""
    pairs = list(itertools.pairwise(_words_behind(MOCHA, script)))
    interfaces = [value for name, value in pairs if name in ("-u", "--ui")]
    required = [value for name, value in pairs if name in ("-r", "--require")]
    return {**({"ui": interfaces[-1]} if interfaces else {}), **({"require": required} if required else {})}


def node_arguments(script: str) -> list[str]:
    """The options of Node.js in the script, such as loaders, without which tests can't be loaded."""
    set_there = [" ".join(filter(None, match.groups())) for match in NODE_OPTIONS.finditer(script)]
    of_node = [found for text in set_there for found in _arguments(_words(text), WITH_VALUE)]
    return [
        *of_node,
        *_arguments(_words_behind(NODE, script), WITH_VALUE),
        *_arguments(_words_behind(MOCHA, script), OF_NODE),
    ]


def with_node_arguments(runner: str, arguments: Sequence[str], tap: Mapping[str, Any]) -> dict[str, Any]:
    """The option for these arguments; `tap` are the other options of the tap runner, which has its own."""
    if runner == "tap":
        return {"tap": {**tap, "nodeArgs": [*arguments, *TAP_ARGUMENTS]}}
    return {} if runner == "vitest" else {"testRunnerNodeArgs": list(arguments)}


def _arguments(words: Sequence[str], with_value: frozenset[str]) -> Iterator[str]:
    for name, value in itertools.pairwise([*words, ""]):
        if name in with_value and value:
            yield from (name, value)
        elif ALONE.fullmatch(name):
            yield name


def _words_behind(runner: re.Pattern[str], script: str) -> list[str]:
    return _words(call[1]) if (call := runner.search(script)) else []


def _words(text: str) -> list[str]:
    """The words, with an option and its value apart."""
    try:
        words = shlex.split(text)
    except ValueError:
        return []
    return [part for word in words for part in (word.split("=", 1) if word.startswith("--") else [word])]
