"""What README and the pages of everyday use say to type works, in the order of the page, on the example; the tool is scripted."""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.command_line import in_process, script
from support.dashboards import dashboard
from support.repositories import commit, git, isolate
from support.tutorials import prints
from test_documents import arguments

from msp_bridge.reports.dashboard import KEY_VARIABLE, URL_VARIABLE

ROOT = Path(__file__).parents[2]
PAGES = (
    "README.md",
    *(f"docs/how-to/{name}.md" for name in ("survivors", "slow-suites", "ci")),
    "docs/reference/reports.md",
)
CONSOLE = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
ELSEWHERE = {"browse", "watch", "serve", "init", "doctor"}  # commands that other tests type, with what they need
PRINTED = {"accept"}  # commands whose output on the page is whole, and the same with any tool
GATES = {"--threshold", "--no-new-survivors", "--fail-fast"}  # options by which a command may end with 1
MUTATIONS = [
    {"mutator": "operator: >= to >", "find": ">=", "replacement": ">", "status": "Survived"},
    {"mutator": "operator: * to /", "find": "* item", "replacement": "/ item", "status": "NoCoverage"},
    {"mutator": "number", "find": "100", "replacement": "101", "status": "Killed"},
]


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The example on a branch that has changed something, with reports of all shards, and a dashboard."""
    isolate(monkeypatch)
    monkeypatch.setenv("HOME", str(tmp_path))
    root = tmp_path / "shop"
    shutil.copytree(ROOT / "examples/shop/src", root / "src")
    script(root, mutations=MUTATIONS, surroundings={})
    (root / "msp-bridge.toml").write_text('adapter = "scripted"\n')
    git(root, "init", "--quiet", "--initial-branch=main")
    commit(root)
    git(root, "remote", "add", "origin", "https://github.com/shop/cart.git")
    git(root, "update-ref", "refs/remotes/origin/main", "main")
    git(root, "checkout", "--quiet", "-b", "branch")
    source = root / "src/shop/cart.py"
    source.write_text(source.read_text() + "# 100\n")
    for name in ("main.json", "branch.json"):
        typed(root, f"msp-bridge run --json {name}")
    for number in range(1, 5):
        typed(root, f"msp-bridge run --shard {number}/4 --json {number}.json")
        shutil.copy(root / f"{number}.json", root / f"mutants-{number}.json")
    for number in (1, 2):
        typed(root, f"msp-bridge run --shard {number}/2 --json shard-{number}.json")
    with dashboard() as server:
        monkeypatch.setenv(URL_VARIABLE, server.url)
        monkeypatch.setenv(KEY_VARIABLE, "key")
        yield root


def typed(root: Path, line: str) -> str:
    words = [str(Path(word).expanduser()) if word.startswith("~") else word for word in arguments(line)]
    globbed = [path.name for word in words if "*" in word for path in sorted(root.glob(word))]
    done = in_process(root, root, *(word for word in words if "*" not in word), *globbed)
    assert done.returncode in ({0, 1} if GATES & {*words} else {0}), f"{line}: {done.stdout}{done.stderr}"
    return done.stdout


@pytest.mark.parametrize("page", PAGES)
def test_each_command_of_the_page_works(page: str, shop: Path) -> None:
    run = 0
    for block in CONSOLE.findall((ROOT / page).read_text("utf-8")):
        for command, shown in re.findall(r"^\$ (msp-bridge .*)\n((?:(?!\$ ).+\n)*)", block, re.MULTILINE):
            words = arguments(command)
            if words[0] in ELSEWHERE or "--cluster" in words:
                continue
            output = typed(shop, command.replace(" ID ", " src/shop/cart.py:30:15 "))
            if shown and words[0] in PRINTED:
                assert prints(output, shown), f"{command} prints\n{output}"
            run += 1
    assert run >= 2
