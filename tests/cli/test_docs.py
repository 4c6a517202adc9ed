"""`msp-bridge docs`: the pages of the installed version in a terminal, and the topics that other texts name."""

import os
import pty
import re
import subprocess
from pathlib import Path

from support.command_line import command, environment, in_process
from support.environments import program

from msp_bridge.cli import COMMANDS
from msp_bridge.cli.docs import formatted, topics

ROOT = Path(__file__).parents[2]
SHIPPED = [
    path for name in ("msp_bridge", "adapters") for path in (ROOT / name).rglob("*") if path.suffix in (".py", ".toml")
]


def test_every_page_is_a_topic_with_its_title_in_a_line(tmp_path: Path) -> None:
    listed = in_process(tmp_path, tmp_path, "docs").stdout
    pages = [path for path in (ROOT / "docs").rglob("*.md") if path.name != "index.md"]
    assert sorted(topics().values()) == sorted(pages)  # also: no two have one name
    for page in pages:
        title = re.escape(page.read_text().splitlines()[0].removeprefix("# "))
        assert re.search(rf"^  {page.stem} +{title}$", listed, re.MULTILINE)
    assert re.findall(r"^(.+):$", listed, re.MULTILINE) == ["tutorial", "how-to", "reference", "tools", "explanation"]


def test_a_pipe_gets_the_page_as_it_is(tmp_path: Path) -> None:
    assert in_process(tmp_path, tmp_path, "docs", "mutmut").stdout == topics()["mutmut"].read_text()


def test_a_terminal_gets_the_page_formatted_in_a_pager(tmp_path: Path) -> None:
    paged = tmp_path / "paged"
    pager = program(tmp_path / "pager", f"cat > {paged}")
    main, side = pty.openpty()
    env = environment(tmp_path) | {"TERM": "xterm-256color", "PAGER": str(pager)}
    try:
        done = subprocess.run(command("docs", "exit-codes"), env=env, stdin=side, stdout=side, stderr=side, timeout=60)
    finally:
        os.close(main)
        os.close(side)
    assert done.returncode == 0
    assert "\x1b[" in paged.read_text()
    assert "# Exit codes" not in paged.read_text()
    assert "Exit codes" in paged.read_text()


def test_links_to_pages_become_topics() -> None:
    shown = formatted(
        "# A\n\n[the cluster](../how-to/cluster.md#tls), [here](#a), [MSP](https://x.invalid)\n", topics()
    )
    plain = re.sub(r"\x1b\[[\d;]*m", "", shown)
    assert "the cluster, here, MSP (https://x.invalid)" in plain
    assert "msp-bridge docs cluster" in plain


def test_texts_name_topics_that_there_are() -> None:
    named = {name for path in SHIPPED for name in re.findall(r"msp-bridge docs ([a-z][\w-]+)", path.read_text())}
    assert {"dialects", "editors"} <= named
    assert named | {topic for _, _, topic in COMMANDS.values()} <= set(topics())


def test_help_names_the_topic_that_says_more(tmp_path: Path) -> None:
    assert "msp-bridge docs" in in_process(tmp_path, tmp_path, "--help").stdout
