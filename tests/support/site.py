"""Build the site from the pages: `make docs`. It needs no network, and `--strict` fails for a link that leads nowhere.

zensical makes it. MkDocs 1.x has had no release since August 2024, and Material for MkDocs no fixes since November 2026;
zensical is by the authors of the latter, is one wheel with its theme, and checks anchors, too. No plug-in is used: the pages that a
forge and the wheel show are staged in `build/site`, with what is made from the code (`support.generated_pages`) and absolute links.
"""

import json
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from forge_links import FORGE, absolute  # noqa: E402
from support.generated_pages import filled  # noqa: E402

DOCS, STAGE, SITE = ROOT / "docs", ROOT / "build/site", ROOT / "site"
KINDS = {"Tutorials": "tutorial", "How-to guides": "how-to", "Reference": "reference", "Explanation": "explanation"}


def title(page: Path) -> str:
    """The first heading of a page."""
    return page.read_text("utf-8").partition("\n")[0].removeprefix("# ")


def navigation() -> list[object]:
    """The four kinds of pages; the tools' pages stand together."""
    nav: list[object] = [{"Home": "index.md"}]
    for name, folder in KINDS.items():
        pages = sorted((DOCS / folder).glob("*.md"), key=lambda page: title(page).lower())
        entries: list[object] = [{title(page): page.relative_to(DOCS).as_posix()} for page in pages]
        if tools := sorted((DOCS / folder).glob("*/*.md")):
            entries.append({"Tools": [{title(page): page.relative_to(DOCS).as_posix()} for page in tools]})
        nav.append({name: entries})
    return nav


def staged() -> Path:
    """The pages with links out of `docs/` made absolute, beside the configuration, which is JSON in TOML's clothes."""
    shutil.rmtree(STAGE, ignore_errors=True)
    shutil.copytree(DOCS, STAGE / "docs")
    for page in (STAGE / "docs").rglob("*.md"):
        folder = page.parent.relative_to(STAGE).as_posix()
        text = filled(page.read_text("utf-8"))
        page.write_text(absolute(text, folder, lambda path: path.startswith("docs/")), "utf-8")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    settings = {
        "site_name": project["name"],
        "site_description": project["description"],
        "docs_dir": "docs",
        "use_directory_urls": False,  # the pages can be read from the disk, too
        "repo_url": FORGE,
    }
    lines = [f"{key} = {json.dumps(value)}" for key, value in settings.items() if value != ""]
    nav = json.dumps(navigation(), ensure_ascii=False).replace('": ', '" = ')
    theme = '[project.theme]\nvariant = "modern"\nfont = false\nfeatures = ["content.code.copy", "navigation.tabs"]\n'
    config = STAGE / "zensical.toml"
    config.write_text("\n".join(["[project]", *lines, f"nav = {nav}", theme]), "utf-8")
    return config


if __name__ == "__main__":
    done = subprocess.run([sys.executable, "-m", "zensical", "build", "--strict", "--clean", "-f", str(staged())])
    if done.returncode:
        sys.exit("the site is not built: see above; a line is that of the page in build/site/docs")
    shutil.rmtree(SITE, ignore_errors=True)
    shutil.move(STAGE / "site", SITE)
