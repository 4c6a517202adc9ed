"""Which adapters are installed."""

from __future__ import annotations

from importlib.metadata import EntryPoint, entry_points

from msp_bridge.adapter import Adapter
from msp_bridge.errors import BridgeError

GROUP = "msp_bridge.adapters"


def installed() -> dict[str, EntryPoint]:
    """The adapters of the entry-point group `msp_bridge.adapters`, by name; nothing is imported yet."""
    return {entry.name: entry for entry in entry_points(group=GROUP)}


def load(entry: EntryPoint) -> type[Adapter]:
    """The adapter's class. Raises BridgeError when the plugin is broken."""
    try:
        adapter: type[Adapter] = entry.load()
    except Exception as error:  # somebody else's code: whatever goes wrong in it must not look like our fault
        raise BridgeError(
            f"the adapter {entry.name} ({entry.value}) can't be loaded: {error!r}; reinstall or remove it"
        ) from error
    return adapter
