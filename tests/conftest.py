"""What the tests share."""

from __future__ import annotations

import sys
from pathlib import Path

SCRIPTED = Path(__file__).with_name("scripted")
sys.path.insert(0, str(SCRIPTED))  # the stranger's plugin is installed, as far as importlib.metadata can tell
