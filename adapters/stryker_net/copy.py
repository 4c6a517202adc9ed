"""PrivateCopy: where Stryker.NET builds and mutates, so that no byte of the user's tree changes."""

from __future__ import annotations

import logging
import os
import shutil
import stat
from hashlib import blake2b
from pathlib import Path
from threading import Lock

from attrs import define, field

from msp_bridge import reading
from msp_bridge.adapter import Project
from msp_bridge.toolkit import Sandbox

from .assumptions import ARTIFACTS, ARTIFACTS_OUTPUT, BACKUP, BUILT, MANIFESTS, OPENERS, OUTPUT, SOURCES
from .base import projects_in

log = logging.getLogger(__name__)

# What MSBuild, NuGet and the SDK look for in all directories above, and what stands in its place where there is none:
# or else they would find what lies above the cache.
ABOVE = {
    "Directory.Build.props": "<Project />\n",
    "Directory.Build.targets": "<Project />\n",
    "Directory.Packages.props": "<Project />\n",
    "global.json": "{}\n",
    ".editorconfig": "root = true\n",
    **dict.fromkeys(("Directory.Build.rsp", "Directory.Solution.props", "Directory.Solution.targets"), ""),
    **dict.fromkeys(("nuget.config", "NuGet.config", "NuGet.Config", *MANIFESTS), ""),
}
# Files that decide which mutants there are. Not the tests, nor what is read when they run: editing these is what one
# does while one looks at mutants.
BUILDING = (".csproj", ".fsproj", ".props", ".targets", ".rsp", ".sln", ".slnx", ".slnf", ".json", ".yml", ".yaml")
DECISIVE = (*SOURCES, *BUILDING, ".config", ".editorconfig", ".globalconfig")
SHIM = "#!/bin/sh\nexit 0\n"


@define(eq=False)
class PrivateCopy:
    """Everything here blocks: call it in a thread. A call waits for the one before it, even if nobody else does.

    `bin` and `obj` of each project belong to the copy: its builds stay incremental, and what the user's builds have
    left there, full of absolute paths, isn't taken along.
    """

    _shadow: Sandbox
    content: str = field(default="", init=False)  # names what decides which mutants there were at the last `prepare`
    build: str = field(default="", init=False)  # names the part of it that is no code
    _above: dict[str, bytes] = field(factory=dict, init=False)
    _turn: Lock = field(factory=Lock, init=False)

    @classmethod
    def claim(cls, project: Project, name: str) -> PrivateCopy:
        """One that no other process uses. Raises `ToolError`."""
        project.cache.mkdir(parents=True, exist_ok=True)
        return cls(Sandbox.claim(project.cache.resolve(), project.root, name))

    @property
    def path(self) -> Path:
        """Where it is: no part of it is a link."""
        return self._shadow.path

    @property
    def home(self) -> Path:
        """A private directory above it."""
        return self._shadow.path.parent

    @property
    def shims(self) -> Path:
        """A directory for the front of PATH, with programs that keep a browser from opening."""
        return self.home / "shims"

    def is_current(self) -> bool:
        """Whether nothing of the project was touched since the last `prepare`."""
        with self._turn:
            return bool(self.content) and self._above == self._what_is_above() and self._shadow.is_current()

    def prepare(self) -> None:
        """Bring it up to date, every assembly as it was built. Raises `ToolError` when there's no room."""
        with self._turn:
            self._put_back()
            self._shadow.overlaid.clear()
            projects = projects_in(self._shadow.source)
            places = {"", *projects}
            self._shadow.overlaid.update(f"{at}{name}/" for at in places for name in (*BUILT, OUTPUT))
            if self._has_artifacts():
                self._shadow.overlaid.add(f"{ARTIFACTS}/")
            before, self.content = self.content, ""
            changed = self._shadow.refresh()
            above = self._what_is_above()
            if before and above == self._above and all(map(self._shadow.is_overlaid, changed)):
                self.content = before
                return
            self._write_above(above)
            self._write_shims()
            self._above = above
            self._take_digests(tuple(place for place, of_tests in projects.items() if of_tests and place))

    def restore(self) -> None:
        """Put back the assemblies that a run has left mutated."""
        with self._turn:
            self._put_back()

    def output(self) -> Path:
        """An empty directory for one run's reports."""
        with self._turn:
            directory = self.home / "output"
            shutil.rmtree(directory, ignore_errors=True)
            directory.mkdir(parents=True, exist_ok=True)
            return directory

    def close(self) -> None:
        """Let another process have it."""
        self._shadow.close()

    def _put_back(self) -> None:
        for directory, _, files in os.walk(self.home):
            for file in files:
                if file.endswith(BACKUP):
                    backup = os.path.join(directory, file)
                    os.replace(backup, backup.removesuffix(BACKUP))

    def _has_artifacts(self) -> bool:
        try:
            return ARTIFACTS_OUTPUT in reading.text(self._shadow.source / "Directory.Build.props", errors="replace")
        except OSError:
            return False

    def _what_is_above(self) -> dict[str, bytes]:
        """The nearest files above the project that have a meaning for it, by name."""
        found = {}
        for name, substitute in ABOVE.items():
            places = (place / name for place in self._shadow.source.parents)
            nearest = next((file for file in places if file.is_file()), None)
            content = nearest.read_bytes() if nearest is not None else substitute.encode()
            if content:
                found[name] = content
        return found

    def _write_above(self, files: dict[str, bytes]) -> None:
        for name in ABOVE:
            target = self.home / name
            if name in files:
                target.parent.mkdir(exist_ok=True)
                target.write_bytes(files[name])
            else:
                target.unlink(missing_ok=True)

    def _write_shims(self) -> None:
        self.shims.mkdir(exist_ok=True)
        for name in OPENERS:
            shim = self.shims / name
            shim.write_text(SHIM, encoding="ascii")
            shim.chmod(stat.S_IRWXU)

    def _take_digests(self, tests: tuple[str, ...]) -> None:
        """Of what is mutated and how it is built, without the code of the test projects in the directories `tests`."""
        code, build = blake2b(digest_size=16), blake2b(digest_size=16)
        for name, content in sorted(self._above.items()):
            build.update(f"above\0{name}\0".encode() + content)
        for directory, names, files in os.walk(self.path):
            relative = os.path.relpath(directory, self.path).replace(os.sep, "/")
            prefix = "" if relative == "." else f"{relative}/"
            names[:] = sorted(name for name in names if not self._shadow.is_overlaid(f"{prefix}{name}/"))
            for file in sorted(file for file in files if file.endswith(DECISIVE)):
                if file.endswith(SOURCES) and prefix.startswith(tests):
                    continue
                digest = blake2b(_read(f"{directory}/{file}"), digest_size=16).hexdigest()
                part = code if file.endswith(SOURCES) else build
                part.update(f"{prefix}{file}\0{digest}\n".encode("utf-8", "surrogateescape"))
        self.build = build.hexdigest()
        self.content = f"{code.hexdigest()} {self.build}"


def _read(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:  # a link to nowhere
        log.debug("%s can't be read: %s", path, error)
        return b""
