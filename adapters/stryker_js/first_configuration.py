"""The first configuration of a project that has none: the test runner with its options, and what to mutate.

StrykerJS mutates `src` and `lib` by default, and runs the tests as a command. A package that has neither directory
needs `mutate`; one whose test runner has a plugin is tested several times as fast with it.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msp_bridge import reading
from msp_bridge.toolkit import walk

from .configuration import CODE, SOURCES, dependencies, name_pattern, patterns_of_packages
from .script import (
    MOCHA,
    NODE_TEST,
    TAP,
    mocha_options,
    node_arguments,
    script_of,
    specs_behind,
    tests_alone,
    with_node_arguments,
)

RUNNER = re.compile(r"@stryker-mutator/(\w+)-runner")
PACKAGES = {  # those of test runners, with what StrykerJS calls them
    **{name: name for name in ("jasmine", "jest", "karma", "mocha", "tap", "vitest")},
    "@cucumber/cucumber": "cucumber",
    "tape": "tap",
}
NO_TESTS = "no test specified"  # in the script that `npm init` writes
NO_SOURCE = re.compile(
    r"\.(?:spec|test|tst|test-d|config|conf|setup|min)\.|\.d\.[cm]?ts$|^\.|^(?:gulp|grunt)file\.|^(?:bench(?:mark)?|example|test)s?\.",
    re.IGNORECASE,
)
NO_SOURCES = {
    *(
        "__mocks__",
        "__tests__",
        "bench",
        "benchmark",
        "benchmarks",
        "build",
        "coverage",
        "cypress",
        "dist",
        "doc",
        "docs",
    ),
    *("e2e", "example", "examples", "public", "scripts", "spec", "test", "tests"),
}
MOCHA_SPEC = "test/*.{js,cjs,mjs}"  # mocha's own default, in the package that it is called in


def first_configuration(root: Path) -> Mapping[str, Any] | None:
    """The options for the package in `root`, {} where the defaults will do; None where nothing can be tested."""
    runner, script = runner_of(root), script_of(root)
    if runner is None and (not script or NO_TESTS in script):
        return None
    mutate = _sources(root)
    if mutate == []:
        return None
    options = _of_command(script) if runner is None else _of_runner(root, runner[0], mutate or ())
    return {**options, **({"mutate": mutate} if mutate else {})}


def plugin_of(root: Path) -> str | None:
    """The package of StrykerJS's plugin for the test runner in `root`."""
    runner = runner_of(root)
    return None if runner is None else f"@stryker-mutator/{runner[0]}-runner"


def runner_of(root: Path) -> tuple[str, bool] | None:
    """The test runner that package.json asks for, and whether it asks for StrykerJS's plugin for it, too."""
    package = reading.table(root / "package.json")
    asked = sorted(dependencies(package))
    if plugins := [match[1] for name in asked if (match := RUNNER.fullmatch(name))]:
        return plugins[0], True
    test = script_of(root)
    found = sorted((PACKAGES[name] for name in asked if name in PACKAGES), key=lambda runner: runner not in test)
    if NODE_TEST.search(test) and not (found and found[0] in test):
        return "tap", False
    return (found[0], False) if found else None


def _of_command(script: str) -> Mapping[str, Any]:
    command = tests_alone(script)
    return {} if command is None else {"commandRunner": {"command": command}}


def _of_runner(root: Path, runner: str, mutate: Sequence[str]) -> Mapping[str, Any]:
    options: dict[str, Any] = {"testRunner": runner, "plugins": [f"@stryker-mutator/{runner}-runner"]}
    if runner == "mocha" and not _configures_mocha(root):
        specs = specs_behind(MOCHA, script_of(root)) or _specs_of_packages(root, mutate)
        mocha = {**({"spec": specs} if specs else {}), **mocha_options(script_of(root))}
        options |= {"mochaOptions": mocha} if mocha else {}
    if runner == "tap" and (
        specs := [spec for spec in specs_behind(TAP, script_of(root)) if not (root / spec).is_dir()]
    ):
        options["tap"] = {"testFiles": specs}
    if runner == "karma" and (root / "karma.conf.js").is_file():
        options["karma"] = {"configFile": "karma.conf.js"}
    if arguments := node_arguments(script_of(root)):
        options |= with_node_arguments(runner, arguments, options.get("tap", {}))
    return options


def _configures_mocha(root: Path) -> bool:
    return any(root.glob(".mocharc.*")) or "mocha" in reading.table(root / "package.json")


def _specs_of_packages(root: Path, mutate: Sequence[str]) -> list[str]:
    """The tests of the packages below `root` that have sources in `mutate`: mocha finds none of them from there."""
    sources = dict.fromkeys((root / pattern.partition("/**/")[0]).parent for pattern in mutate)
    packages = [each for each in sources if each != root and (each / "package.json").is_file()]
    specs = (each / spec for each in packages for spec in specs_behind(MOCHA, script_of(each)) or [MOCHA_SPEC])
    found = [spec.relative_to(root).as_posix() for spec in specs]
    return [MOCHA_SPEC, *found] if found and (root / "test").is_dir() else found


def _sources(root: Path) -> Sequence[str] | None:
    """The patterns for `mutate`; None where StrykerJS's own will do, [] where there is no source."""
    if any((root / name).is_dir() for name in SOURCES):
        return None
    files = (Path(directory, name) for directory, _, names in walk(root) for name in names if name.endswith(CODE))
    paths = sorted(file.relative_to(root).as_posix() for file in files)
    return patterns_of_packages(root, paths) or [
        pattern
        for top, names in _by_top(paths).items()
        if not (top and (root / top / "package.json").is_file())
        for pattern in _patterns(top, names)
    ]


def _by_top(paths: Sequence[str]) -> dict[str, set[str]]:
    """The names of files by the directory at the top that they are in, "" for the root."""
    found: dict[str, set[str]] = {}
    for path in paths:
        *above, name = path.split("/")
        if NO_SOURCES.isdisjoint(above) and not path.startswith("."):
            found.setdefault(above[0] if above else "", set()).add(name)
    return found


def _patterns(top: str, names: set[str]) -> Sequence[str]:
    """Name each file of the root, where tests and configurations lie beside the sources."""
    if not top:
        return sorted(name for name in names if not NO_SOURCE.search(name))
    return [] if all(map(NO_SOURCE.search, names)) else [f"{top}/**/{name_pattern(names)}"]
