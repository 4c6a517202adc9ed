"""Failure: what StrykerJS said when it could not go on, in one sentence that says what to do next."""

from __future__ import annotations

import re

from msp_bridge.adapter import BridgeError, ConfigurationError, ToolError

UNREADABLE = (
    re.compile(r"Parse error in (?P<file>[^\n]+?) (?P<fault>\(\d+:\d+\)[^\n]*)"),
    re.compile(r"(?:^|Error: )(?P<file>(?:(?!: )[^\n])+\.\w+): (?P<fault>[^\n]* \(\d+:\d+\))", re.MULTILINE),  # Babel's
    re.compile(
        r'Could not read file "(?P<file>[^"\n]+)"\. Inner error: (?:Error: )?(?P<fault>[^\n]*)'
    ),  # a link in circles
)
CONFIGURATION_ERROR = re.compile(r'Invalid config file "[^"\n]+": [^\n]*')  # as target/configuration.mjs words it
MISSING = re.compile(r'Cannot find (?P<kind>\w+) plugin "(?P<name>[^"\n]+)"')
UNLOADABLE = re.compile(r'Error during loading "(?P<plugin>[^"\n]+)" plugin:\s*(?P<why>[^\n]+)')
BAD_LINK = re.compile(r"(?:EISDIR|ELOOP|ENOENT): [^\n]*copyfile '(?P<path>[^'\n]+)'")
STAMP = r"\d\d:\d\d:\d\d \(\d+\) "
LOGGED = re.compile(rf"^{STAMP}(?:ERROR|FATAL) \S+ (?P<text>.*(?:\n(?!{STAMP}|Content-Length:).*)*)", re.MULTILINE)
COLOURS = re.compile(r"\x1b\[[0-9;]*m")
STACK = re.compile(r"\n\s+at [^\n]*")  # where in StrykerJS, or in the test runner, it happened
SHOWN = 800  # characters


class BrokenFile(ToolError):
    """A file that can't be parsed; `file` is its path as StrykerJS names it, `fault` what is wrong where."""

    def __init__(self, file: str, fault: str) -> None:
        super().__init__(f"{file} can't be parsed, correct it: {fault}")
        self.file, self.fault = file, fault


def failure(message: str, why: str, logged: str) -> BridgeError:
    """The error for `message`; `why` is what the first run of the tests told, `logged` is StrykerJS's log."""
    details = errors(logged)
    said = message.strip() or details or "it didn't say why"
    for unreadable in UNREADABLE:
        if broken := unreadable.search(said):
            return BrokenFile(broken["file"], broken["fault"])
    if missing := MISSING.search(said):
        if unloadable := UNLOADABLE.search(COLOURS.sub("", logged)):
            why = f"{unloadable['plugin']} can't be loaded ({unloadable['why'].strip()})"
            return ConfigurationError(f"{why}: install versions of it and of what it needs that fit each other")
        return ConfigurationError(
            f"StrykerJS finds no {missing['kind']} {missing['name']!r}: install its plugin "
            f"(@stryker-mutator/{missing['name']}-runner, for a test runner), or correct StrykerJS's configuration"
        )
    if link := BAD_LINK.search(said):
        return ConfigurationError(
            f"StrykerJS can't copy {link['path']}, a link to a directory or to nowhere: "
            "add it to `ignorePatterns` in StrykerJS's configuration"
        )
    if "ENOSPC" in said:
        return ToolError(
            "StrykerJS has no room on the disk: free some space where the bridge keeps its private copies, "
            "or set MSP_BRIDGE_CACHE to a directory elsewhere"
        )
    if "failed tests in the initial test run" in said:
        return ToolError(f"the tests fail without any mutant, mend them first: {_short(why or details)}")
    if "Something went wrong in the initial test run" in said:
        return ToolError(f"the tests can't be run, mend that first: {_short(why or details or said)}")
    if "No tests were executed" in said:
        return ToolError("StrykerJS ran no tests: correct the options of the test runner in its configuration")
    if wrong := CONFIGURATION_ERROR.search(said):
        return ConfigurationError(wrong[0])
    if "configuration error" in said:
        return ConfigurationError(f"StrykerJS's configuration is wrong, correct it: {_short(details or said)}")
    text = said if details in said else f"{said} ({details})"
    return ToolError(f"StrykerJS failed: {_short(text)}; `msp-bridge doctor` looks for the cause")


def errors(logged: str) -> str:
    """The errors in StrykerJS's log, without what stands before each."""
    found = [match["text"].strip() for match in LOGGED.finditer(COLOURS.sub("", logged))]
    return "; ".join(dict.fromkeys(found))


def _short(text: str) -> str:
    lines = [line.rstrip() for line in STACK.sub("", text).strip().splitlines()]
    text = "\n".join(dict.fromkeys(filter(None, lines)))
    return text if len(text) <= SHOWN else f"{text[:SHOWN]} …"
