"""Lines of inlined code: Kotlin numbers the lines of an inline function beyond the end of the file that calls it.

Which line calls it stands in the class file, in the stratum KotlinDebug of its debug text (JSR 45).
"""

from __future__ import annotations

import re

STRATUM, LINES = "*S KotlinDebug\n", "*L\n"
ROW = re.compile(r"^(\d+)(?:#\d+)?(?:,(\d+))?:(\d+)(?:,(\d+))?$", re.MULTILINE)


def calling_line(debug: str, line: int) -> int:
    """Find the line that calls what was inlined as `line`; it is `line` for the file's own code."""
    for row in ROW.finditer(debug.partition(STRATUM)[2].partition(LINES)[2]):
        call, repeated, first, step = (int(number or 1) for number in row.groups())
        if step and first <= line < first + repeated * step:
            return call + (line - first) // step
    return line
