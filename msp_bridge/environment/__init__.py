"""The machine as a project finds it: adapters that are installed, interpreters, and the cache."""
