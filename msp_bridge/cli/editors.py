"""Settings for editors and shells: `msp-bridge editors`, with this machine's paths, and `msp-bridge completion`."""

import json
import os
import re
import sys
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import click
from attrs import evolve
from click.core import ParameterSource
from click.shell_completion import get_completion_class

from msp_bridge.cli.editor_files import joined_patterns, left_alone, merged, parse, replaced, write_plugin
from msp_bridge.cli.options import Choice, Options, bridge_options
from msp_bridge.errors import ConfigurationError
from msp_bridge.toolkit.install import own_install
from msp_bridge.workspace.projects import MountedAdapter, UnavailableAdapter
from msp_bridge.workspace.tree import files_below

COMPLETE_VARIABLE = "_MSP_BRIDGE_COMPLETE"  # click's, made of the command's name
VSCODE, VSCODE_LSP = "vscode", "vscode-lsp"
JETBRAINS, ECLIPSE = "jetbrains-lsp", "eclipse-lsp"
NEXT = {  # what is left to do in the editor itself
    VSCODE_LSP: "the extension is the file msp-bridge.vsix of a release: code --install-extension msp-bridge.vsix",
    JETBRAINS: "in New Language Server of LSP4IJ, import the directory of this template.json as a custom template",
    ECLIPSE: "import this .launch file as a launch configuration, and name it in the preference page Language Servers",
}
SCRIPTS = {"js", "ts", "jsx", "tsx"}  # the extension watches all of them where nothing is set: the next may be another
SETTINGS = Path(".vscode", "settings.json")
WATCH_PATTERN = "strykerMutator.watchPattern"
WORKING_DIRECTORY = "strykerMutator.server.workingDirectory"
EDITORS = {  # the file of `msp_bridge/editors` that is printed, "" where it is made here, and what it is
    VSCODE_LSP: ("", "Settings for our own extension: survivors underlined, and all mutants in the Testing view."),
    VSCODE: (
        "",
        'Settings for the extension "Stryker Mutation Testing", also in editors that take VS Code\'s extensions.',
    ),
    "neovim-lsp": (
        "lsp-neovim.lua",
        "Settings of Neovim's own LSP client: mutants that no test kills, as diagnostics.",
    ),
    "helix-lsp": ("lsp-helix.toml", "The same for Helix."),
    "emacs-lsp": ("lsp-emacs.el", "The same for Emacs, with Eglot."),
    "zed-lsp": ("lsp-zed.json", "The same for Zed."),
    "sublime-lsp": ("lsp-sublime.json", "The same for Sublime Text, with the package LSP."),
    "kate-lsp": ("lsp-kate.json", "The same for Kate."),
    JETBRAINS: (
        "lsp-jetbrains.json",
        "The same for IntelliJ IDEA, PyCharm and others of JetBrains', with the plugin LSP4IJ.",
    ),
    ECLIPSE: ("lsp-eclipse.launch", "The same for Eclipse, with LSP4E."),
    "neovim": ("neovim.lua", "A plugin: the same on demand, by commands."),
    "vim": ("vim.vim", "A compiler plugin: `:make` lists the mutants that no test kills."),
    "emacs": ("emacs.el", "Commands that list the mutants that no test kills in a buffer."),
    "helix": ("helix.toml", "Keys that run `msp-bridge run`: Helix has no plugins yet that could do more."),
}
TEXTS = {editor: file for editor, (file, _) in EDITORS.items() if file}
# A command apart from its arguments, in TOML and in JSON.
APART = re.compile(r'"msp-bridge"(,?\n *"?arg(?:ument)?s"?(?: =|:) \[)"serve", "stdio"')


@click.command("editors", context_settings={"show_default": True})
@click.argument("editor", type=Choice(list(EDITORS)), required=False, metavar="[EDITOR]")
@click.option("--write", is_flag=True, help="Put it where the editor looks for it, instead of printing it.")
@bridge_options
@click.pass_context
def command(context: click.Context, /, editor: str | None, write: bool, **values: Any) -> None:
    """Print what an editor needs to speak with the bridge: its settings, or a plugin.

    Without an editor, list all. What is printed names this very bridge, and contains the options given here:

    \b
        msp-bridge editors vscode-lsp --write
        msp-bridge editors neovim-lsp --write
        msp-bridge editors emacs > ~/.emacs.d/msp-bridge.el

    With --write it goes to the editor's own place: VS Code's settings of this project, the plugins or the configuration
    of others in your home directory. What is there already stays as it is, comments and layout too.

    \b
    Exit codes; stderr has the reason:
      0    done
      2    the command line is wrong, or a file can't be read or written
    """
    if write and editor is None:
        raise click.UsageError(f"--write needs an editor: {', '.join(EDITORS)}")
    options = Options.of_command(values, "warning")
    if context.get_parameter_source("log_level") is not ParameterSource.COMMANDLINE:
        options = evolve(options, log_level=None)  # this terminal's environment isn't the editor's
    if editor in NEXT:
        click.echo(f"msp-bridge: {NEXT[editor]}", err=True)
    if editor is None:
        formatter = context.make_formatter()
        with formatter.section("msp-bridge editors"):
            formatter.write_dl([(name, text) for name, (_, text) in EDITORS.items()])
        click.echo(formatter.getvalue(), nl=False)
    elif editor in (VSCODE, VSCODE_LSP):
        settings = vscode_settings(options) if editor == VSCODE else vscode_lsp_settings(options)
        if write:
            _write(editor, options.root / SETTINGS, settings)
        else:
            click.echo(merged("", settings), nl=False)
    else:
        text = plugin(TEXTS[editor], [str(executable()), "serve", "stdio", *_handed_on(options)])
        click.echo("\n".join(write_plugin(editor, text)) + "\n" if write else text, nl=False)


@click.command("completion")
@click.argument("shell", type=Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the script that makes a shell complete commands, options, adapters and paths.

    Each shell looks for it in a place of its own, zsh when ~/.zfunc is in fpath before compinit:

    \b
      cd ~/.local/share/bash-completion/completions
      msp-bridge completion bash > msp-bridge
    \b
      msp-bridge completion zsh > ~/.zfunc/_msp-bridge
    \b
      cd ~/.config/fish/completions
      msp-bridge completion fish > msp-bridge.fish

    bash must be 4.4 or newer.

    \b
    Exit codes; stderr has the reason:
      0    done
      2    there is no such shell
    """
    found = get_completion_class(shell)
    if found is None:
        raise ConfigurationError(f"this version of click has no completion for {shell}", own_install("click>=8.1"))
    click.echo(found(context.find_root().command, {}, "msp-bridge", COMPLETE_VARIABLE).source())


def vscode_settings(options: Options) -> dict[str, Any]:
    """The settings of this project, by their names. Raises ConfigurationError when no tool is set up in it."""
    settings: dict[str, Any] = {
        "strykerMutator.server.path": _from(options.root, executable()),
        "strykerMutator.server.args": ["serve", "stdio", *_handed_on(evolve(options, named=None))],
    }
    if options.named is not None:
        settings["strykerMutator.server.configFile"] = _from(options.root, Path(options.named))
    if endings := sorted(_endings(options)):
        either = endings[0] if len(endings) == 1 else f"{{{','.join(endings)}}}"
        settings[WATCH_PATTERN] = f"**/*.{either}"
    return settings


def vscode_lsp_settings(options: Options) -> dict[str, Any]:
    """Return the settings of the VS Code extension, by name."""
    settings: dict[str, Any] = {"msp-bridge.path": _from(options.root, executable())}
    if handed_on := _handed_on(options):
        settings["msp-bridge.args"] = handed_on
    return settings


def plugin(name: str, argv: list[str]) -> str:
    """The text of `msp_bridge/editors/NAME`, in which `argv` starts the server."""
    text = (files("msp_bridge") / "editors" / name).read_text("utf-8")
    quoted = [json.dumps(argument, ensure_ascii=False) for argument in argv]
    for between in (", ", " "):  # a list in Lua, and in Lisp
        text = text.replace(between.join(('"msp-bridge"', '"serve"', '"stdio"')), between.join(quoted))
    if name in (TEXTS[JETBRAINS], TEXTS[ECLIPSE]):
        text = _with_command_line(text, argv)
    text = APART.sub(lambda found: f"{quoted[0]}{found[1]}{', '.join(quoted[1:])}", text)
    if not re.search(r"\s", argv[0]):  # else PATH must find it: each editor quotes in its own way
        text = re.sub(r"(?<==)msp-bridge(?=\\ run)|(?<=:sh )msp-bridge(?= run)", lambda _: argv[0], text)
    return text


def _with_command_line(text: str, argv: list[str]) -> str:
    """The text for LSP4IJ (JSON) or Eclipse (XML), which split at blanks outside of double quotes and escape nothing.

    Raises ConfigurationError.
    """
    if bad := next((argument for argument in argv if re.search(r"[\"'\\$]", argument)), None):
        raise ConfigurationError(f"{bad!r} can't be part of a command line there", "move it, or start another bridge")
    words = [f'"{argument}"' if re.search(r"\s", argument) else argument for argument in argv]
    text = text.replace('"msp-bridge serve stdio', json.dumps(" ".join(words), ensure_ascii=False)[:-1])
    text = text.replace('value="msp-bridge"', f'value="{escape(argv[0])}"')
    return text.replace('value="serve stdio', 'value="' + escape(" ".join(words[1:]), {'"': "&quot;"}))


def executable() -> Path:
    """This bridge's own command, absolute. Raises ConfigurationError when it was started in some other way."""
    beside = Path(sys.executable).with_name("msp-bridge")
    for candidate in (Path(sys.argv[0]), beside):
        if candidate.stem == "msp-bridge" and candidate.is_file():
            return Path(os.path.abspath(candidate))
    raise ConfigurationError(f"there is no command msp-bridge beside {sys.executable}", own_install("msp-bridge"))


def _handed_on(options: Options) -> list[str]:
    """The options that were given, but for the root: an editor starts the server there."""
    configuration = options.configuration
    given = {
        "--adapter": configuration.adapters and configuration.adapters[0],
        "--config": options.named,
        "--python": configuration.python,
        "--jobs": configuration.jobs,
        "--log-level": options.log_level,
        "--log-file": options.log_file,
    }
    return [text for name, value in given.items() if value is not None for text in (name, str(value))]


def _from(root: Path, path: Path) -> str:
    """A path in the project is the same for everybody who works on it."""
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else str(path)


def _endings(options: Options) -> set[str]:
    """Endings of the files that the project's tools can mutate: `py`, `ts`."""
    tools, found = _tools(options), set[str]()
    for path in files_below(str(options.root)):
        ending = os.path.splitext(path)[1][1:]
        if ending and ending not in found and any(tool.claims(path) for tool in tools):
            found.add(ending)
    return found if found.isdisjoint(SCRIPTS) else found | SCRIPTS


def _tools(options: Options) -> list[MountedAdapter]:
    """The available tools; where a folder has none, the reason goes to stderr."""
    tools = []
    for tool in options.open_workspace().tools:
        if isinstance(tool.adapter, UnavailableAdapter):
            click.echo(f"msp-bridge: {tool.folder} is left out of watchPattern: {tool.adapter.reason}", err=True)
        else:
            tools.append(tool)
    return tools


def _write(editor: str, file: Path, settings: Mapping[str, Any]) -> None:
    try:
        before = file.read_bytes().decode("utf-8-sig") if file.exists() else ""
        known = parse(before)
        if isinstance(watched := known.get(WATCH_PATTERN), str) and WATCH_PATTERN in settings:
            settings = {**settings, WATCH_PATTERN: joined_patterns(watched, settings[WATCH_PATTERN])}
        after = merged(before, settings)
    except (OSError, UnicodeDecodeError, ConfigurationError) as error:
        raise left_alone(file, str(error), editor) from None
    if after != before:
        replaced(file, after)
    if editor == VSCODE and WORKING_DIRECTORY in known:
        click.echo(
            f"msp-bridge: {WORKING_DIRECTORY} is set, and with it the extension finds nothing to test: remove it, "
            "and open the directory itself or the whole repository",
            err=True,
        )
    for name, value in settings.items():
        was = "" if known.get(name, value) == value else f", was {json.dumps(known[name], ensure_ascii=False)}"
        click.echo(f"{name}: {json.dumps(value, ensure_ascii=False)}{was}")
    click.echo(f"{'written' if after != before else 'nothing to change'}: {file}")
