"""Where go and gremlins are, and how one installs them."""

import os
import shutil

from msp_bridge.adapter import MachineCommand, ToolError

INSTALL = MachineCommand("go install github.com/go-gremlins/gremlins/cmd/gremlins@latest")
NO_GO = "there is no go on PATH, nor in /usr/local/go/bin"
INSTALL_GO = "install Go from https://go.dev/dl"


def go() -> str:
    """The program, also where an editor's PATH doesn't lead; raises `ToolError`."""
    found = shutil.which("go", path=search_path())
    if found is None:
        raise ToolError(NO_GO, INSTALL_GO)
    return found


def gremlins() -> str:
    """The program, also where `go install` puts it; raises `ToolError`."""
    found = shutil.which("gremlins", path=search_path())
    if found is None:
        raise ToolError("gremlins is not installed", INSTALL)
    return found


def is_installed() -> bool:
    """Whether there is a program gremlins."""
    return shutil.which("gremlins", path=search_path()) is not None


def search_path() -> str:
    """PATH, where Go is installed as a rule, and where `go install` puts programs."""
    places = [os.environ.get("PATH", os.defpath), "/usr/local/go/bin"]
    if bin_directory := os.environ.get("GOBIN"):
        places.append(bin_directory)
    gopath = os.environ.get("GOPATH") or os.path.expanduser("~/go")
    return os.pathsep.join([*places, *(os.path.join(each, "bin") for each in gopath.split(os.pathsep))])
