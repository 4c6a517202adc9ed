"""The Language Server Protocol 3.17: what tests don't notice, as diagnostics of any editor, without a plugin."""
