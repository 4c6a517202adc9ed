"""The configuration of StrykerJS for a project that has none: its test runner, and what to mutate.

StrykerJS mutates `src` and `lib` by default, and runs the tests as a command. A package that has neither directory
needs `mutate`; one whose test runner has a plugin is tested several times as fast with it.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from msp_bridge import reading

from .configuration import CODE, SOURCES, TEST, name_pattern, patterns_of_packages, runner_of

NO_TESTS = "no test specified"  # in the script that `npm init` writes
NO_SOURCE = re.compile(r"\.(?:spec|test|config|conf|setup)\.|\.d\.[cm]?ts$|^\.|^(?:gulp|grunt)file\.", re.IGNORECASE)
NO_SOURCES = frozenset(
    ["__mocks__", "__tests__", "bench", "benchmarks", "build", "coverage", "cypress", "dist", "doc", "docs", "e2e"]
) | frozenset(["examples", "public", "scripts", "spec", "test", "tests"])
MOCHA = re.compile(r"\bmocha\b([^&|;]*)")


def first_configuration(root: Path) -> Mapping[str, Any] | None:
    """The options for the package in `root`, {} where the defaults will do; None where nothing can be tested."""
    package = reading.table(root / "package.json")
    scripts = package.get("scripts")
    script = str(scripts.get("test", "")) if isinstance(scripts, dict) else ""
    runner = runner_of(root)
    if runner is None and (not script or NO_TESTS in script):
        return None
    mutate = _sources(root)
    if mutate == []:
        return None
    return {**({} if runner is None else _of_runner(root, runner[0], script)), **({"mutate": mutate} if mutate else {})}


def plugin_of(root: Path) -> str | None:
    """The package of StrykerJS's plugin for the test runner in `root`."""
    runner = runner_of(root)
    return None if runner is None else f"@stryker-mutator/{runner[0]}-runner"


def _of_runner(root: Path, runner: str, script: str) -> Mapping[str, Any]:
    options: dict[str, Any] = {"testRunner": runner, "plugins": [f"@stryker-mutator/{runner}-runner"]}
    if runner == "mocha" and (spec := list(_specs(root, script))):
        options["mochaOptions"] = {"spec": spec}
    if runner == "karma" and (root / "karma.conf.js").is_file():
        options["karma"] = {"configFile": "karma.conf.js"}
    return options


def _specs(root: Path, script: str) -> Iterator[str]:
    """The files that the package's script names to mocha, if nothing else does."""
    if any(root.glob(".mocharc.*")) or "mocha" in reading.table(root / "package.json"):
        return
    try:
        words = shlex.split(found[1]) if (found := MOCHA.search(script)) else []
    except ValueError:
        return
    for before, word in zip(["", *words], words, strict=False):
        if not word.startswith("-") and (not before.startswith("-") or word.endswith(CODE)):
            yield word


def _sources(root: Path) -> Sequence[str] | None:
    """The patterns for `mutate`; None where StrykerJS's own will do, [] where there is no source."""
    if any((root / name).is_dir() for name in SOURCES):
        return None
    from msp_bridge.toolkit import walk

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
    return [] if all(map(TEST.search, names)) else [f"{top}/**/{name_pattern(names)}"]
