"""Everything that verdicts depend on besides the files of the project: the JDK, the effective pom, all jars."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path

from msp_bridge import reading
from msp_bridge.adapter import Surroundings

VARIABLES = ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "MAVEN_ARGS", "MAVEN_OPTS")
COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)  # has the time in older versions of Maven's help plug-in
BUILT = re.compile(
    r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?(Z|[+-]\d\d:?\d\d)?"
)  # ${maven.build.timestamp}, in properties


def surroundings(java: Path, root: Path, pom: Path, class_path: Iterable[str]) -> Surroundings | None:
    """Name the content of everything outside of the copy at `root`; None where the JDK can't be named. Blocks.

    `pom` is the effective one, which has the versions of Maven's plug-ins, and paths of the copy.
    """
    release = reading.text_or_empty(java.resolve().parent.parent / "release")
    if not release:
        return None
    text = BUILT.sub("", COMMENT.sub("", reading.text(pom))).replace(str(root), "")
    jars = (Path(entry) for entry in class_path if not Path(entry).is_relative_to(root))
    values = {
        "jdk": sorted(release.splitlines()),
        "pom": reading.digest_of(text.encode()),
        "jars": sorted([jar.name, reading.digest(jar) or ""] for jar in jars),
        "environment": {name: os.environ.get(name) for name in VARIABLES},
    }
    return Surroundings(values)
