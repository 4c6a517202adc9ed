"""The user's editor, with a file open at a line."""

import shlex
import shutil
from collections.abc import Mapping
from pathlib import Path

from msp_bridge.errors import ConfigurationError

USUAL = ("vi", "nano")  # where the user has named none
COLON = {"hx", "helix", "subl", "zed", "zeditor"}  # take FILE:LINE
GOTO = {"code", "code-insiders", "codium", "cursor", "windsurf"}
LINE = {"charm", "goland", "idea", "kate", "pycharm", "rider", "rubymine", "rustrover", "webstorm"}


def editor_command(file: Path, line: int, environment: Mapping[str, str]) -> list[str]:
    """The command of `$VISUAL` or `$EDITOR` that opens `file` at `line` (1-based). Raises ConfigurationError."""
    named = environment.get("VISUAL") or environment.get("EDITOR") or next(filter(shutil.which, USUAL), None)
    try:
        command = shlex.split(named or "")
    except ValueError as error:
        raise ConfigurationError(f"can't read the command in $EDITOR: {error}") from None
    if not command:
        raise ConfigurationError("there is no editor", "set EDITOR, for example to vim, nano or `code --wait`")
    name = Path(command[0]).name
    if name in GOTO:
        return [*command, "--goto", f"{file}:{line}"]
    if name in COLON:
        return [*command, f"{file}:{line}"]
    return [*command, "--line", str(line), str(file)] if name in LINE else [*command, f"+{line}", str(file)]
