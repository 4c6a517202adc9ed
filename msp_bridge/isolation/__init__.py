"""Isolation of processes by namespaces of the Linux kernel: mounts, layers, limits, and the end of what was started.

Knows nothing of mutants. Also runs under a project's interpreter: Python 3.10 or later, the standard library alone.
"""

from __future__ import annotations
