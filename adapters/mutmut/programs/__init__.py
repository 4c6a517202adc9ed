"""Programs that run under the project's own interpreter, and never import the bridge, which talks to it in JSON lines.

Python 3.10 or later, with nothing but the standard library, mutmut, libcst and pytest.
"""

from __future__ import annotations
