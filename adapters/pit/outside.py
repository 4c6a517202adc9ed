"""Outside: what a build depends on beside the project, as it was; another project's build may change it meanwhile.

It is looked at for each request, so reading is too much: times and sizes count. What has changed in truth is decided
where a build begins (`compiled`). A parent elsewhere is looked for in the usual local repository.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Self

from attrs import frozen

from msp_bridge import reading
from msp_bridge.toolkit.tree import stamps

from .maven import Module

SETTINGS, REPOSITORY = ".m2/settings.xml", ".m2/repository"  # in the home directory
PARENT = re.compile(r"<parent>(.*?)</parent>", re.DOTALL)
COORDINATE = re.compile(r"<(groupId|artifactId|version)>\s*([^<>]*?)\s*</")


@frozen
class Outside:
    """How the files in `places` were. Methods block."""

    places: frozenset[str]
    stamps: Mapping[str, Any]

    @classmethod
    def of(cls, root: Path, pom: Path, modules: Iterable[Module]) -> Self:
        """Note all that counts for `modules` of the copy at `root`, whose effective pom is `pom`."""
        jars = {entry for module in modules for entry in module.class_path if not Path(entry).is_relative_to(root)}
        home = Path.home()
        places = frozenset({*jars, str(home / SETTINGS), *_parents(reading.text(pom), home / REPOSITORY)})
        return cls(places, stamps(places))

    def is_current(self) -> bool:
        """Whether nothing there was touched."""
        return stamps(self.places) == self.stamps


def _parents(pom: str, repository: Path) -> Iterator[str]:
    for parent in set(PARENT.findall(pom)):
        found = dict(COORDINATE.findall(parent))
        group, name, version = (found.get(each, "") for each in ("groupId", "artifactId", "version"))
        file = repository / group.replace(".", "/") / name / version / f"{name}-{version}.pom"
        if file.is_file():
            yield str(file)
            yield from _parents(reading.text(file), repository)
