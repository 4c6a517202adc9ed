"""Where Java and Maven are, and how one installs them."""

import os
import shutil
from pathlib import Path

from msp_bridge.adapter import ToolError

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
