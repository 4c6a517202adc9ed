"""What the tutorials say to type does what they show, with the real tools; their pictures show the same."""

import html
import re
from pathlib import Path

import pytest
from support.tutorials import PAGES, in_any_order, printed, prints, project, steps, without_blanks


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_each_command_prints_what_the_page_shows(page: Path, tmp_path: Path) -> None:
    root, run = project(tmp_path), 0
    for step in steps(page):
        if step.file:
            (root / step.file).write_text(step.text)
            continue
        for command, shown in step.commands():
            output = without_blanks(printed(root, command))
            assert prints(output, shown), f"{page.stem}: {command} prints\n{output}\n\nand not\n{shown}"
            run += 1
    assert run >= 4


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_each_picture_shows_what_the_page_shows(page: Path) -> None:
    pictures = [step for step in steps(page) if step.picture]
    assert len(pictures) == 2
    for step in pictures:
        svg = (page.parent / f"{step.picture}").read_text("utf-8")
        assert len(svg) < 100_000
        assert "http" not in svg.replace("http://www.w3.org/2000/svg", ""), "it is shown without the network"
        text = html.unescape("".join(re.findall(r"<text[^>]*>([^<]*)</text>", svg))).replace("\N{NO-BREAK SPACE}", "")
        text = in_any_order(text)
        for line in in_any_order(step.text).splitlines():
            assert line.replace(" ", "") in text.replace(" ", ""), f"{step.picture} lacks {line}"


def test_no_page_has_a_command_that_the_walk_leaves_out_by_mistake() -> None:
    left_out = [
        line
        for page in PAGES
        for line in re.findall(r"^\$ (.+)$", page.read_text("utf-8"), re.MULTILINE)
        if line not in {command for step in steps(page) for command, _ in step.commands()}
    ]
    assert left_out
    assert [line for line in left_out if not re.match(r"mkdir|python3 -m venv|\. |pip|npm i", line)] == []
