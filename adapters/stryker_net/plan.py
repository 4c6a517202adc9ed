"""Plan: what one request is to run and where, from the project's files as they are now."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

from attrs import frozen

from msp_bridge.adapter import ConfigurationError, Project

from .assumptions import SERVE, arguments
from .base import Base, bases_of, leads_outside, local_tool
from .configuration import Configuration
from .copy import PrivateCopy
from .installation import Installation, check_settings


@frozen
class Plan:
    """The bases, how the tool is called, and what the configurations say."""

    project: Project
    installation: Installation
    bases: tuple[Base, ...]
    configurations: Mapping[str, Configuration]  # by the directory of the base

    @classmethod
    def make(cls, project: Project) -> Self:
        """Raises `ConfigurationError` and `ToolError`."""
        check_settings(project.settings)
        bases = bases_of(project)
        if not bases:
            raise ConfigurationError(f"Stryker.NET is not set up in {project.root}: `msp-bridge doctor` says how")
        installation = Installation.find(project, local_tool(project.root / bases[0].directory))
        read = {base.directory: Configuration.read(base.config) for base in bases if base.config is not None}
        return cls(project, installation, bases, read)

    @property
    def key(self) -> str:
        """Changes when other mutants may come of the same files. The configurations are files of the project."""
        named = "" if self.project.config_file is None else repr(sorted(self.configurations.items()))
        return f"{self.installation} {self.installation.stamp} {[base.directory for base in self.bases]} {named}"

    def configuration(self, base: Base) -> Configuration | None:
        """None when there is none."""
        return self.configurations.get(base.directory)

    def check(self, base: Base) -> None:
        """Raises `ConfigurationError` when the code under test isn't in the project."""
        root = self.project.root
        reference = leads_outside(root / base.directory, root)
        if reference is not None:
            raise ConfigurationError(
                f"the tests in {root / base.directory} need {reference}, which lies outside of {root}: "
                "open the directory that holds both"
            )

    def command(
        self, base: Base, copy: PrivateCopy, output: Path, patterns: Sequence[str], *, live: bool
    ) -> tuple[str, ...]:
        """The whole command line."""
        config = self._config(base, copy)
        return (*self.installation.command, *arguments(output, patterns, self.project.jobs, config, live=live))

    def server(self, base: Base, copy: PrivateCopy) -> tuple[str, ...]:
        """The command line of the tool's own server."""
        options = arguments(copy.home / "output", (), self.project.jobs, self._config(base, copy), live=False)
        return (*self.installation.command, *SERVE, "--", *options)

    def _config(self, base: Base, copy: PrivateCopy) -> Path | None:
        """The file to name: None where Stryker.NET finds it by itself."""
        configuration = self.configuration(base)
        if configuration is None:
            return None
        text = configuration.for_copy()
        if text is not None:
            file = copy.home / "stryker-config.json"
            file.write_text(text, encoding="utf-8")
            return file
        return configuration.file if self.project.config_file is not None else None
