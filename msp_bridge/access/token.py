"""Token: the secret that a client must show, where it comes from, and what is too weak to be one."""

from __future__ import annotations

import hashlib
import hmac
from pathlib import Path
from typing import Self

from attrs import field, frozen

from msp_bridge.access import VARIABLE
from msp_bridge.access.secret_file import SecretFile
from msp_bridge.errors import ConfigurationError

MIN_LENGTH = 16  # characters; 32 hexadecimal digits are recommended, and can't be guessed
ADVICE = "`openssl rand -hex 32` makes a good one"


@frozen
class Token:
    """Kept as its digest, so that no log, traceback or dump can show it."""

    _digest: bytes = field(repr=False)

    @classmethod
    def given(cls, file: Path | None, variable: str | None) -> Self | None:
        """The token in `file`, or else the one in the environment's `variable`. Raises ConfigurationError."""
        if file is not None:
            return cls._of(SecretFile(file, "--token-file").read(), f"--token-file: the token in {file}")
        return None if variable is None else cls._of(variable, f"{VARIABLE}: the token")

    @classmethod
    def _of(cls, text: str, what: str) -> Self:
        token = text.strip()
        if len(token) < MIN_LENGTH:
            length = f"only {len(token)} characters long" if token else "empty"
            raise ConfigurationError(f"{what} is {length}, it needs {MIN_LENGTH} or more: {ADVICE}")
        if len(token.split()) > 1:
            raise ConfigurationError(f"{what} must be one word: {ADVICE}")
        return cls(_digest(token))

    def matches(self, shown: str) -> bool:
        """Whether that is the token. Takes the same time for every wrong one."""
        return hmac.compare_digest(self._digest, _digest(shown))


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
