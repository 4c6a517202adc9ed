"""Configuration: what a stryker-config file says that we must know, and the version of it that works in a copy."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Self

from attrs import frozen

from msp_bridge import reading
from msp_bridge.adapter import ConfigurationError

from .assumptions import CONFIG_KEY, UNWANTED_KEYS

COMMENTS = re.compile(r'("(?:\\.|[^"\\])*")|//[^\n]*|/\*.*?\*/', re.DOTALL)  # which Stryker.NET's JSON may have
SPAN = re.compile(r"(\{\d+\.\.\d+\})+$")


@frozen
class Configuration:
    """The file, and the object below `stryker-config`; of YAML nothing is known but the text."""

    file: Path
    table: dict[str, Any] | None  # None: YAML

    @classmethod
    def read(cls, file: Path) -> Self:
        """Raises `ConfigurationError`, also for YAML that says what we would have to understand."""
        try:
            text = reading.text(file, "utf-8-sig")
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigurationError(f"{file} can't be read: {error}; correct it") from error
        if file.suffix != ".json":
            return cls._of_yaml(file, text)
        try:
            table = json.loads(COMMENTS.sub(lambda found: found[1] or " ", text))[CONFIG_KEY]
            if not isinstance(table, dict):
                raise TypeError(f"{CONFIG_KEY!r} is no object")
        except (ValueError, KeyError, TypeError) as error:
            raise ConfigurationError(f"{file} is no configuration of Stryker.NET: {error}; correct it") from error
        return cls(file, table)

    @classmethod
    def _of_yaml(cls, file: Path, text: str) -> Self:
        for key in ("mutate", *UNWANTED_KEYS):
            if re.search(rf"^\s+[\"']?{key}[\"']?\s*:", text, re.MULTILINE):
                raise ConfigurationError(
                    f"{file} sets {key!r}, which the bridge can only read from JSON: write it as stryker-config.json"
                )
        return cls(file, None)

    @property
    def included(self) -> tuple[str, ...]:
        """The patterns of `mutate` that take files, without spans."""
        return tuple(dict.fromkeys(SPAN.sub("", pattern) for pattern in self._mutate if not pattern.startswith("!")))

    @property
    def excluded(self) -> tuple[str, ...]:
        """The patterns of `mutate` that leave files, or parts of them, out."""
        return tuple(pattern for pattern in self._mutate if pattern.startswith("!"))

    @property
    def _mutate(self) -> tuple[str, ...]:
        patterns = (self.table or {}).get("mutate") or ()
        if not isinstance(patterns, list) or not all(isinstance(pattern, str) for pattern in patterns):
            if patterns:
                raise ConfigurationError(f"`mutate` in {self.file} is no list of patterns: correct it")
            return ()
        return tuple(patterns)

    def for_copy(self) -> str | None:
        """The text of a configuration without what doesn't work in a copy; None when it works as it is."""
        if self.table is None or not any(key in self.table for key in UNWANTED_KEYS):
            return None
        kept = {key: value for key, value in self.table.items() if key not in UNWANTED_KEYS}
        return json.dumps({CONFIG_KEY: kept}, indent=2)


def could_be_ours(file: Path) -> bool:
    """Whether Stryker.NET could be configured with `file`."""
    try:
        if file.suffix == ".json":
            return isinstance(Configuration.read(file).table, dict)
        return file.suffix in (".yml", ".yaml") and CONFIG_KEY in reading.text(file, "utf-8-sig")
    except (OSError, UnicodeDecodeError, ConfigurationError):
        return False


def has_spans(pattern: str) -> bool:
    """Whether a pattern is about parts of files."""
    return SPAN.search(pattern) is not None
