"""For adapters of tools that speak MSP themselves: one MSP server, put to work for another."""

from __future__ import annotations

from msp_bridge.upstream.frames import Frames, Message, framed
from msp_bridge.upstream.server import Refused, UpstreamServer

__all__ = ["Frames", "Message", "Refused", "UpstreamServer", "framed"]
