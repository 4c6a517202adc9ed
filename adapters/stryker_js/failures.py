"""Failures: the error for what StrykerJS says when it could not go on, with its remedy."""

import re
from collections.abc import Sequence
from pathlib import Path

from attrs import frozen

from msp_bridge.adapter import BaselineError, BridgeError, ConfigurationError, ToolError

from .configuration import as_option
from .first_configuration import runner_of
from .installation import install_command, plugin_install
from .script import node_arguments, script_of, tests_alone

CONFIGURATION_ERROR = re.compile(r'Invalid config file "[^"\n]+": [^\n]*')  # as programs/configuration.mjs words it
MISSING = re.compile(r'Cannot find (?P<kind>\w+) plugin "(?P<name>[^"\n]+)"')
ABSENT = re.compile(r"Cannot find package '(?P<package>[^'\n]+)' imported from (?P<file>\S+)")  # Node's words
UNLOADABLE = re.compile(r'Error during loading "(?P<plugin>[^"\n]+)" plugin:\s*(?P<why>[^\n]+)')
STAMP = r"\d\d:\d\d:\d\d \(\d+\) "
OTHER = rf"{STAMP}|Content-Length:|An unexpected error occurred while executing"  # begins what is not the same entry
LOGGED = re.compile(rf"^{STAMP}(?:ERROR|FATAL) \S+ (?P<text>.*(?:\n(?!{OTHER}).*)*)", re.MULTILINE)
COLOURS = re.compile(r"\x1b\[[0-9;]*m")
# Where in StrykerJS, or in the test runner, it happened, and what Node shows of the error besides.
STACK = re.compile(r"\n\s+at [^\n]*?(?: \{\n(?: .*\n)*\}?|(?=\n)|\Z)")
MAX_SHOWN = 800  # characters
VUE_MACRO = re.compile(r"`(?P<macro>define\w+)\(\)` in <script setup> cannot reference locally declared variables")
NO_MODULE = re.compile(
    r"Cannot use import statement outside a module|Unexpected token 'export'|Unknown file extension|ERR_REQUIRE_ESM"
)
ENVIRONMENT = re.compile(r"Cannot find \w+ '(?P<package>jest-environment-[\w-]+|jsdom|happy-dom)'")
ALL_TESTS = "All tests"  # the one test of the command runner
TDD = "suite is not defined"  # mocha's other interface
NO_TESTS = (
    "correct the options of the test runner in its configuration, "
    "as `mochaOptions.spec`, `tap.testFiles` or `jasmineConfigFile`"
)
CORRECT_CONFIGURATION = "correct StrykerJS's configuration"
BUILD_COMMAND = "the `buildCommand` in StrykerJS's configuration, which runs without a shell"


@frozen
class BaselineFailure:
    """Why the tests can't be run without a mutant: an error of the runner, or the failing tests with their messages."""

    error: str = ""
    failing: Sequence[tuple[str, str]] = ()


def failure(message: str, baseline: BaselineFailure, log: str, root: Path) -> BridgeError:
    """The error for StrykerJS's `message` about the project in `root`; `log` is what it has logged in the run."""
    logged = logged_errors(log)
    said = message.strip() or logged or "it gave no reason"
    if missing := MISSING.search(said):
        return missing_plugin(missing["kind"], missing["name"], log, root)
    if absent := ABSENT.search(said):
        problem = f"the package {absent['package']} is not installed, which {absent['file']} imports"
        return ToolError(problem, install_command(root, absent["package"]))
    if "ENOSPC" in said:
        remedy = "free some space where the bridge keeps its copies, or set MSP_BRIDGE_CACHE to another directory"
        return ToolError("StrykerJS has no room on the disk", remedy)
    if "failed tests in the initial test run" in said:
        return _red_baseline(baseline, logged, root)
    if "Something went wrong in the initial test run" in said:
        reason = _short(baseline.error or logged or said)
        return BaselineError(f"the tests can't be run without any mutant ({reason})", _remedy(reason, root))
    if said.startswith("Command failed with "):
        return ToolError(f"the project can't be built ({_short(said)})", f"correct it, or {BUILD_COMMAND}")
    if "No tests were executed" in said:
        return ToolError("StrykerJS ran no tests", NO_TESTS)
    if wrong := CONFIGURATION_ERROR.search(said):
        return ConfigurationError(wrong[0])
    if "configuration error" in said:
        return ConfigurationError(f"StrykerJS's configuration is wrong ({_short(logged or said)})", "correct it")
    text = said if logged in said else f"{said} ({logged})"
    return ToolError(f"StrykerJS failed ({_short(text)})", "run `msp-bridge doctor`")


def logged_errors(log: str) -> str:
    """The errors in StrykerJS's log, without what stands before each."""
    found = [match["text"].strip() for match in LOGGED.finditer(COLOURS.sub("", log))]
    return "; ".join(dict.fromkeys(found))


def missing_plugin(kind: str, name: str, log: str, root: Path) -> ConfigurationError:
    """The error where no plugin offers what is configured; of a test runner `kind` is "TestRunner", `name` "mocha"."""
    if unloadable := UNLOADABLE.search(COLOURS.sub("", log)):
        problem = f"{unloadable['plugin']} can't be loaded ({unloadable['why'].strip()})"
        return ConfigurationError(problem, "install versions of it and of what it needs that fit each other")
    if kind != "TestRunner":
        problem = f"StrykerJS finds no {kind} plugin for {name!r}"
        return ConfigurationError(problem, f"install it, or {CORRECT_CONFIGURATION}")
    remedy = f"{_runner_install(root, name)}, or correct `testRunner` there"
    return ConfigurationError(f"StrykerJS finds no plugin for the test runner {name!r}", remedy)


def faster_runner(root: Path) -> str | None:
    """The remedy where the tests run as a command though StrykerJS has a plugin for their runner."""
    if (found := runner_of(root)) is None:
        return None
    runner, has_plugin = found
    option = as_option("testRunner", runner)
    return (
        f"{option}, which is faster" if has_plugin else f"{_runner_install(root, runner)}; and {option}: it is faster"
    )


def _runner_install(root: Path, name: str) -> str:
    package = f"@stryker-mutator/{name}-runner"
    return f"{plugin_install(root, package)}, and {as_option('plugins', [package])}"


def _remedy(reason: str, root: Path) -> str:
    """The remedy where the tests can't run for this reason. Vue moves some code out of setup(), with its mutants."""
    if TDD in reason:
        return as_option("mochaOptions", {"ui": "tdd"})
    if environment := ENVIRONMENT.search(reason):
        return install_command(root, environment["package"])
    if NO_MODULE.search(reason) and (arguments := node_arguments(script_of(root))):
        return as_option("testRunnerNodeArgs", arguments)
    if (hoisted := VUE_MACRO.search(reason)) is None:
        return "fix that first"
    return (
        f"put `// Stryker disable all` above {hoisted['macro']}() in that file, and `// Stryker restore all` below it"
    )


def _red_baseline(baseline: BaselineFailure, logged: str, root: Path) -> BaselineError:
    tests = "\n".join(f"{name}: {text}" for name, text in baseline.failing)
    names = [name for name, _ in baseline.failing]
    first = baseline.failing[0][1] if baseline.failing else ""
    problem = f"the tests fail without any mutant ({_short(tests or logged)})"
    remedy = "fix the tests first"
    if names == [ALL_TESTS] and (command := tests_alone(script_of(root))):
        option = as_option("commandRunner", {"command": command})
        remedy += f"; where a linter fails, which sees StrykerJS's mutants: {option}"
    return BaselineError(problem, remedy, names, first)


def _short(text: str) -> str:
    lines = [line.rstrip() for line in STACK.sub("", text).strip().splitlines()]
    text = "\n".join(dict.fromkeys(filter(None, lines)))
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]} …"
