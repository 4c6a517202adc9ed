"""A tutorial as a program: the files that a page shows are written, and its commands run, in the order of the page.

A block with `title="NAME"` is a file. A block `console` has commands (`$ …`) and what they print on stdout, where a line
`…` stands for any lines, and `…` in a line for any text. `python -m support.tutorials` takes the pictures anew that
follow such blocks, from what the commands print in a terminal with colors.
"""

import io
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from attrs import frozen
from rich.console import Console
from rich.text import Text

from support.stryker_js_trees import CORE10

ROOT = Path(__file__).parents[2]
BIN = Path(sys.prefix) / "bin"
PAGES = sorted((ROOT / "docs/tutorial").glob("*.md"))
BLOCK = re.compile(r'^```(\w+)(?: title="([^"]+)")?\n(.*?)^```\n(?:\n!\[[^]]*\]\(([^)]+)\))?', re.MULTILINE | re.DOTALL)
INSTALLING = (
    "mkdir ",
    "npm i",
    "pip install ",
    "pipx install ",
    "python3 -m venv ",
    ". .venv/",
)  # the tests' own is used
COLUMNS = 72
# rich's own template loads a font from the network. This one has the fonts of the reader's machine.
SVG = """<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{ font-family: ui-monospace, Menlo, Consolas, monospace; font-size: {char_height}px;
    line-height: {line_height}px; }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal"><rect x="0" y="0" width="{terminal_width}" height="{terminal_height}" /></clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">{matrix}</g>
</g>
</svg>
"""


@frozen
class Step:
    """A file to write, or commands to run, each with what it prints; `picture` shows the latter."""

    file: str | None
    text: str
    picture: str | None

    def commands(self) -> Iterator[tuple[str, str]]:
        """The commands of a `console` block, and what each prints."""
        for command in re.split(r"^\$ ", self.text, flags=re.MULTILINE)[1:]:
            line, _, output = command.partition("\n")
            if not line.startswith(INSTALLING):
                yield line, output


def steps(page: Path) -> list[Step]:
    """The files and commands of a page, in its order."""
    blocks = BLOCK.findall(page.read_text("utf-8"))
    return [
        Step(title or None, text, picture or None)
        for kind, title, text, picture in blocks
        if title or kind == "console"
    ]


def project(directory: Path) -> Path:
    """An empty folder in which the tools are installed."""
    root = directory / "shop"
    root.mkdir()
    (root / ".venv").symlink_to(BIN.parent)
    (root / "node_modules").symlink_to(CORE10)
    return root


def printed(root: Path, command: str, **variables: str) -> str:
    """The stdout of `command` in a shell, in `root`, with the tools of the tests on PATH."""
    environment = {
        **os.environ,
        "PATH": f"{BIN}:{os.environ['PATH']}",
        "MSP_BRIDGE_CACHE": str(root.parent / "cache"),
        "COLUMNS": str(COLUMNS + 8),
        **variables,
    }
    done = subprocess.run(command, shell=True, cwd=root, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    return done.stdout


def in_any_order(output: str) -> str:
    """The lines in alphabetical order, with each time as 00:00:00: results come as they are known, in any order."""
    return "\n".join(sorted(re.sub(r"\d\d:\d\d:\d\d", "00:00:00", output).split("\n"))).strip()


def prints(output: str, shown: str) -> bool:
    """Whether the output of a command is the one that a page shows."""
    if "…" in shown:
        return pattern(shown).fullmatch(output) is not None
    return in_any_order(output) == in_any_order(shown)


def pattern(output: str) -> re.Pattern[str]:
    """What matches the output that a page shows."""
    text = re.escape(output.rstrip()).replace("\\ ", " ")
    return re.compile(r"\s*" + re.sub(r"(?m)^…\\?$", "(?s:.*?)", text).replace("…", ".*?") + r"\s*", re.DOTALL)


def without_blanks(text: str) -> str:
    """The text without blanks at the ends of lines, which no page shows."""
    return re.sub(r"[ \t]+$", "", text, flags=re.MULTILINE)


def drawn(typed: list[tuple[str, str]]) -> str:
    """An SVG of a terminal in which each of these commands has printed this, with ANSI colors."""
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True, color_system="standard")
    for command, output in typed:
        console.print(Text.assemble(("$ ", "bold green"), command))
        console.print(Text.from_ansi(output.rstrip()))
    return console.export_svg(title="shop", code_format=SVG, unique_id="terminal")


def take_pictures(page: Path) -> None:
    """Take each picture of `page`, in a project that has come so far."""
    with tempfile.TemporaryDirectory() as directory:
        root = project(Path(directory))
        for step in steps(page):
            if step.file:
                (root / step.file).write_text(step.text)
            elif step.picture:
                lines = [command for command, _ in step.commands()]
                typed = [(line, printed(root, line, FORCE_COLOR="1", TERM="xterm")) for line in lines]
                (page.parent / step.picture).write_text(drawn(typed))


if __name__ == "__main__":
    for each in PAGES:
        take_pictures(each)
