"""Completion, as shells that are installed here do it."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.shell_completion import BashComplete
from support.command_line import console_script

from msp_bridge.cli import COMMANDS, msp_bridge

DRIVE = """
source <(msp-bridge completion bash)
function=$(complete -p msp-bridge | sed 's/.*-F \\([^ ]*\\).*/\\1/')
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
$function msp-bridge
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """In which `msp-bridge` is ours."""
    script = console_script(tmp_path / "bin" / "msp-bridge")
    return {**os.environ, "PATH": f"{script.parent}:{os.environ['PATH']}", "HOME": str(tmp_path)}


def run(environment: dict[str, str], *argv: str) -> list[str]:
    done = subprocess.run(argv, env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout.split("\n")[:-1]


def in_bash(environment: dict[str, str], *words: str) -> list[str]:
    """What bash offers for the last word."""
    return run(environment, "bash", "--norc", "-c", DRIVE, "bash", "msp-bridge", *words)


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("d", ["plain,diff", "plain,discover", "plain,doctor", "plain,docs"]),
        ("editors vs", ["plain,vscode-lsp", "plain,vscode"]),
        ("serve ", ["plain,stdio", "plain,socket", "plain,websocket", "plain,mcp", "plain,mtp"]),
        ("run --log-level w", ["plain,warning"]),
        ("run --thr", ["plain,--threshold"]),
        ("serve stdio --adapter cosm", ["plain,cosmic-ray"]),
        ("discover --adapter mut", ["plain,mutmut"]),
        *((f"{words} ", ["file,"]) for words in ("run", "run src/a.py", "discover", "run --config", "doctor --python")),
    ],
)
def test_what_may_come_next_is_offered(words: str, offered: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COMP_WORDS", f"msp-bridge {words}")
    monkeypatch.setenv("COMP_CWORD", str(1 + words.count(" ")))
    completion = BashComplete(msp_bridge, {}, "msp-bridge", "_MSP_BRIDGE_COMPLETE").complete()
    assert completion.splitlines() == offered


def test_bash_completes(environment: dict[str, str]) -> None:
    assert in_bash(environment, "serve", "stdio", "--dialect", "l") == ["lsp"]
    assert in_bash(environment, "completion", "") == ["bash", "zsh", "fish"]


def test_commands_are_offered_without_importing_them(environment: dict[str, str]) -> None:
    assert in_bash(environment, "") == list(COMMANDS)
    words = {"_MSP_BRIDGE_COMPLETE": "bash_complete", "COMP_WORDS": "msp-bridge ", "COMP_CWORD": "1"}
    code = "import sys; sys.argv[0] = 'msp-bridge'; from msp_bridge.cli import main\ntry: main()\nfinally: print(*sys.modules, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code], env={**environment, **words}, capture_output=True, text=True)
    assert done.stdout.split()[0] == "plain,serve"
    ours = {name for name in done.stderr.split() if name.startswith("msp_bridge.")}
    assert ours == {"msp_bridge.cli", "msp_bridge.errors"}


@pytest.mark.skipif(shutil.which("fish") is None, reason="fish is not installed")
def test_fish_completes(environment: dict[str, str]) -> None:
    offered = run(environment, "fish", "-c", 'msp-bridge completion fish | source; complete -C "msp-bridge editors vs"')
    assert offered == ["vscode", "vscode-lsp"]


@pytest.mark.skipif(shutil.which("zsh") is None, reason="zsh is not installed")
def test_zsh_takes_the_script(environment: dict[str, str]) -> None:
    code = "autoload -U compinit; compinit -u; source <(msp-bridge completion zsh); echo ${_comps[msp-bridge]}"
    assert run(environment, "zsh", "-f", "-c", code) == ["_msp_bridge_completion"]
