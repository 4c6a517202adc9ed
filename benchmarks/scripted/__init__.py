"""What runs inside the servers: an adapter for the bridge, and the payload that both sides send."""
