"""PrivateCopy: the copy of the project in which mutants are made and tests run, and whether it is still current."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from attrs import define

from msp_bridge.toolkit import Sandbox, unwritable

BARRIER = b"[pytest]\n"  # pytest looks for its configuration in all directories above, up to the root of the disk

MADE = frozenset({"mutants"})  # by `mutmut run`; deeper down it may be somebody's package


@define(eq=False)
class PrivateCopy:
    """Everything here blocks: call it in a thread, and one call at a time.

    The copy keeps the name of the project's directory, from which mutmut guesses where the sources are.
    The files that the host has mutated are overlaid: a refresh reports them, and leaves them to the host.
    """

    _shadow: Sandbox

    @classmethod
    def claim(cls, home: Path, root: Path) -> PrivateCopy:
        """One that no other process uses, below `home`."""
        return cls(Sandbox.claim(home.resolve(), root, left_out=MADE))

    @property
    def path(self) -> Path:
        """Where it is."""
        return self._shadow.path

    @property
    def home(self) -> Path:
        """A private directory beside it."""
        return self._shadow.path.parent

    @property
    def content(self) -> str:
        """Names the content of the project at the last refresh."""
        return self._shadow.digest

    @property
    def identity(self) -> tuple[int, int] | None:
        """Changes when it was made anew."""
        return self._shadow.identity

    def is_current(self) -> bool:
        """Whether no file of the project was touched since the last refresh; writes nothing."""
        return self._shadow.is_current()

    def refresh(self) -> frozenset[str]:
        """Bring it up to date; the paths that changed since it was last brought up to date."""
        self._shadow.overlaid.clear()
        self._shadow.overlaid.update(_generated(self.home / "generated.json"))
        changed = self._shadow.refresh()
        try:
            _put_up(self.home / "pytest.ini")
        except OSError as error:
            raise unwritable(self.home, error) from error
        return changed

    def close(self) -> None:
        """Let another process have it."""
        self._shadow.close()


def _generated(record: Path) -> set[str]:
    """The files in the copy that a host has written."""
    try:
        return set(json.loads(record.read_bytes()))
    except (OSError, ValueError, TypeError):
        return set()


def _put_up(barrier: Path) -> None:
    if barrier.is_dir():
        shutil.rmtree(barrier)
    if not barrier.is_file() or barrier.read_bytes() != BARRIER:
        barrier.write_bytes(BARRIER)
