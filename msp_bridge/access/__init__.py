"""Who may be a client of a server on a socket. Independent of mutation testing."""

ENVIRONMENT_VARIABLE = "MSP_BRIDGE_TOKEN"  # the environment variable with the token that a client must send
