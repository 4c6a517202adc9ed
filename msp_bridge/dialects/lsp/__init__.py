"""The Language Server Protocol 3.17: mutants that survive, as diagnostics of any editor, without a plugin."""
