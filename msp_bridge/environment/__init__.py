"""What this machine has for a project: adapters that are installed, interpreters, and the cache."""
