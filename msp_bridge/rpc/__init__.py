"""JSON-RPC 2.0 over Content-Length framing. Knows nothing of mutation testing."""
