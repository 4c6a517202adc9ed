"""All that configures StrykerJS in a project: its own file, package.json, and the adapter's table in the bridge's."""

import json
import os
import re
from collections.abc import Iterable, Mapping
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
SOURCES = ("src", "lib")  # the directories that StrykerJS mutates by default: at the root alone, not in packages below
TEST = re.compile(r"\.(?:spec|test)\.")
DEPENDENCIES = ("dependencies", "devDependencies", "optionalDependencies")
TABLE = "stryker-js"  # the adapter's own table in the bridge's configuration
SETTINGS = ("node", "warm")
WARM_S, WARM_OF_NESTED_S = 30.0, 10.0
LONGEST_WARM_S = 24 * 3600.0


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
