"""Who may be a client of a server on a socket. Knows nothing of mutation testing."""

from __future__ import annotations

VARIABLE = "MSP_BRIDGE_TOKEN"  # the environment's variable with the secret that a client must show
