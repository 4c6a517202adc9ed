"""The adapters that are installed: found by their entry points, loaded, and checked against the API."""

from __future__ import annotations

import inspect
from collections.abc import Callable

from msp_bridge.adapter import OPTIONAL, Adapter
from msp_bridge.environment.distributions import EntryPoint, entry_points
from msp_bridge.errors import BridgeError

GROUP = "msp_bridge.adapters"


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
