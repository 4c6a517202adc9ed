"""Discovery: which files mutmut mutates, how it would test them, and the mutants of a text. Runs nothing."""

from __future__ import annotations

from importlib.metadata import version

from msp_bridge_python_engine.channel import READY, Channel, Message
from mutmut.configuration import ProcessIsolation

from .configuration import Configuration
from .mutations import Mutations


def main(options: Message) -> None:
    """Answer the bridge until it closes the channel; the current directory is the project's root."""
    channel = Channel.to_bridge()
    configuration, mutations = Configuration(options["config_file"]), Mutations()
    channel.send(READY)
    for request in channel.messages():
        try:
            if request["do"] == "files":
                answer = files(configuration)
            else:
                answer = mutants(mutations, request["path"], request["text"])
        except Exception as error:  # whatever mutmut and libcst raise: the one file, or the configuration, is at fault
            answer = {"problem": f"{type(error).__name__}: {error}"}
        channel.send({"id": request["id"], **answer})


def files(configuration: Configuration) -> Message:
    """The files to mutate, and what of the configuration concerns the bridge."""
    found = configuration.files()
    config = configuration.read()
    return {
        "files": found,
        "source_paths": [path.as_posix() for path in config.source_paths],
        "unused": configuration.unused(),
        "arguments": [*config.pytest_add_cli_args_test_selection, *config.pytest_add_cli_args],
        "limit": [config.timeout_constant, config.timeout_multiplier],
        "always_fresh": config.process_isolation is ProcessIsolation.FORKSERVER,
        "debug": config.debug,
        "version": version("mutmut"),
    }


def mutants(mutations: Mutations, path: str, text: str) -> Message:
    """The mutants of `text`: rows of handle, mutator, start, end, replacement; offsets in `text` (code points)."""
    rows = [
        (change.handle, change.mutator, change.start, change.end, change.replacement)
        for change in mutations.changes(path, text)
    ]
    return {"mutants": rows}
