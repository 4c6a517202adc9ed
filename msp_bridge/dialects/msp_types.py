"""The params of MSP 0.4, as its specification names them, in lsprotocol's style: attrs classes, snake_case fields.

On the wire the fields are camelCase, and absent when None. Positions and locations are the model's own. These classes
are not compared and have no `repr`: attrs would compile that for each of them while an editor waits.
"""

from __future__ import annotations

from attrs import frozen

from msp_bridge.model import Location

VERSION = "0.4.0"  # the VS Code client compares the whole string


@frozen(eq=False, repr=False)
class FileRange:
    """A file, a part of one, or a directory, whose path ends in `/` ("Targeting mutants")."""

    path: str
    range: Location | None = None


@frozen(eq=False, repr=False)
class ConfigureParams:
    """`configure`: the tool's or the bridge's configuration file, absolute or relative to the working directory."""

    config_file_path: str | None = None


@frozen(eq=False, repr=False)
class DiscoverParams:
    """`discover`: where to look; the whole project when absent."""

    files: list[FileRange] | None = None


@frozen(eq=False, repr=False)
class DiscoveredMutant:
    """A mutant before its test."""

    id: str
    location: Location
    mutator_name: str
    description: str | None = None
    replacement: str | None = None


@frozen(eq=False, repr=False)
class DiscoveredFile:
    """The mutants of one file."""

    mutants: list[DiscoveredMutant]


@frozen(eq=False, repr=False)
class MutationTestParams:
    """`mutationTest`: `mutants` wins over `files`; the whole project when both are absent."""

    files: list[FileRange] | None = None
    mutants: dict[str, DiscoveredFile] | None = None
