"""The gate counts clients: as many as the limit are served, and one that leaves makes room."""

import contextlib

import pytest

from msp_bridge.access import gate
from msp_bridge.access.gate import ClientRejected, ConnectionLimits


def test_as_many_clients_as_the_limit_are_served_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gate, "MAX_CLIENTS", 3)
    limits = ConnectionLimits()
    for _ in range(2):
        with contextlib.ExitStack() as clients:
            for _ in range(3):
                clients.enter_context(limits.client())
            with pytest.raises(ClientRejected, match="3 clients are connected already") as rejected:
                clients.enter_context(limits.client())
            assert rejected.value.id is None
    with pytest.raises(ClientRejected, match=r"^0 clients are connected already"), ConnectionLimits(0).client():
        pass
