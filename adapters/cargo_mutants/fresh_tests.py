"""The command by which `run --verify` tests a mutant in a fresh copy: that of cargo-mutants, by its configuration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

CARGO, NEXTEST = "cargo test", "cargo nextest run"
PROFILE = {CARGO: "--profile", NEXTEST: "--cargo-profile"}
# What is built for a mutant stays in the copy, wherever the user's configuration puts builds: all copies have one path.
SCRIPT = """directory=$1 packages=$2; shift 2
set -- --target-dir "$PWD/target" --config "build.build-dir='''$PWD/target'''" "$@"
[ "$directory" != ... ] || exec {test} $packages "$@"
cd "$directory" && exec {test} "$@"
"""


def command(configuration: Mapping[str, Any], options: Sequence[str]) -> tuple[str, ...]:
    """Return the command, for the package of the mutant; `options` select the packages of a run without one."""
    test = NEXTEST if configuration.get("test_tool") == "nextest" else CARGO
    named = [f"--package={name}" for name in configuration.get("test_package") or []]
    packages = ["--workspace"] if configuration.get("test_workspace") else named
    directory = "..." if packages else "{directory}"
    arguments = [
        *([f"{PROFILE[test]}={configuration['profile']}"] if "profile" in configuration else []),
        *(f"--{key.replace('_', '-')}" for key in ("no_default_features", "all_features") if configuration.get(key)),
        *(f"--features={name}" for name in configuration.get("features") or []),
        *(configuration.get("additional_cargo_args") or []),
        *(configuration.get("additional_cargo_test_args") or []),
    ]
    return "sh", "-c", SCRIPT.format(test=test), test, directory, " ".join(packages or options), *arguments
