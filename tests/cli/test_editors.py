"""What `msp-bridge editors` prints and writes."""

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from support.command_line import console_script, in_process

from msp_bridge.cli.editor_files import joined_patterns
from msp_bridge.cli.editors import EDITORS, TEXTS

TESTS = Path(__file__).parents[1]
EXTENSION = TESTS.parent / "editors" / "vscode"
MANIFEST = EXTENSION / "package.json"
EDITOR_FILES = TESTS.parent / "msp_bridge" / "editors"
SCRIPT = {
    "files": "*.py",
    "mutations": [
        {"mutator": "plus", "find": "+", "replacement": "-"},
        {"mutator": "digit", "find": "1", "replacement": "2", "status": "Survived"},
    ],
}
PREFIX = "strykerMutator"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    (root / ".git").mkdir(parents=True)
    (root / "a.py").write_text('x = "€𝄞", 1\nz = y + 1\n')
    (root / "scripted.json").write_text(json.dumps(SCRIPT))
    return root


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    return console_script(tmp_path / "bin" / "msp-bridge")


def editors(project: Path, script: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """With the scripted adapter: those of the tools around this one would have their say, too."""
    home = {"HOME": str(project.parent)}
    return in_process(project, project, "editors", *arguments, "--adapter", "scripted", program=script, **home)


def settings(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    assert done.returncode == 0, done.stderr
    return {name.removeprefix(f"{PREFIX}."): value for name, value in json.loads(done.stdout).items()}


def test_the_editors_are_listed(project: Path, elsewhere: Path) -> None:
    done = editors(project, elsewhere)
    assert [line.split()[0] for line in done.stdout.splitlines()[1:] if not line.startswith("    ")] == [
        "vscode-lsp",
        "vscode",
        *TEXTS,
    ]


def test_settings_name_a_bridge_in_the_project_as_everybody_has_it(project: Path) -> None:
    script = console_script(project / ".venv/bin/msp-bridge")
    (project / ".venv/pyvenv.cfg").touch()
    (project / ".venv/other.pyi").touch()  # it's no source of the project's
    assert settings(editors(project, script, "vscode"))["server.path"] == ".venv/bin/msp-bridge"


def test_settings_watch_what_the_tools_can_mutate_here(project: Path, elsewhere: Path) -> None:
    (project / "scripted.json").write_text(json.dumps(SCRIPT | {"files": "*.[pt]s*"}))
    (project / "node_modules").mkdir()
    for name in ("a.ts", "b.tsx", "c.ps1", "d.txt", "node_modules/e.tst"):
        (project / name).touch()
    assert settings(editors(project, elsewhere, "vscode"))["watchPattern"] == "**/*.{js,jsx,ps1,ts,tsx}"


def test_settings_watch_nothing_for_a_folder_whose_configuration_is_broken(project: Path, elsewhere: Path) -> None:
    (project / "backend").mkdir()
    (project / "backend/scripted.json").write_text(json.dumps(SCRIPT))
    (project / "backend/pyproject.toml").write_text("[tool\n")
    done = editors(project, elsewhere, "vscode")
    assert settings(done)["watchPattern"] == "**/*.py"
    assert f"backend/ is left out of watchPattern: can't read {project}/backend/pyproject.toml: " in done.stderr


def test_settings_hand_on_the_options(project: Path, elsewhere: Path) -> None:
    (project / "other.json").write_text(json.dumps(SCRIPT))
    found = settings(editors(project, elsewhere, "vscode", "--config", "other.json", "--jobs", "2"))
    assert found["server.args"] == ["serve", "stdio", "--adapter", "scripted", "--jobs", "2"]
    assert found["server.configFile"] == "other.json"


def test_settings_of_our_extension_name_the_bridge_and_hand_on_the_options(project: Path, elsewhere: Path) -> None:
    done = editors(project, elsewhere, "vscode-lsp", "--jobs", "2")
    assert json.loads(done.stdout) == {
        "msp-bridge.path": str(elsewhere),
        "msp-bridge.args": ["--adapter", "scripted", "--jobs", "2"],
    }
    assert "code --install-extension msp-bridge.vsix" in done.stderr
    declared = json.loads(MANIFEST.read_text())["contributes"]["configuration"]["properties"]
    assert json.loads(done.stdout).keys() <= declared.keys()
    written = editors(project, elsewhere, "vscode-lsp", "--jobs", "2", "--write")
    assert f"written: {project / '.vscode/settings.json'}" in written.stdout


def test_without_a_tool_there_are_no_settings(project: Path, elsewhere: Path) -> None:
    (project / "scripted.json").unlink()
    done = editors(project, elsewhere, "vscode")
    assert (done.returncode, done.stdout) == (2, "")
    assert "`msp-bridge doctor` says what" in done.stderr


def test_what_no_tool_can_mutate_is_not_watched(project: Path, elsewhere: Path) -> None:
    (project / "a.py").unlink()
    assert "watchPattern" not in settings(editors(project, elsewhere, "vscode"))


def test_write_makes_the_file(project: Path, elsewhere: Path) -> None:
    printed = editors(project, elsewhere, "vscode").stdout
    done = editors(project, elsewhere, "vscode", "--write")
    assert done.returncode == 0, done.stderr
    assert (project / ".vscode/settings.json").read_text() == printed
    assert "nothing to change" in editors(project, elsewhere, "vscode", "--write").stdout


def test_write_keeps_what_is_there_and_names_what_it_replaces(project: Path, elsewhere: Path) -> None:
    file = project / ".vscode/settings.json"
    file.parent.mkdir()
    file.write_text(f'// ours\n{{\n    "a": [1, 2,], // why\n    "{PREFIX}.watchPattern": "**/*.js",\n}}\n')
    done = editors(project, elsewhere, "vscode", "--write")
    assert f'{PREFIX}.watchPattern: "**/*.{{js,py}}", was "**/*.js"' in done.stdout
    assert file.read_text() == (
        f'// ours\n{{\n    "a": [1, 2,], // why\n    "{PREFIX}.watchPattern": "**/*.{{js,py}}",\n'
        f'    "{PREFIX}.server.path": "{elsewhere}",\n    "{PREFIX}.server.args": ["serve", "stdio", "--adapter", "scripted"],\n}}\n'
    )


def test_write_warns_of_a_setting_that_keeps_everything_from_being_tested(project: Path, elsewhere: Path) -> None:
    file = project / ".vscode/settings.json"
    file.parent.mkdir()
    file.write_text(f'{{"{PREFIX}.server.workingDirectory": "backend"}}')
    done = editors(project, elsewhere, "vscode", "--write")
    assert done.returncode == 0
    assert f"{PREFIX}.server.workingDirectory is set, and with it the extension finds nothing to test" in done.stderr
    assert '"backend"' in file.read_text()


@pytest.mark.parametrize("text", [b'{"a": 1', b"[]", b"\xff", b'{"a": 1} {}'])
def test_write_leaves_what_it_does_not_understand(project: Path, elsewhere: Path, text: bytes) -> None:
    file = project / ".vscode/settings.json"
    file.parent.mkdir()
    file.write_bytes(text)
    done = editors(project, elsewhere, "vscode", "--write")
    assert done.returncode == 2
    assert "was left as it is" in done.stderr
    assert "`msp-bridge editors vscode` prints" in done.stderr
    assert file.read_bytes() == text


def test_settings_that_can_not_be_read_or_made_are_named(project: Path, elsewhere: Path) -> None:
    folder = project / ".vscode"
    folder.write_text("a file in its place")
    unmade = editors(project, elsewhere, "vscode-lsp", "--write")
    folder.unlink()
    (folder / "settings.json").mkdir(parents=True)
    unread = editors(project, elsewhere, "vscode-lsp", "--write")
    assert (unmade.returncode, unread.returncode) == (2, 2)
    assert f"can't write {folder / 'settings.json'}" in unmade.stderr
    assert f"{folder / 'settings.json'} was left as it is" in unread.stderr


def test_write_needs_an_editor(project: Path, elsewhere: Path) -> None:
    done = editors(project, elsewhere, "--write")
    assert (done.returncode, done.stdout) == (2, "")
    assert "--write needs an editor: vscode-lsp, vscode, neovim" in done.stderr


@pytest.mark.parametrize(
    ("old", "new", "joined"),
    [
        ("**/*.js", "**/*.py", "**/*.{js,py}"),
        ("**/*.{ts,js}", "**/*.{js,py}", "**/*.{ts,js,py}"),
        ("**/*.{js,py}", "**/*.py", "**/*.{js,py}"),
        ("src/**/*.js", "**/*.py", "{src/**/*.js,**/*.py}"),
        ("{src/**/*.js,**/*.py}", "**/*.py", "{src/**/*.js,**/*.py}"),
        ("", "**/*.py", "**/*.py"),
    ],
)
def test_what_was_watched_is_watched_still(old: str, new: str, joined: str) -> None:
    assert joined_patterns(old, new) == joined


PLACES = {
    "neovim-lsp": ".config/nvim/plugin/msp-bridge-lsp.lua",
    "helix-lsp": ".config/helix/languages.toml",
    "emacs-lsp": ".emacs.d/msp-bridge-lsp.el",
    "zed-lsp": ".config/zed/settings.json",
    "sublime-lsp": ".config/sublime-text/Packages/User/LSP.sublime-settings",
    "kate-lsp": ".config/kate/lspclient/settings.json",
    "jetbrains-lsp": ".config/msp-bridge/jetbrains/template.json",
    "eclipse-lsp": ".config/msp-bridge/eclipse/msp-bridge.launch",
    "neovim": ".config/nvim/plugin/msp-bridge.lua",
    "vim": ".vim/compiler/mutants.vim",
    "emacs": ".emacs.d/msp-bridge.el",
    "helix": ".config/helix/config.toml",
}


@pytest.fixture
def default_places(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.setattr(sys, "platform", "linux")


def test_every_editor_that_is_listed_can_be_written() -> None:
    assert [name for name in EDITORS if not name.startswith("vscode")] == list(PLACES)


@pytest.mark.usefixtures("default_places")
@pytest.mark.parametrize("editor", PLACES)
def test_write_puts_a_plugin_where_its_editor_looks(project: Path, elsewhere: Path, editor: str) -> None:
    file = project.parent / PLACES[editor]
    done = editors(project, elsewhere, editor, "--write")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[0] == f"written: {file}"
    assert file.read_text() == editors(project, elsewhere, editor).stdout
    again = editors(project, elsewhere, editor, "--write").stdout.splitlines()
    assert all(line.startswith("nothing to change: ") for line in again)
    if editor.startswith("emacs"):
        assert (file.parent / "init.el").read_text() == f'(load "{file.with_suffix("")}")\n'
    if file.suffix not in (".toml", ".json", ".sublime-settings"):  # these are the user's own
        file.write_text("mine\n")
        refused = editors(project, elsewhere, editor, "--write")
        assert (refused.returncode, file.read_text()) == (2, "mine\n")
        assert "was left as it is: the bridge didn't write it: move it, then try again" in refused.stderr


@pytest.mark.parametrize(
    ("before", "written"),
    [
        ('theme = "x" # mine\r\n', True),
        ("[keys.normal]\n    x = [ 'y' ]", True),
        ("[keys.normal.space.m]\nf = 'other'\n", False),
        ("keys = { normal = { space = {} } }\n", False),
        ("what = is this\n", False),
    ],
)
def test_write_adds_to_the_configuration_of_helix_or_leaves_it(
    project: Path, elsewhere: Path, before: str, written: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    file = project.parent / PLACES["helix"]
    file.parent.mkdir(parents=True)
    file.write_bytes(before.encode())
    done = editors(project, elsewhere, "helix", "--write")
    after = file.read_bytes().decode()
    if written:
        assert done.returncode == 0, done.stderr
        assert after.startswith(before)
        found = tomllib.loads(after)
        assert {"f", "l", "p"} <= found["keys"]["normal"]["space"]["m"].keys()
        assert tomllib.loads(before).keys() <= found.keys()
    else:
        assert (done.returncode, after) == (2, before)
        assert "was left as it is, for" in done.stderr
        assert "`msp-bridge editors helix` prints" in done.stderr


@pytest.mark.usefixtures("default_places")
def test_emacs_loads_both_once(project: Path, elsewhere: Path) -> None:
    for editor in ("emacs-lsp", "emacs", "emacs-lsp", "emacs"):
        assert editors(project, elsewhere, editor, "--write").returncode == 0
    directory = project.parent / ".emacs.d"
    loads = [f'(load "{directory / name}")' for name in ("msp-bridge-lsp", "msp-bridge")]
    assert [line for line in (directory / "init.el").read_text().splitlines() if line] == loads


ZED = """{
\t// mine
\t"languages": {
\t\t"Python": { "language_servers": ["ruff"] } // why
\t},
\t"lsp": {}
}
"""
ZED_WITH_BRIDGE = """{
\t// mine
\t"languages": {
\t\t"Python": { "language_servers": ["ruff", "pylsp", "..."] } // why
\t},
\t"lsp": {
\t\t"pylsp": {
\t\t\t"binary": {
\t\t\t\t"path": "BRIDGE",
\t\t\t\t"arguments": [ARGUMENTS]
\t\t\t}
\t\t}
\t}
}
"""
SUBLIME = """{
    "clients": {
        "msp-bridge": {
            "command": ["/old/msp-bridge"], "enabled": false, "selector": "source.rust"
        },
    },
}
"""


@pytest.mark.usefixtures("default_places")
@pytest.mark.parametrize(
    ("editor", "before", "after"),
    [
        ("zed-lsp", ZED, ZED_WITH_BRIDGE),
        ("sublime-lsp", SUBLIME, SUBLIME.replace('"/old/msp-bridge"', '"BRIDGE", ARGUMENTS')),
    ],
)
def test_write_adds_a_language_server_to_settings(
    project: Path, elsewhere: Path, editor: str, before: str, after: str
) -> None:
    file = project.parent / PLACES[editor]
    file.parent.mkdir(parents=True)
    file.write_bytes(before.replace("\n", "\r\n").encode())
    arguments = '"serve", "stdio", "--adapter", "scripted", "--dialect", "lsp"'
    expected = after.replace("\n", "\r\n").replace("BRIDGE", str(elsewhere)).replace("ARGUMENTS", arguments)
    for word in ("written", "nothing to change"):
        done = editors(project, elsewhere, editor, "--write")
        assert (done.stdout, done.stderr) == (f"{word}: {file}\n", "")
        assert file.read_bytes().decode() == expected


@pytest.mark.usefixtures("default_places")
@pytest.mark.parametrize(
    ("editor", "before", "reason"),
    [
        ("zed-lsp", '{"lsp": {"pylsp": {"binary": {"path": "/usr/bin/pylsp"}}}}', "starts another program there"),
        ("zed-lsp", '{"lsp": [1]}', "`lsp` is no object there"),
        ("zed-lsp", '{"lsp": ', "it can't be read"),
        ("kate-lsp", '{"servers": {"python": {"command": ["pylsp"]}}}', "starts another program there"),
        ("sublime-lsp", "clients", "it can't be read"),
        ("helix-lsp", '[[language]]\nname = "python"\nlanguage-servers = ["ruff"]\n', "it already says something else"),
        ("helix-lsp", "language = python", "Invalid value"),
    ],
)
def test_write_takes_no_servers_place(project: Path, elsewhere: Path, editor: str, before: str, reason: str) -> None:
    file = project.parent / PLACES[editor]
    file.parent.mkdir(parents=True)
    file.write_text(before)
    done = editors(project, elsewhere, editor, "--write")
    assert (done.returncode, file.read_text()) == (2, before)
    assert f"{file} was left as it is, for " in done.stderr
    assert reason in done.stderr
    assert f"`msp-bridge editors {editor}` prints what to put into it" in done.stderr


@pytest.mark.usefixtures("default_places")
def test_write_adds_to_the_languages_of_helix(project: Path, elsewhere: Path) -> None:
    file = project.parent / PLACES["helix-lsp"]
    file.parent.mkdir(parents=True)
    file.write_text('[[language]]\nname = "rust" # mine\n')
    assert editors(project, elsewhere, "helix-lsp", "--write").stdout == f"written: {file}\n"
    assert [language["name"] for language in tomllib.loads(file.read_text())["language"]] == ["rust", "python"]
    assert editors(project, elsewhere, "helix-lsp", "--write").stdout == f"nothing to change: {file}\n"


@pytest.mark.parametrize("editor", list(TEXTS))
def test_what_is_printed_names_this_bridge(project: Path, elsewhere: Path, editor: str) -> None:
    done = editors(project, elsewhere, editor)
    assert done.returncode == 0, done.stderr
    assert str(elsewhere) in done.stdout
    assert not re.search(r'"msp-bridge",? "serve"|:sh msp-bridge|makeprg=msp-bridge', done.stdout)


def test_what_is_printed_is_installed_with_the_package() -> None:
    tables = tomllib.loads((TESTS.parent / "pyproject.toml").read_text())["tool"]["setuptools"]
    package = TESTS.parent / "msp_bridge"
    installed = {path for pattern in tables["package-data"]["msp_bridge"] for path in package.glob(pattern)}
    assert {path for path in (package / "editors").iterdir() if path.is_file()} <= installed


@pytest.mark.parametrize(
    "file", [*(EDITOR_FILES / f"lsp-{name}" for name in ("neovim.lua", "emacs.el", "sublime.json", "jetbrains.json")), MANIFEST],
    ids=lambda file: file.name,
)  # fmt: skip
@pytest.mark.parametrize(
    "language", ["python", "javascript|js", "typescript|ts", "csharp|cs", "rust", "go", "java", "kotlin|Kotlin"]
)
def test_the_settings_for_several_languages_have_that_of_each_tool(file: Path, language: str) -> None:
    assert re.search(rf"\b({language})\b", file.read_text())
