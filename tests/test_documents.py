"""What the documents say to type is understood by the command line, and each link in them leads to what is there."""

import os
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from msp_bridge.cli import msp_bridge
from msp_bridge.workspace.configuration import KEYS

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
FOLDERS = (".", "benchmarks", "editors/vscode", *(f"examples/shop{of}" for of in ("", "-go", "-java", "-net", "-rust")))
PAGES = sorted(DOCS.rglob("*.md"))
DOCUMENTS = sorted(file for folder in FOLDERS for file in (ROOT / folder).glob("*.md")) + PAGES
BLOCK = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
CONSOLE = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SPAN = re.compile(r"`(msp-bridge [a-z][^`]*)`")
LINK = re.compile(r"\]\((?!https?:)([^)#\s]*)#?([^)\s]*)\)")
NO_TESTS = {"test_command", "test_mutants"}  # a method of adapters, a tool of MCP
TESTED = re.compile(
    r"^\|.* test \|\n\|[-|]+\|\n((?:\|.*\n)+)", re.MULTILINE
)  # the rows of a table with a column `test`
PLACEHOLDERS = {"NAME": "vim", "N": "1", "…": ""}


def command_lines(text: str) -> Iterator[str]:
    """The command lines of `msp-bridge` in blocks and in sentences, each in one line."""
    for block in CONSOLE.findall(text):
        lines = block.replace("\\\n", " ").splitlines()
        yield from (line[2:] for line in lines if re.match(r"\$ (?!docker ).*\bmsp-bridge [a-z-]", line))
    yield from (" ".join(span.split()) for span in SPAN.findall(BLOCK.sub("", text)))


def arguments(line: str) -> list[str]:
    """What the shell gives to `msp-bridge`."""
    words = shlex.split(line, comments=True)
    words = words[len(words) - words[::-1].index("msp-bridge") :] if "msp-bridge" in words else []
    end = next((at for at, word in enumerate(words) if word in ("&&", "|", ">", "||")), len(words))
    return [PLACEHOLDERS.get(word, word) for word in words[:end] if PLACEHOLDERS.get(word, word)]


def understood(words: list[str]) -> None:
    """Raises UsageError for a command, option or value that is not known, or lacks; nothing is run."""
    command: click.Command = msp_bridge
    context = click.Context(command, info_name="msp-bridge")
    while isinstance(command, click.Group) and words and not words[0].startswith("-"):
        _, found, words = command.resolve_command(context, words)
        assert found is not None
        command, context = found, click.Context(found, context, info_name=found.name)
    if words and words != ["--help"] and not isinstance(command, click.Group):
        command.make_context(command.name, words, parent=context.parent)


def anchors(text: str) -> set[str]:
    """Those of the headings, as forges make them."""
    headings = re.findall(r"^#+ (.*)$", BLOCK.sub("", text), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.fixture(scope="module")
def there() -> str:
    """The names of all test modules and functions, a line each."""
    found = [""]
    for folder, directories, files in os.walk(ROOT / "tests"):
        directories[:] = [name for name in directories if name not in ("corpus", "node_modules", "npm", "projects")]
        for name in (name for name in files if name.endswith(".py")):
            found += [name, *re.findall(r"def (test_\w+)", Path(folder, name).read_text("utf-8"))]
    return "\n".join(found)


def test_every_test_that_a_page_names_is_there(there: str) -> None:
    named = [(page.name, name) for page in PAGES for name in re.findall(r"`(test_\w+)`", page.read_text("utf-8"))]
    assert len(named) > 300
    # lsp.md names the beginnings
    assert [(page, name) for page, name in named if name not in NO_TESTS and f"\n{name}" not in there] == []


def test_each_rule_claim_and_method_of_a_table_names_its_tests(there: str) -> None:
    tables = [table for page in PAGES for table in TESTED.findall(page.read_text("utf-8"))]
    rows = [row for table in tables for row in table.splitlines()]
    assert len(rows) > 150
    for row in rows:
        names = re.findall(r"`([^`]+)`", row.rstrip("|").rpartition("|")[2])
        assert names, row
        assert [name for name in names if f"\n{name}" not in there and f"\ntest_{name}" not in there] == [], row


def test_the_configuration_page_has_every_key() -> None:
    table = re.findall(r"^\| `(\w+)", (DOCS / "reference/configuration.md").read_text("utf-8"), re.MULTILINE)
    assert sorted(table) == sorted(KEYS)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda document: str(document.relative_to(ROOT)))
def test_every_command_line_is_understood(document: Path) -> None:
    for line in command_lines(document.read_text("utf-8")):
        try:
            understood(arguments(line))
        except click.UsageError as error:
            pytest.fail(f"{line}: {error.format_message()}")


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda document: str(document.relative_to(ROOT)))
def test_every_link_leads_to_a_file_or_a_heading(document: Path) -> None:
    for path, anchor in LINK.findall(BLOCK.sub("", document.read_text("utf-8"))):
        to = document.parent / path if path else document
        assert to.exists(), f"{path} of {document}"
        if anchor:
            assert anchor in anchors(to.read_text("utf-8")), f"{path}#{anchor} of {document}"


def test_command_lines_are_found() -> None:
    found = [line for document in DOCUMENTS for line in command_lines(document.read_text("utf-8"))]
    assert len(found) > 60
    assert "msp-bridge doctor --run" in [" ".join(["msp-bridge", *arguments(line)]) for line in found]


@pytest.mark.parametrize("line", ["msp-bridge rnu", "msp-bridge run --treshold 8", "msp-bridge editors no-such-editor"])
def test_a_wrong_command_line_is_not_understood(line: str) -> None:
    with pytest.raises(click.UsageError):
        understood(arguments(line))
