"""Protocols at the very edge: each dialect translates between the wire and `msp_bridge.model`, and nothing else."""
