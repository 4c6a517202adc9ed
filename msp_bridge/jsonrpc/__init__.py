"""JSON-RPC 2.0 over Content-Length framing, as server (`connection`) and as client (`client`)."""
