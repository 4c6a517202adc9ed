"""Words that no page, message, comment or docstring has: they make sentences that a native reader stumbles over."""

import ast
import functools
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
OURS = sorted(file for top in ("msp_bridge", "adapters") for file in (ROOT / top).rglob("*.py"))
PAGES = [
    *(ROOT / "docs").rglob("*.md"),
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md", "UPGRADING.md", "CODE_OF_CONDUCT.md")),
    *(ROOT / name for name in ("benchmarks/README.md", "editors/vscode/README.md")),
    *(ROOT / "examples").rglob("*.md"),
]
NO_BEGINNING = re.compile(r"(?:As|Of|See|Those|What|Whoever|Whose)\b")  # of a docstring: it is no sentence
VERB = r"(?:is|are|was|were|has|have|can|could|may|must|would|will|waits|looks|imports|runs|takes|needs|lets|begins|comes)\b"
BANNED = {
    "name the things: files that, tests that": re.compile(r"\bthose (?:that|who|which)\b", re.IGNORECASE),
    "a client that, a caller that, anybody who": re.compile(r"\bwhoever\b|\bwho only\b", re.IGNORECASE),
    "because": re.compile(rf"[,;] for (?:(?!(?:that|which|what|who|whose|where) )[\w`']+ ){{1,4}}{VERB}"),
    "because, too": re.compile(r"[,;] for (?:it|they|there|nothing|nobody) \w"),
    "tests kill a mutant": re.compile(
        r"\b(?:tests?|none|suite|mutant|report|counts as|would|could|is|was|or|not) (?:\w+n't )?noticed?\b",
        re.IGNORECASE,
    ),
    "giving varying results": re.compile(r"\bnow this, now that\b"),
    "even if detached": re.compile(r"\bhowever it strayed\b"),
    "were involved in": re.compile(r"\bha[ds] (?:a|no) part in the request\b"),
}


@functools.cache
def texts_of_code() -> tuple[tuple[str, str], ...]:
    """Each docstring, message and comment, in one line, with its place."""
    return tuple((place, " ".join(text.split())) for file in OURS for place, text in _texts(file))


def _texts(file: Path) -> Iterator[tuple[str, str]]:
    source, name = file.read_text("utf-8"), file.relative_to(ROOT)
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.count(" ") > 1:
            yield f"{name}:{node.lineno}", node.value
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield f"{name}:{token.start[0]}", token.string


def texts_of_pages() -> Iterator[tuple[str, str]]:
    """Each paragraph of the pages, in one line, with `x` for code."""
    for page in PAGES:
        prose = re.sub(r"^```.*?^```$", "", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
        for paragraph in re.sub(r"`[^`\n]*`", "`x`", prose).split("\n\n"):
            yield page.relative_to(ROOT).as_posix(), " ".join(paragraph.split())


def found(texts: Iterator[tuple[str, str]] | tuple[tuple[str, str], ...], pattern: re.Pattern[str]) -> list[str]:
    return [
        f"{place}: … {text[max(0, hit.start() - 40) : hit.end() + 40]} …"
        for place, text in texts
        for hit in pattern.finditer(text)
    ]


@pytest.mark.parametrize("instead", BANNED)
def test_no_page_has_these_words(instead: str) -> None:
    assert found(texts_of_pages(), BANNED[instead]) == [], f"say instead: {instead}"


@pytest.mark.parametrize("instead", BANNED)
def test_no_message_comment_or_docstring_has_these_words(instead: str) -> None:
    assert found(texts_of_code(), BANNED[instead]) == [], f"say instead: {instead}"


def test_a_docstring_begins_with_a_verb_or_with_what_it_names() -> None:
    documented = (
        (f"{file.relative_to(ROOT)}:{getattr(node, 'lineno', 1)}", ast.get_docstring(node) or "")
        for file in OURS
        for node in ast.walk(ast.parse(file.read_text("utf-8")))
        if isinstance(node, ast.Module | ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
    )
    assert [place for place, text in documented if NO_BEGINNING.match(text)] == []


@pytest.mark.parametrize(
    ("instead", "sentence"),
    [
        ("name the things: files that, tests that", "Those that are left."),
        ("a client that, a caller that, anybody who", "Whoever waits sees the end."),
        ("because", "Paths are strings, for a refresh looks at each."),
        ("because, too", "It is refused, for it leads out of the copy."),
        ("tests kill a mutant", "A mutant that no test would notice."),
    ],
)
def test_the_patterns_find_what_they_are_for(instead: str, sentence: str) -> None:
    assert found((("here", sentence),), BANNED[instead])


def test_what_is_no_reason_is_permitted() -> None:
    fine = (
        "It waits for it. A picture is taken, for the log, for a tool that has none, and for each mutant of the file."
    )
    assert [instead for instead, pattern in BANNED.items() if pattern.search(fine)] == []
