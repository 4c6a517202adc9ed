"""The adapters that ship with the bridge. Each is found by its entry point, as anybody's would be."""
