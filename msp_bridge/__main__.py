"""`python -m msp_bridge`: the command line without the console script."""

from __future__ import annotations

from msp_bridge.cli import main

main()
