"""All that configures StrykerJS in a project: its own file, package.json, and the adapter's table in the bridge's.

A project that has none gets a first one. StrykerJS mutates `src` and `lib` by default, and runs the tests as a command.
A package that has neither directory needs `mutate`; one whose test runner has a plugin is tested several times as fast
with it.
"""

import itertools
import json
import os
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any, Self

from attrs import frozen

from msp_bridge import reading
from msp_bridge.adapter import ConfigurationError, Project

NAMES = tuple(  # in StrykerJS's own order
    f"{prefix}stryker{suffix}.{extension}"
    for prefix in ("", ".")
    for suffix in (".conf", ".config")
    for extension in ("json", "js", "mjs", "cjs")
)
NEW_FILE = "stryker.config.json"  # where there is none
EXTENSIONS = frozenset({".json", ".js", ".mjs", ".cjs"})
CODE = (".js", ".jsx", ".mjs", ".cjs", ".ts", ".tsx", ".mts", ".cts", ".vue", ".svelte")
MUTABLE = (*CODE, ".html", ".htm")
CORE = "@stryker-mutator/core"
RUNNER = re.compile(r"@stryker-mutator/(\w+)-runner")
PACKAGES = {  # those of test runners, with what StrykerJS calls them
    **{name: name for name in ("jasmine", "jest", "karma", "mocha", "tap", "vitest")},
    "@cucumber/cucumber": "cucumber",
    "tape": "tap",
}
NODE_TEST = re.compile(r"\bnode\b[^&|;]*\s--test\b|\bborp\b")  # that writes TAP, too
RUN_SCRIPT = re.compile(r"\b(?:npm|pnpm|yarn|bun)(?: run)?(?: -s| --silent)? ([\w:.-]+)")
MAX_NESTED_SCRIPTS = 5  # that call one another
SOURCES = ("src", "lib")  # the directories that StrykerJS mutates by default: at the root alone, not in packages below
TEST = re.compile(r"\.(?:spec|test)\.")
DEPENDENCIES = ("dependencies", "devDependencies", "optionalDependencies")
TABLE = "stryker-js"  # the adapter's own table in the bridge's configuration
SETTINGS = ("node", "warm")
WARM_S, WARM_OF_NESTED_S = 30.0, 10.0
LONGEST_WARM_S = 24 * 3600.0
NO_TESTS = "no test specified"  # in the script that `npm init` writes
NO_SOURCE = re.compile(
    r"\.(?:spec|test|tst|test-d|config|conf|setup|min)\.|\.d\.[cm]?ts$|^\.|^(?:gulp|grunt)file\.|^(?:bench(?:mark)?|example|test)s?\.",
    re.IGNORECASE,
)
NO_SOURCES = frozenset(
    [
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
        "e2e",
    ]
) | frozenset(["example", "examples", "public", "scripts", "spec", "test", "tests"])
MOCHA = re.compile(r"\bmocha\b([^&|;]*)")
TAP = re.compile(r"(?:\b(?:tape?|borp)|\bnode\b[^&|;]*\s--test)(?=\s|$)([^&|;]*)")
MOCHA_SPEC = "test/*.{js,cjs,mjs}"  # mocha's own default, in the package that it is called in


def configured(project: Project) -> bool:
    """Whether StrykerJS is set up in the project: by a configuration file, or as a dependency.

    The root of a workspace may depend on it for the sake of its packages: nested, it has to have sources besides.
    """
    if project.config_file is not None:
        return could_configure(project.config_file)
    if found(project.root) is not None:
        return True
    return depends_on_core(project.root) and not (project.nested and _installs_for_packages(project.root))


def _installs_for_packages(root: Path) -> bool:
    """Whether this is the root of a workspace, and has nothing that StrykerJS mutates by default."""
    is_workspace = "workspaces" in reading.table(root / "package.json") or (root / "pnpm-workspace.yaml").is_file()
    return is_workspace and not any((root / name).is_dir() for name in SOURCES)


def config_file(project: Project) -> Path | None:
    """The file that configures StrykerJS, if any."""
    return project.config_file or found(project.root)


def found(root: Path) -> Path | None:
    """The configuration file in `root` that StrykerJS takes by itself."""
    files = (root / name for name in NAMES)
    return next((file for file in files if file.is_file() and could_configure(file)), None)


def could_configure(file: Path) -> bool:
    """Whether `file` may be StrykerJS's: by its name, and a JSON file also by what is in it."""
    if file.suffix.lower() not in EXTENSIONS or file.name == "package.json":
        return False
    return file.suffix.lower() != ".json" or "stryker-config" not in reading.table(file)  # that is Stryker.NET's


def depends_on_core(root: Path) -> bool:
    """Whether package.json asks for StrykerJS, or seems to, if it is broken: `check_package` reports that."""
    try:
        package = reading.json_value(root / "package.json", errors="replace")
    except OSError:
        return False
    except ValueError:
        return f'"{CORE}"' in reading.text(root / "package.json", errors="replace")
    return isinstance(package, dict) and CORE in dependencies(package)


def runner_of(root: Path) -> tuple[str, bool] | None:
    """The test runner that package.json asks for, and whether it asks for StrykerJS's plugin for it, too."""
    package = reading.table(root / "package.json")
    asked = sorted(dependencies(package))
    if plugins := [match[1] for name in asked if (match := RUNNER.fullmatch(name))]:
        return plugins[0], True
    test = _test_script(root)
    found = sorted((PACKAGES[name] for name in asked if name in PACKAGES), key=lambda runner: runner not in test)
    if NODE_TEST.search(test) and not (found and found[0] in test):
        return "tap", False
    return (found[0], False) if found else None


def patterns_of_packages(root: Path, paths: Iterable[str]) -> list[str]:
    """For `mutate`: a pattern for the sources of each package below `root` that has one of the files `paths`."""
    found: dict[str, set[str]] = {}
    for path in paths:
        *above, name = path.split("/")
        for depth in range(len(above) - 1, 0, -1) if name.endswith(CODE) else ():
            if above[depth] in SOURCES and root.joinpath(*above[:depth], "package.json").is_file():
                found.setdefault("/".join(above[: depth + 1]), set()).add(name)
                break
    return [
        f"{directory}/**/{name_pattern(names)}"
        for directory, names in sorted(found.items())
        if not all(map(TEST.search, names))
    ]


def name_pattern(names: set[str]) -> str:
    """A pattern for sources: "*.js", "*.+(js|ts)", "!(*.spec|*.test).js" where tests lie beside them."""
    endings = sorted({PurePosixPath(name).suffix for name in names})
    ending = endings[0] if len(endings) == 1 else f".+({'|'.join(each[1:] for each in endings)})"
    return ("!(*.spec|*.test)" if any(map(TEST.search, names)) else "*") + ending


def as_option(name: str, value: str | list[str] | dict[str, str]) -> str:
    """The text to write in StrykerJS's configuration."""
    return f"write {json.dumps(name)}: {json.dumps(value)} in StrykerJS's configuration"


def check_package(root: Path) -> None:
    """Raises ConfigurationError when the package.json that holds for `root` is broken: Node couldn't live with that."""
    files = (directory / "package.json" for directory in (root, *root.parents))
    file = next(filter(os.path.isfile, files), None)
    if file is None:
        return
    try:
        reading.json_value(file, errors="replace")
    except ValueError as error:
        raise ConfigurationError(f"{file} is not valid JSON ({error})", "correct it") from None
    except OSError as error:
        raise ConfigurationError(f"{file} can't be read ({error.strerror})", "correct it") from None


def dependencies(package: Mapping[str, Any], *further: str) -> set[str]:
    """The packages that a package.json asks for; `further` are tables to look in, too."""
    tables = (package.get(name) for name in (*DEPENDENCIES, *further))
    return {name for table in tables if isinstance(table, dict) for name in table}


@frozen
class Settings:
    """The user's settings in the table `stryker-js`."""

    node: Path | None = None  # the program, absolute
    warm: float = WARM_S  # s that a run stays open for more mutants when it is done

    @classmethod
    def of(cls, project: Project) -> Self:
        """Raises ConfigurationError for keys and values that mean nothing here."""
        project.check_settings(TABLE, SETTINGS)
        return cls(_node_setting(project), _warm_setting(project))


def _node_setting(project: Project) -> Path | None:
    node = project.settings.get("node")
    if node is None:
        return None
    remedy = f"correct the setting `node` of {TABLE!r}"
    if not isinstance(node, str):
        raise ConfigurationError(f"the setting `node` of {TABLE!r} must be the path of a program, not {node!r}", remedy)
    program = Path(os.path.abspath(project.root / Path(node).expanduser()))
    if not program.is_file() or not os.access(program, os.X_OK):
        raise ConfigurationError(f"there is no program {program}", remedy)
    return program


def _warm_setting(project: Project) -> float:
    warm = project.settings.get("warm", WARM_OF_NESTED_S if project.nested else WARM_S)
    if isinstance(warm, bool) or not isinstance(warm, int | float) or not 0 <= warm <= LONGEST_WARM_S:
        raise ConfigurationError(
            f"the setting `warm` of {TABLE!r} must be a number of seconds, not {warm!r}",
            f"set it to a number from 0 to {LONGEST_WARM_S:g}",
        )
    return float(warm)


def first_configuration(root: Path) -> Mapping[str, Any] | None:
    """The options for the package in `root`, {} where the defaults will do; None where nothing can be tested."""
    runner, script = runner_of(root), _test_script(root)
    if runner is None and (not script or NO_TESTS in script):
        return None
    mutate = _sources(root)
    if mutate == []:
        return None
    options = {} if runner is None else _of_runner(root, runner[0], mutate or ())
    return {**options, **({"mutate": mutate} if mutate else {})}


def plugin_of(root: Path) -> str | None:
    """The package of StrykerJS's plugin for the test runner in `root`."""
    runner = runner_of(root)
    return None if runner is None else f"@stryker-mutator/{runner[0]}-runner"


def _test_script(root: Path) -> str:
    """The script for the tests, with the scripts that it runs in their places."""
    scripts = reading.table(root / "package.json").get("scripts")
    if not isinstance(scripts, dict):
        return ""
    script = str(scripts.get("test", ""))
    for _ in range(MAX_NESTED_SCRIPTS):
        script = RUN_SCRIPT.sub(lambda match: str(scripts.get(match[1], match[0])), script)
    return script


def _of_runner(root: Path, runner: str, mutate: Sequence[str]) -> Mapping[str, Any]:
    options: dict[str, Any] = {"testRunner": runner, "plugins": [f"@stryker-mutator/{runner}-runner"]}
    if runner == "mocha" and not _configures_mocha(root):
        specs = _specs(root, MOCHA) or _specs_of_packages(root, mutate)
        mocha = {**({"spec": specs} if specs else {}), **_of_mocha(root)}
        options |= {"mochaOptions": mocha} if mocha else {}
    if runner == "tap" and (specs := [spec for spec in _specs(root, TAP) if not (root / spec).is_dir()]):
        options["tap"] = {"testFiles": specs}
    if runner == "karma" and (root / "karma.conf.js").is_file():
        options["karma"] = {"configFile": "karma.conf.js"}
    return options


def _configures_mocha(root: Path) -> bool:
    return any(root.glob(".mocharc.*")) or "mocha" in reading.table(root / "package.json")


def _of_mocha(root: Path) -> dict[str, Any]:
    """The options of mocha in the script, where StrykerJS has the same."""
    words = _words(root, MOCHA)
    pairs = list(itertools.pairwise(words))
    interfaces = [value for name, value in pairs if name in ("-u", "--ui")]
    required = [value for name, value in pairs if name in ("-r", "--require")]
    return {**({"ui": interfaces[-1]} if interfaces else {}), **({"require": required} if required else {})}


def _words(root: Path, runner: re.Pattern[str]) -> list[str]:
    """The words behind the runner in the package's script."""
    try:
        words = shlex.split(call[1]) if (call := runner.search(_test_script(root))) else []
    except ValueError:
        return []
    return [part for word in words for part in (word.split("=", 1) if word.startswith("--") else [word])]


def _specs(root: Path, runner: re.Pattern[str]) -> list[str]:
    """The files of tests in the package's script, behind the runner."""
    words = _words(root, runner)
    return [
        word
        for before, word in zip(["", *words], words, strict=False)
        if not word.startswith("-") and (not before.startswith("-") or word.endswith(CODE))
    ]


def _specs_of_packages(root: Path, mutate: Sequence[str]) -> list[str]:
    """The tests of the packages below `root` that have sources in `mutate`: mocha finds none of them from there."""
    sources = dict.fromkeys((root / pattern.partition("/**/")[0]).parent for pattern in mutate)
    packages = [each for each in sources if each != root and (each / "package.json").is_file()]
    specs = (each / spec for each in packages for spec in _specs(each, MOCHA) or [MOCHA_SPEC])
    found = [spec.relative_to(root).as_posix() for spec in specs]
    return [MOCHA_SPEC, *found] if found and (root / "test").is_dir() else found


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
    return [] if all(map(NO_SOURCE.search, names)) else [f"{top}/**/{name_pattern(names)}"]
