"""`msp-bridge docs`: the pages of the installed version, in the terminal."""

import re
import sys
from collections.abc import Mapping
from pathlib import Path

import click

import msp_bridge
from msp_bridge.errors import CommandLineError, suggestion

PACKAGE = Path(msp_bridge.__file__).parent
LINK = re.compile(r"(?<!!)\[([^\]]*)\]\((?!https?:)([^)\s]*?)(?:([\w-]+)\.md)?(?:#[^)\s]*)?\)")  # within the pages
COMMENT = re.compile(r"^<!--.*?-->\n", re.MULTILINE | re.DOTALL)
KINDS = ("tutorial", "how-to", "reference", "explanation")  # directories of the pages, the first to read first
MAX_WIDTH = 100  # columns, beyond which lines are hard to read


@click.command("docs")
@click.argument("topic", required=False)
def command(topic: str | None) -> None:
    """Show a page of the documentation of this version; without TOPIC, list the topics.

    A terminal gets it formatted, in a pager (PAGER sets which); a file or a pipe gets it as Markdown.

    \b
    Exit codes; stderr has the reason:
      0    done
      2    there is no such topic
    """
    pages = topics()
    if topic is None:
        click.echo(listing(pages))
        return
    if topic not in pages:
        raise CommandLineError(
            f"there is no topic {topic!r}", suggestion(topic, pages, "`msp-bridge docs` lists the topics")
        )
    text = pages[topic].read_text("utf-8")
    if not sys.stdout.isatty():
        click.echo(text, nl=False)
        return
    click.echo_via_pager(formatted(text, pages), color=True)


def topics() -> Mapping[str, Path]:
    """Find the page of each topic, by kind. A wheel has the pages in the package, a source tree beside it."""
    root = next(place / "docs" for place in (PACKAGE, PACKAGE.parent) if (place / "docs" / "index.md").is_file())
    return {path.stem: path for kind in KINDS for path in sorted((root / kind).rglob("*.md"))}


def listing(pages: Mapping[str, Path]) -> str:
    """List the topics with the titles of their pages, a line each, below the names of their directories."""
    width = max(map(len, pages))
    lines: list[str] = []
    group = ""
    for name, path in pages.items():
        if path.parent.name != group:
            group = path.parent.name
            lines += ["", f"{group}:"] if lines else [f"{group}:"]
        title = path.read_text("utf-8").partition("\n")[0].removeprefix("# ")
        lines.append(f"  {name:<{width}}  {title}")
    return "\n".join([*lines, "", "`msp-bridge docs TOPIC` shows one."])


def formatted(text: str, pages: Mapping[str, Path]) -> str:
    """Format a page for a terminal. Links to other pages stand at the end, as commands."""
    from rich.console import Console  # here: to import it takes longer than to print Markdown
    from rich.markdown import Markdown

    linked = dict.fromkeys(match[3] for match in LINK.finditer(text) if match[3] in pages)
    text = COMMENT.sub("", LINK.sub(r"\1", text))
    if linked:
        text += "\nPages that this one links to:\n\n" + "".join(f"- `msp-bridge docs {name}`\n" for name in linked)
    console = Console(force_terminal=True)
    console.width = min(console.width, MAX_WIDTH)
    with console.capture() as captured:
        console.print(Markdown(text, hyperlinks=False))
    return captured.get()
