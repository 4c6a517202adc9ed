"""Refusal: why somebody who has connected doesn't become a client."""

from __future__ import annotations

from msp_bridge.jsonrpc.messages import Id


class Refusal(Exception):
    """`reason` is one sentence for the one who is refused; `id` is of the request that it answers, if there is one."""

    def __init__(self, reason: str, id: Id | None = None) -> None:
        super().__init__(reason)
        self.reason, self.id = reason, id
