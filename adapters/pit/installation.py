"""Where Java, Maven and a project's poms are, and how one installs the programs."""

import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

from msp_bridge import reading
from msp_bridge.adapter import ToolError

POM = "pom.xml"
MODULE = re.compile(r"<module>\s*([^<>]+?)\s*</module>")
INSTALL_JDK = "install a JDK, 11 or newer, and set JAVA_HOME to it"
INSTALL_MAVEN = "install Maven from https://maven.apache.org, or put its wrapper `mvnw` into the project"


def java(program: str = "java") -> str:
    """The JDK's `program`: that of JAVA_HOME, as Maven takes it, else of PATH; raises `ToolError`."""
    home = os.environ.get("JAVA_HOME")
    found = shutil.which(program, path=os.path.join(home, "bin")) if home else shutil.which(program)
    if found is None:
        where = f"in JAVA_HOME ({home})" if home else "on PATH"
        raise ToolError(f"there is no `{program}` {where}", INSTALL_JDK)
    return found


def maven(root: Path) -> str:
    """The project's own wrapper, else the program on PATH; raises `ToolError`."""
    wrapper = root / "mvnw"
    found = str(wrapper) if os.access(wrapper, os.X_OK) else shutil.which("mvn")
    if found is None:
        raise ToolError("there is no `mvn` on PATH", INSTALL_MAVEN)
    return found


def poms(root: Path) -> Iterator[tuple[Path, str]]:
    """Yield the directory of each module with the text of its pom, the root first, whatever profiles are on. Blocks."""
    top = root.resolve()
    waiting, seen = [top], set[Path]()
    while waiting:
        place = waiting.pop()
        file = place if place.suffix == ".xml" else place / POM
        text = reading.text_or_empty(file)
        seen.add(place)
        yield file.parent, text
        below = {(file.parent / name).resolve() for name in MODULE.findall(text)}
        waiting += sorted(each for each in below if each not in {*seen, *waiting} and each.is_relative_to(top))
