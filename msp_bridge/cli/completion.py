"""`msp-bridge completion`: the script that makes a shell complete the command line."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from msp_bridge.errors import ConfigurationError

VARIABLE = "_MSP_BRIDGE_COMPLETE"  # click's, made of the command's name


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def command(context: click.Context, shell: str) -> None:
    """Print the script that makes SHELL complete commands, options, adapters and paths.

    \b
        bash  msp-bridge completion bash > ~/.local/share/bash-completion/completions/msp-bridge
        zsh   msp-bridge completion zsh > ~/.zfunc/_msp-bridge       # with ~/.zfunc in fpath, before compinit
        fish  msp-bridge completion fish > ~/.config/fish/completions/msp-bridge.fish

    bash must be 4.4 or newer.
    """
    found = get_completion_class(shell)
    if found is None:
        raise ConfigurationError(f"this version of click has no completion for {shell}: pip install --upgrade click")
    click.echo(found(context.find_root().command, {}, "msp-bridge", VARIABLE).source())
