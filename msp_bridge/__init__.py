"""msp-bridge: one mutation server for every editor and every mutation testing tool."""

from __future__ import annotations

__version__ = "0.1.0"
