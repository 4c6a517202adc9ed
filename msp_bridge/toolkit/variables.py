"""Environment variables that the verdicts of tests depend on."""

from collections.abc import Collection, Mapping

PREFIXES = ("CARGO_", "DOTNET_", "LC_", "NODE_", "NPM_CONFIG_", "PYTEST_", "PYTHON", "RUST")
VARIABLES = frozenset({"CI", "LANG", "LANGUAGE", "MSP_BRIDGE_EXACT", "MSP_BRIDGE_ISOLATION", "TZ"})
OF_A_RUN = frozenset({"PYTEST_CURRENT_TEST", "PYTEST_VERSION", "PYTEST_XDIST_TESTRUNUID", "PYTEST_XDIST_WORKER"})


def variables(environment: Mapping[str, str], named: Collection[str]) -> dict[str, str]:
    """The environment variables that count: those of interpreters, tools and languages, and what the user named."""
    return {
        name: value
        for name, value in sorted(environment.items())
        if name in named or ((name in VARIABLES or name.startswith(PREFIXES)) and name not in OF_A_RUN)
    }
