"""SecretFile: a file that nobody but its owner, and those whom the owner chose, may read."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path

from attrs import frozen

from msp_bridge.errors import ConfigurationError

MAX_SIZE = 64 * 1024  # bytes; a private key has a few thousand


@frozen
class SecretFile:
    """`option` is where the user named it, for the errors."""

    path: Path
    option: str

    def read(self) -> str:
        """Its text. Raises ConfigurationError when it can't be read, or everybody can."""
        try:
            with self.path.open("rb") as file:
                self._refuse_openness(os.fstat(file.fileno()).st_mode)
                return file.read(MAX_SIZE).decode("utf-8-sig")
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigurationError(
                f"{self.option}: can't read {self.path}: {getattr(error, 'strerror', None) or error}"
            ) from None

    def _refuse_openness(self, mode: int) -> None:
        if not stat.S_ISREG(mode):
            raise ConfigurationError(f"{self.option}: {self.path} is not a file")
        if sys.platform != "win32" and mode & stat.S_IRWXO:
            raise ConfigurationError(
                f"{self.option}: every user of this machine may open {self.path}: chmod 600 {self.path}"
            )
