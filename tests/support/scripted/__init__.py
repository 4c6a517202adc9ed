"""Scripted tools: stand-ins for faults that the real ones do not produce on demand."""
