"""The distributions installed in directories of packages: their names, what they require, their entry points.

An editor waits for this. `importlib.metadata` takes as long to import as click, and parses each METADATA as an e-mail.
It is used for what isn't a plain directory.
"""

import contextlib
import inspect
import itertools
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib.machinery import PathFinder
from pkgutil import resolve_name
from typing import Any

from attrs import frozen

from msp_bridge.adapter import OPTIONAL, Adapter
from msp_bridge.errors import BridgeError

INFO = (".dist-info", ".egg-info")  # how the names of their directories end; an .egg-info may also be a file
METADATA = ("METADATA", "PKG-INFO")
GROUP = "msp_bridge.adapters"


@frozen
class EntryPoint:
    """An object that a distribution offers by name."""

    name: str
    value: str  # module:object

    def load(self) -> Any:
        """The object; raises whatever its import raises."""
        return resolve_name(self.value)


@frozen
class Distribution:
    """An installed distribution. Its files are read when they are asked for; a missing one counts as empty."""

    path: str  # of its .dist-info or .egg-info

    @property
    def stem(self) -> str:
        """The name in its path, normalized."""
        return normal(os.path.splitext(os.path.basename(self.path))[0].partition("-")[0])

    @property
    def name(self) -> str | None:
        """Normalized. An uninstall of pip's that fails leaves directories without one, such as `~ip-23.0.dist-info`."""
        name = next(self._header("Name"), None)
        return normal(name) if name else None

    @property
    def requires(self) -> Sequence[str]:
        """The requirements, with their markers."""
        listed = _lines(os.path.join(self.path, "requires.txt"))  # of an .egg-info; its extras come after the others
        first = next((number for number, line in enumerate(listed) if line.startswith("[")), None)
        return [*self._header("Requires-Dist"), *listed[:first]]

    def entry_points(self, group: str) -> Iterator[EntryPoint]:
        """The entry points of the `group`."""
        section = ""
        for line in _lines(os.path.join(self.path, "entry_points.txt")):
            if line.startswith("["):
                section = line.strip("[]")
            elif section == group and "=" in line:
                name, _, value = line.partition("=")
                yield EntryPoint(name.strip(), value.partition("[")[0].strip())  # without extras

    def _header(self, key: str) -> Iterator[str]:
        """The values of `key`, whose case counts for nothing."""
        files = [self.path, *(os.path.join(self.path, name) for name in METADATA)]
        for line in next(filter(None, map(_head, files)), ()):
            found, _, value = line.partition(":")
            if found.lower() == key.lower():
                yield value.strip()


def distributions(directories: Iterable[str]) -> Iterator[Distribution]:
    """The distributions in `directories`, in their order."""
    for directory in directories:
        with contextlib.suppress(OSError):  # many a path of sys.path doesn't exist
            names = [name for name in os.listdir(directory or os.curdir) if name.lower().endswith(INFO)]
            yield from (Distribution(os.path.join(directory, name)) for name in names)


def entry_points(group: str) -> list[EntryPoint]:
    """The entry points of what can be imported; of two distributions of one name the first counts."""
    if not all(map(_is_plain, sys.path)) or any(map(_finds_distributions, sys.meta_path)):
        import importlib.metadata  # here: it is seldom needed

        found = importlib.metadata.entry_points(group=group)
        return [EntryPoint(one.name, one.value.partition("[")[0].strip()) for one in found]
    first = {distribution.stem: distribution for distribution in reversed([*distributions(sys.path)])}
    return [point for distribution in first.values() for point in distribution.entry_points(group)]


def normal(name: str) -> str:
    """The normalized form of a distribution's name."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _is_plain(path: str) -> bool:
    return not path.endswith(".egg") and not os.path.isfile(path)


def _finds_distributions(finder: object) -> bool:
    """Whether it is a finder of its own kind, as loaders of a program from one file have.

    That of the package importlib_metadata, which Dask needs before Python 3.12, finds what the standard one does.
    """
    own = finder is not PathFinder and type(finder).__module__ != "importlib_metadata"
    return own and hasattr(finder, "find_distributions")


def _head(file: str) -> list[str]:
    """The lines before the first empty one: what follows is a description. Those of a text begin with spaces."""
    with contextlib.suppress(OSError), open(file, encoding="utf-8", errors="replace") as opened:
        return list(itertools.takewhile(lambda line: line != "\n", opened))
    return []


def _lines(file: str) -> list[str]:
    """The lines that are neither empty nor a comment."""
    with contextlib.suppress(OSError), open(file, encoding="utf-8", errors="replace") as opened:
        return [line for line in map(str.strip, opened) if line and not line.startswith("#")]
    return []


def installed() -> dict[str, EntryPoint]:
    """The adapters of the entry-point group `msp_bridge.adapters`, sorted by name; none is imported."""
    return {entry.name: entry for entry in sorted(entry_points(GROUP), key=lambda entry: entry.name)}


def load(entry: EntryPoint) -> type[Adapter]:
    """The adapter's class. Raises BridgeError when the plugin is broken, or made for another version of the API."""
    try:
        adapter: type[Adapter] = entry.load()
    except Exception as error:  # somebody else's code: whatever goes wrong in it must not look like our fault
        problem = f"the adapter {entry.name} ({entry.value}) can't be loaded: {error!r}"
        raise BridgeError(problem, "reinstall or remove it") from error
    if wrong := _unlike_the_api(adapter):
        problem = f"the adapter {entry.name} ({entry.value}) does not fit this version's API: {wrong}"
        raise BridgeError(problem, "update it or msp-bridge, or remove it")
    return adapter


def _unlike_the_api(adapter: type[Adapter]) -> str:
    """The first method that the bridge could not call as `adapter.Adapter` says; "" if there is none."""
    for protocol in (Adapter, *OPTIONAL):
        for name in vars(protocol):
            declared, method = getattr(protocol, name), getattr(adapter, name, None)
            if name.startswith("_") or not callable(declared) or (method is None and protocol is not Adapter):
                continue
            if not callable(method):
                return f"it has no method {name!r}"
            wanted = inspect.signature(declared)
            if not _takes(method, wanted):
                return f"{name}{inspect.signature(method)} can't be called as {name}{wanted}"
    return ""


def _takes(method: Callable[..., object], wanted: inspect.Signature) -> bool:
    """Whether `method` can be called with the arguments of `wanted`."""
    by_name = {each.name: None for each in wanted.parameters.values() if each.kind is each.KEYWORD_ONLY}
    try:
        inspect.signature(method).bind(*[None] * (len(wanted.parameters) - len(by_name)), **by_name)
    except TypeError:
        return False
    return True
