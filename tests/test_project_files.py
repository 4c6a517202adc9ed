"""What a reader finds around the code keeps its form: changelog, README, glossary, links, graph, source distribution."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import click
import pytest
from support import generated_pages
from support.release import RELEASE, UNRELEASED

from forge_links import absolute, extension_manifest, extension_readme
from msp_bridge import __version__
from msp_bridge.adapter import Status, __all__
from msp_bridge.cli import COMMANDS, Exit, msp_bridge
from msp_bridge.workspace.configuration import Configuration
from msp_bridge.workspace.detection import detect_projects

ROOT = Path(__file__).parents[1]
KINDS = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}


def page(name: str) -> str:
    return (ROOT / name).read_text("utf-8")


def test_the_changelog_has_the_form_of_keep_a_changelog() -> None:
    text = page("CHANGELOG.md")
    versions = [version for version, _ in RELEASE.findall(text)]
    assert versions[:2] == ["Unreleased", __version__] or versions[0] == __version__
    assert len(versions) == len(re.findall(r"^## ", text, re.MULTILINE)) == len(set(versions))
    for section in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
        kinds = re.findall(r"^### (.+)$", section, re.MULTILINE)
        assert kinds
        assert set(kinds) <= KINDS
        assert len(kinds) == len(set(kinds))
        assert not re.search(r"^- ", section.partition("\n### ")[0], re.MULTILINE), "a line belongs below a kind"


def test_a_release_leaves_nothing_unreleased() -> None:
    assert UNRELEASED.search("# Changelog\n\n## [Unreleased]\n\n### Fixed\n\n- This.\n\n## [1.0.0] - 2030-01-01\n")
    assert not UNRELEASED.search("# Changelog\n\n## [Unreleased]\n\n## [1.0.0] - 2030-01-01\n\n### Fixed\n\n- This.\n")


def test_the_readme_is_short_and_names_no_place() -> None:
    assert len(page("README.md").splitlines()) <= 120
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / ".github").rglob("*")]
    assert [file for file in pages if file.is_file() and "OWNER" in file.read_text("utf-8")] == []


def test_the_glossary_has_each_status_and_how_it_counts() -> None:
    rows = re.findall(r"^\| `(\w+)` \| .+ \| (\w+) \|$", page("docs/reference/glossary.md"), re.MULTILINE)
    counted = {
        status.value: "detected" if status.detected else "undetected" if status.undetected else "neither"
        for status in Status
    }
    assert dict(rows) == counted | {"Pending": "neither"}


def test_every_exit_code_is_described() -> None:
    codes = re.findall(r"^\| (\d+) \|", page("docs/reference/exit-codes.md"), re.MULTILINE)
    assert [int(code) for code in codes] == sorted(Exit)


def commands(name: str, command: click.Command) -> Iterator[tuple[str, click.Command]]:
    """The command, and all below it, by their whole names."""
    yield name, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for sub in command.list_commands(context):
            found = command.get_command(context, sub)
            assert found is not None
            yield from commands(f"{name} {sub}", found)


def test_the_page_of_the_command_line_has_every_command_and_option() -> None:
    text = generated_pages.command_line()
    found = [one for one in commands("msp-bridge", msp_bridge) if one[0] != "msp-bridge"]
    assert len(found) >= len(COMMANDS)
    for name, command in found:
        section = re.split(r"^#+ ", text.partition(f"# {name}\n")[2], maxsplit=1, flags=re.MULTILINE)[0]
        assert section, name
        options = [
            option for one in command.params if isinstance(one, click.Option) and not one.hidden for option in one.opts
        ]
        assert [option for option in options if option not in section] == [], name


def test_the_page_of_the_adapter_api_has_every_public_name() -> None:
    text = generated_pages.adapter_api()
    assert [name for name in __all__ if f"### {name}\n" not in text] == []
    assert "never written to" in text  # the comment of an attribute
    assert "Those" not in re.findall(r"^\w+", text, re.MULTILINE)


def test_every_mark_of_a_page_is_filled() -> None:
    marks = [
        mark for file in (ROOT / "docs").rglob("*.md") for mark in generated_pages.MARK.findall(file.read_text("utf-8"))
    ]
    assert sorted(marks) == sorted(generated_pages.MADE)


FORGE = "https://f.invalid/o/r"
WITH_FORGE = f"See [the page]({FORGE}/blob/HEAD/docs/a.md#part), ![p]({FORGE}/raw/HEAD/docs/i.png) and [c](#d)."


@pytest.mark.parametrize(("forge", "expected"), [("", "See the page,  and [c](#d)."), (FORGE, WITH_FORGE)])
def test_links_are_absolute_where_a_forge_is_known_and_texts_elsewhere(forge: str, expected: str) -> None:
    text = "See [the page](../docs/a.md#part), ![p](../docs/i.png) and [c](#d)."
    assert absolute(text, "how", lambda path: False, forge) == expected


def test_a_link_that_stays_is_left_as_it_is() -> None:
    assert absolute("[a](b.md#c)", "docs/how-to", lambda path: path == "docs/how-to/b.md", "") == "[a](b.md#c)"


def test_the_extension_has_what_a_marketplace_asks_for() -> None:
    manifest = extension_manifest(FORGE)
    assert "private" not in manifest
    assert (manifest["publisher"], manifest["repository"]["url"]) == ("msp-bridge", f"{FORGE}.git")
    assert {"Testing"} <= set(manifest["categories"])
    assert len(manifest["keywords"]) <= 30
    icon = (ROOT / "editors/vscode" / manifest["icon"]).read_bytes()
    assert icon[:8] == b"\x89PNG\r\n\x1a\n"
    assert [int.from_bytes(icon[at : at + 4], "big") for at in (16, 20)] == [256, 256], "width and height"
    assert manifest["icon"] in manifest["files"]
    assert "repository" not in extension_manifest("")


def test_the_extension_shows_pictures_that_are_there() -> None:
    pictures = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", extension_readme(FORGE))
    files = [picture.removeprefix(f"{FORGE}/raw/HEAD/") for picture in pictures]
    assert files == ["docs/images/vscode-lsp.png", "docs/images/vscode-monorepo.png"]
    assert all((ROOT / file).is_file() for file in files)
    assert "](" not in extension_readme(""), "without a forge nothing leads anywhere"


def test_the_projects_under_test_are_no_projects_of_this_repository() -> None:
    found = detect_projects(ROOT, Configuration())
    assert [
        (folder.path, [tool.adapter.name for tool in folder.tools]) for folder in found.folders if folder.tools
    ] == [("", ["mutmut"])]


PACKAGED = {
    "msp_bridge",
    "adapters",
    "MANIFEST.in",
    "README.md",
    "LICENSE",
    "pyproject.toml",
    "setup.py",
}  # by pyproject.toml


def test_every_file_of_the_repository_is_in_it() -> None:
    if not (ROOT / ".git").exists():
        pytest.skip("it is no repository")
    done = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
    lines = [line.split() for line in (ROOT / "MANIFEST.in").read_text().splitlines()]
    named = PACKAGED | {name for command, *names in lines if command in ("graft", "include") for name in names}
    files = [file for file in done.stdout.split("\0") if file]
    assert [file for file in files if file not in named and file.split("/")[0] not in named] == []


DRAW = "from benchmarks.history import HISTORY, picture; import json; print(picture(json.loads(HISTORY.read_text())), end='')"


def drawn() -> str:
    done = subprocess.run(
        [sys.executable, "-c", DRAW], cwd=ROOT, capture_output=True, text=True, check=True, timeout=60
    )
    return done.stdout


def test_the_picture_is_what_the_history_says() -> None:
    """`python -m benchmarks.history` draws it anew."""
    assert (ROOT / "docs" / "images" / "performance.svg").read_text("utf-8") == drawn()


def test_each_figure_of_a_version_has_a_point() -> None:
    history = json.loads((ROOT / "benchmarks" / "history.json").read_text("utf-8"))
    figures = [name for version in history["versions"] for name in version["figures"]]
    assert set(figures) == history["figures"].keys()
    points = ElementTree.fromstring(drawn()).findall("{http://www.w3.org/2000/svg}circle")
    assert len(points) == len(figures)
