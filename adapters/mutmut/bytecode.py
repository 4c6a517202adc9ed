"""Bytecode that a full disk has cut short: Python before 3.14 writes it all the same, and fails on it for ever after.

https://github.com/python/cpython/issues/126606
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

SYMPTOM = "marshal data"  # EOFError: marshal data too short; ValueError: bad marshal data


def forgotten(env: Mapping[str, str | None], error: Exception) -> bool:
    """Whether `error` says that bytecode is damaged; then all that was kept of it is deleted, and it is worth a try."""
    kept = env.get("PYTHONPYCACHEPREFIX")
    if kept is None or SYMPTOM not in str(error) or not Path(kept).is_dir():
        return False
    shutil.rmtree(kept, ignore_errors=True)
    return True
