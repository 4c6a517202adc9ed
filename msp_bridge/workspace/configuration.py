"""The bridge's configuration: `msp-bridge.toml`, or `[tool.msp-bridge]` of pyproject.toml. Most projects need none."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from attrs import asdict, evolve, field, frozen

from msp_bridge import reading
from msp_bridge.errors import ConfigurationError, suggestion
from msp_bridge.isolation.left_out import CACHE_MARKERS, IGNORED_DIRS
from msp_bridge.text import first_of
from msp_bridge.workspace.tree import Boundary

OWN_FILE = "msp-bridge.toml"
PYPROJECT = "pyproject.toml"
MAX_SIZE = 1024 * 1024  # bytes of a file that a client names
SHOWN_FOLDERS = 3  # folders in one sentence

KEYS = frozenset({"adapter", "python", "jobs", "threshold", "incremental", "environment", "cluster", "folders"})
CLUSTER_KEYS = frozenset({"address", "exclude"})


@frozen
class Configuration:
    """The user's settings. `adapters` picks and orders them, () switches all off; None leaves it to detection."""

    adapters: tuple[str, ...] | None = None
    python: Path | None = None  # the project's interpreter
    jobs: int | None = None  # mutants to test at once; None: one per core
    threshold: float | None = None  # the mutation score below which `msp-bridge run` fails, in percent
    tool_file: Path | None = None  # the tool's own configuration file
    settings: Mapping[str, Mapping[str, Any]] = field(factory=dict)  # an adapter's own table, by its name
    folders: Mapping[str, Configuration] = field(factory=dict)  # of folders below, relative, with a `/` at the end
    incremental: bool | None = None  # whether verdicts of earlier runs are reused
    store: Path | None = None  # the file that has them; None: in the project's cache
    environment: tuple[str, ...] = ()  # variables that verdicts depend on
    cluster: str | None = None  # the address of a Dask scheduler, whose workers test
    cluster_exclude: tuple[str, ...] = ()  # patterns of files that workers don't get

    def over(self, other: Configuration) -> Configuration:
        """This configuration where it sets something, else `other`."""
        said = {name: value for name, value in asdict(self, recurse=False).items() if value != getattr(UNSET, name)}
        tables = {name: {**getattr(other, name), **getattr(self, name)} for name in ("settings", "folders")}
        return evolve(other, **{**said, **tables})


UNSET = Configuration()  # of each setting, the value that sets nothing


def misplaced_table(
    name: str, folders: Sequence[str], lacking: Sequence[str], root: Path, named: str | None
) -> ConfigurationError:
    """The error of a tool's table that is about the root, where that tool isn't set up.

    `name` is the adapter's. `folders` are those where it is set up instead, each with a `/` at the end, and `lacking`
    those of them that have no such table of their own. `named` is the file that the user named for `root`.
    """
    prefix = _prefix_of_tables(root, named)
    nowhere = "" if folders else ", nor in any folder"
    problem = f"`[{prefix}{name}]` is about the root, where {name} isn't set up{nowhere}"
    if not folders:
        return ConfigurationError(problem, "set it up, or remove the table")
    if not lacking:
        return ConfigurationError(problem, f"remove the table, as each folder where {name} is set up has its own")
    tables = [f"[{prefix}folders.{_quoted(folder)}.{name}]" for folder in lacking]
    tables = first_of(tables, SHOWN_FOLDERS, more="and so on for {} more")
    own = f"{lacking[0]}msp-bridge.toml" if len(lacking) == 1 else "the msp-bridge.toml of each"
    return ConfigurationError(problem, f"write {', '.join(tables)}, or [{name}] in {own}")


class FolderConfigurations:
    """The configuration of each folder of the workspace at `root`. Folders are relative to it, with a `/` at the end.

    What is said closest to a project goes before what is said around it, and the command line before everything. The
    interpreter, the tool's own file and the adapters' tables are each folder's own: they aren't inherited.
    """

    def __init__(self, root: Path, options: Configuration, named: str | None, adapters: Collection[str]) -> None:
        """`options` are the command line's. Raises ConfigurationError when the root's configuration is wrong."""
        self._root, self._options, self._adapters = root, options, adapters
        self.root = options.over(load_configuration(root, named, adapters))
        self._read: dict[str, Configuration] = {"": self.root}  # what each folder's own file sets

    def of(self, folder: str) -> tuple[Configuration, bool]:
        """The configuration of `folder`, and whether its adapters were chosen for it in particular, below the root.

        Raises ConfigurationError when its own file is wrong.
        """
        if not folder:
            return self.root, False
        here, around = Configuration(), self.root.adapters
        for about, said in self._said_around(folder):
            if about == folder:
                here = said.over(here)
            elif folder.startswith(about) and said.adapters is not None:
                around = said.adapters
        here = load_configuration(self._root / folder, None, self._adapters).over(here)
        chosen_here = here.adapters is not None and self._options.adapters is None
        return self._options.over(here.over(Configuration(adapters=around))), chosen_here

    def named_in(self, folder: str) -> list[str]:
        """The folders that the folder's own file configures."""
        return [f"{folder}{name}" for name in self._own(folder).folders]

    def _said_around(self, folder: str) -> Iterator[tuple[str, Configuration]]:
        """Settings of files around `folder`, with their folder; outermost file first, in each the outermost folder."""
        parts = folder.split("/")[:-2]
        for place in ("", *(f"{'/'.join(parts[: depth + 1])}/" for depth in range(len(parts)))):
            said = self._own(place)
            if place:
                yield place, said
            yield from ((f"{place}{name}", inner) for name, inner in sorted(said.folders.items()))

    def _own(self, folder: str) -> Configuration:
        """Nothing when the file is wrong: `of` raises that for the folder itself."""
        if folder not in self._read:
            try:
                self._read[folder] = load_configuration(self._root / folder, None, self._adapters)
            except ConfigurationError:
                self._read[folder] = Configuration()
        return self._read[folder]


def load_configuration(root: Path, named: str | None, adapters: Collection[str]) -> Configuration:
    """The configuration of the project at `root`.

    `named` is a file that the user named (absolute or relative to `root`): the bridge's, the tool's, or a
    pyproject.toml, which may be both. `adapters` are the names that may be chosen and have tables of their own.
    Raises ConfigurationError.
    """
    if named is None:
        own = _load_own(root / OWN_FILE, adapters, root)
        return own or _load_pyproject(root / PYPROJECT, adapters, root) or Configuration()
    file = named_file(root, named)
    if file.name == OWN_FILE:
        return _load_own(file, adapters, root) or Configuration()
    own = load_configuration(root, None, adapters) if file.name != PYPROJECT else _load_pyproject(file, adapters, root)
    return evolve(own or Configuration(), tool_file=file)


def named_file(root: Path, named: str) -> Path:
    """The configuration file `named`, absolute or relative to `root`. Raises ConfigurationError when there is none."""
    file = Path(os.path.abspath(root / named))
    if not os.path.isfile(file):  # unlike Path.is_file, it takes any name
        raise ConfigurationError(
            f"there is no configuration file {named!r} in {root}", "correct the path, or leave it out"
        )
    return file


def fingerprint(root: Path, named: str | None, folders: Iterable[str] = ("",)) -> str:
    """Changes when a configuration file that decides about the workspace at `root` changes, appears or vanishes.

    `folders` are those, relative to `root`, where its projects may be; other ones make another fingerprint.
    """
    digest = hashlib.sha256()
    files = [f"{folder}{name}" for folder in folders for name in (OWN_FILE, PYPROJECT, "setup.cfg")]
    for name in (*files, *([] if named is None else [named])):
        content = reading.digest(root / name) or ""
        digest.update(name.encode("utf-8", "surrogatepass") + b"\0" + content.encode() + b"\0")
    return digest.hexdigest()


def check_named(root: Path, named: str, started_with: str | None) -> None:
    """Raises ConfigurationError unless a client may name that file (absolute or relative to `root`).

    That is one of the project's own in `root`, wherever links lead, or the one that the server was started with: the
    commands in it will be run. What is said of files outside is the same whether they exist or not.
    """
    file = os.path.join(root, named)
    if started_with is not None and file == os.path.join(root, started_with):
        return
    relative = Boundary(root).relative(named)
    if relative is None:
        raise ConfigurationError(
            f"the configuration file {named!r} is not in {root}, and a client may name no other",
            "start the server with `--config` and this file",
        )
    if not _is_own(root, relative):
        raise ConfigurationError(
            f"the configuration file {named!r} is a dependency's, or a cache's, and not this project's",
            "name another, or start the server with `--config` and this file",
        )
    if os.path.isfile(file) and os.path.getsize(file) > MAX_SIZE:
        raise ConfigurationError(f"{named!r} is too big for a configuration file", "name another")


def _is_own(root: Path, path: str) -> bool:
    folders = [root / folder for folder in Path(path).parents if folder.name]
    return not any(
        folder.name.casefold() in IGNORED_DIRS or any((folder / marker).exists() for marker in CACHE_MARKERS)
        for folder in folders
    )


def _load_own(file: Path, adapters: Collection[str], root: Path) -> Configuration | None:
    table = _read(file)
    return None if table is None else _configuration(table, file.name, file.parent, adapters, root)


def _load_pyproject(file: Path, adapters: Collection[str], root: Path) -> Configuration | None:
    tools = (_read(file) or {}).get("tool", {})
    if not isinstance(tools, dict):
        raise ConfigurationError(f"[tool] of {file.name} must be a table")
    table = tools.get("msp-bridge")
    if table is None:
        return None
    return _configuration(table, f"[tool.msp-bridge] of {file.name}", file.parent, adapters, root)


def _read(file: Path) -> dict[str, Any] | None:
    try:
        return reading.toml(file, "utf-8-sig")
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:  # TOMLDecodeError and UnicodeDecodeError are ValueErrors
        raise ConfigurationError(f"can't read {file}: {error}") from None


def _configuration(table: Any, where: str, base: Path, adapters: Collection[str], root: Path) -> Configuration:
    """`python` is relative to `base`, where the file is; folders to `root`, the directory that it is about."""
    if not isinstance(table, dict):
        raise ConfigurationError(f"{where} must be a table")
    for key in table:
        if key not in KEYS and key not in adapters:
            raise ConfigurationError(f"{where}: unknown key {key!r}", suggestion(key, sorted([*KEYS, *adapters])))
    python = _value(table, "python", where, _is_string, "a string")
    cluster, within = _cluster(table, where), f"{where}, cluster"
    return Configuration(
        adapters=_adapters(table, where, adapters),
        python=None if python is None else Path(os.path.abspath(base / Path(python).expanduser())),
        jobs=_value(table, "jobs", where, lambda value: type(value) is int and value >= 1, "a whole number from 1 on"),
        threshold=_value(table, "threshold", where, _is_percentage, "a number", "a percentage from 0 to 100"),
        incremental=_value(table, "incremental", where, lambda value: isinstance(value, bool), "true or false"),
        environment=tuple(_value(table, "environment", where, _are_strings, "a list of names of variables") or ()),
        cluster=_value(cluster, "address", within, _is_string, "a string"),
        cluster_exclude=tuple(_value(cluster, "exclude", within, _are_strings, "a list of patterns of files") or ()),
        settings={name: _value(table, name, where, _is_table, "a table") for name in table if name in adapters},
        folders=_folders(table, where, root, adapters),
    )


def _folders(
    table: Mapping[str, Any], where: str, root: Path, adapters: Collection[str]
) -> Mapping[str, Configuration]:
    folders = {}
    for name, inner in (_value(table, "folders", where, _is_table, "a table") or {}).items():
        within, folder = f"{where}, folders.{name!r}", os.path.normpath(name)
        if os.path.isabs(folder) or folder.split(os.sep)[0] in (os.curdir, os.pardir):
            raise ConfigurationError(f"{within} names no folder below {root}", "name one, relative to it")
        if not os.path.isdir(root / folder):
            raise ConfigurationError(
                f"{within}: there is no such folder in {root}", "correct the name, or leave it out"
            )
        if isinstance(inner, dict) and "folders" in inner:
            raise ConfigurationError(f"{within} has folders in it", f"write them as 'folders.\"{name}/…\"'")
        folders[f"{folder}/"] = _configuration(inner, within, root / folder, adapters, root / folder)
    return folders


def _adapters(table: Mapping[str, Any], where: str, known: Collection[str]) -> tuple[str, ...] | None:
    chosen = table.get("adapter")
    if chosen is None:
        return None
    names = [chosen] if isinstance(chosen, str) else chosen
    if not _are_strings(names):
        raise ConfigurationError(f"{where}: adapter must be a name, or a list of names, not {chosen!r}")
    return check_adapters(tuple(names), where, known)


def check_adapters(names: tuple[str, ...], where: str, known: Collection[str]) -> tuple[str, ...]:
    """`names`, if there is an adapter of each. Raises ConfigurationError."""
    for name in names:
        if name not in known:
            raise ConfigurationError(f"{where}: there is no adapter {name!r}", suggestion(name, sorted(known)))
    return names


def _value(
    table: Mapping[str, Any], key: str, where: str, right: Callable[[Any], bool], kind: str, remedy: str | None = None
) -> Any:
    """The value of `key`, None without one. Raises ConfigurationError for one that is not `right`."""
    value = table.get(key)
    if value is not None and not right(value):
        raise ConfigurationError(f"{where}: {key} must be {kind}, not {value!r}", remedy)
    return value


def _is_string(value: Any) -> bool:
    return isinstance(value, str)


def _are_strings(value: Any) -> bool:
    return isinstance(value, list) and all(map(_is_string, value))


def _is_table(value: Any) -> bool:
    return isinstance(value, dict)


def _is_percentage(value: Any) -> bool:
    return type(value) in (int, float) and 0 <= value <= 100


def _cluster(table: Mapping[str, Any], where: str) -> Mapping[str, Any]:
    """The table `cluster`; a string is its address."""
    value = table.get("cluster", {})
    if isinstance(value, str):
        return {"address": value}
    if not isinstance(value, dict):
        raise ConfigurationError(f"{where}: cluster must be an address or a table, not {value!r}")
    for key in value.keys() - CLUSTER_KEYS:
        raise ConfigurationError(f"{where}, cluster: unknown key {key!r}", suggestion(key, sorted(CLUSTER_KEYS)))
    return value


def _prefix_of_tables(root: Path, named: str | None) -> str:
    """The text before the name of each table in the file that `load_configuration` reads for these."""
    name = None if named is None else Path(named).name
    if name not in (OWN_FILE, PYPROJECT):
        name = OWN_FILE if (root / OWN_FILE).is_file() else PYPROJECT
    return "" if name == OWN_FILE else "tool.msp-bridge."


def settings_file(root: Path) -> str:
    """The file to write a setting for `root` to: a new msp-bridge.toml would hide the settings of pyproject.toml."""
    tools = reading.table(root / PYPROJECT).get("tool")
    in_pyproject = isinstance(tools, dict) and "msp-bridge" in tools
    return PYPROJECT if in_pyproject and not (root / OWN_FILE).is_file() else OWN_FILE


def _quoted(folder: str) -> str:
    return json.dumps(folder.rstrip("/"), ensure_ascii=False)  # TOML's strings are like JSON's
