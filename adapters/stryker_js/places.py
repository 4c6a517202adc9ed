"""Places: which of the user's files is meant where StrykerJS and its tests name one in the private copy."""

from __future__ import annotations

import re
from functools import cached_property
from pathlib import Path

from attrs import frozen


@frozen
class Places:
    """The copy and the root that it is a copy of, both absolute, without links."""

    copy: Path
    root: Path
    members: tuple[tuple[Path, Path], ...] = ()  # of other packages of the workspace: the user's, the copy

    def told(self, text: str) -> str:
        """`text` with the user's paths in place of those in the copies, and in sandboxes in it."""
        text = self._in_copy.sub(lambda _: str(self.root), text)
        for root, copy in self.members:
            text = text.replace(str(copy), str(root))
        return text

    @cached_property
    def _in_copy(self) -> re.Pattern[str]:
        return re.compile(rf"{re.escape(str(self.copy))}(?:[/\\]\.stryker-tmp[/\\]sandbox-?\w+)?")
