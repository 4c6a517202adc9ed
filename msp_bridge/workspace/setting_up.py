"""Setting up: the tool for each language of a tree, in the folder where its project is, and what it lacks there.

The tools for the same files are rivals: in each folder one of them is proposed, one that is set up there already or
else the one that needs least. A folder around it that has a tool for these files has all of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from attrs import frozen

from msp_bridge.adapter import SetsUp, Setup
from msp_bridge.errors import ShellCommand
from msp_bridge.workspace.projects import Candidate, ProjectFolder, ProjectMap
from msp_bridge.workspace.tree import files_below, matcher


@frozen
class ToolSetup:
    """One tool in one folder, which is relative to the workspace's root, with a `/` at the end; "" is the root."""

    folder: str
    name: str  # the adapter's
    setup: Setup
    sources: tuple[str, ...]  # the patterns of its files
    files: int  # that are there, tests included

    @property
    def texts(self) -> Mapping[str, str]:
        """The files to write, relative to the workspace's root."""
        return {f"{self.folder}{name}": text for name, text in self.setup.files.items()}

    @property
    def install(self) -> ShellCommand | None:
        """The command that installs the tool, typed in the workspace's root."""
        return None if self.setup.install is None else typed_at_root(self.setup.install, self.folder)

    @property
    def checkout(self) -> Sequence[ShellCommand]:
        """The commands of a job of CI, typed in the workspace's root."""
        return [typed_at_root(command, self.folder) for command in self.setup.checkout]


def typed_at_root(command: ShellCommand, folder: str) -> ShellCommand:
    """The command for `folder` as it is typed in the workspace's root."""
    return command.inside(folder) if folder else command


def tool_setups(projects: ProjectMap) -> list[ToolSetup]:
    """The tools of all languages, that of most files first. Raises BridgeError where a folder or a tool has a fault."""
    paths = list(files_below(str(projects.root)))
    found: list[ToolSetup] = []
    for folder in projects.folders:
        if folder.error is not None:
            raise folder.error
        for rivals in _rivals(folder):
            sources = rivals[0].sources or ()
            if any(folder.path.startswith(one.folder) and set(one.sources) & set(sources) for one in found):
                continue
            is_source = matcher(sources)
            count = sum(
                path.startswith(folder.path) and is_source(path.rpartition("/")[2]) is not None for path in paths
            )
            if count and (best := _best(rivals)):
                found.append(ToolSetup(folder.path, best[0].name, best[1], sources, count))
    return sorted(found, key=lambda one: -one.files)


def _rivals(folder: ProjectFolder) -> Iterator[Sequence[Candidate]]:
    """The tools that may be used in `folder`, grouped by their files; a tool for any file is left out."""
    pending = [one for one in folder.candidates if one.sources]
    while pending:
        kind = set(pending[0].sources or ())
        yield [one for one in pending if kind & set(one.sources or ())]
        pending = [one for one in pending if not kind & set(one.sources or ())]


def _best(rivals: Sequence[Candidate]) -> tuple[Candidate, Setup] | None:
    """The tool to use in a folder, with what it lacks; None where it is a project for none of them."""
    used = [one for one in rivals if one.is_used]
    setups = [(one, _setup_of(one)) for one in used or rivals]
    possible = [(one, setup) for one, setup in setups if setup is not None]
    return min(
        possible,
        key=lambda each: (each[1].install is not None, _lines(each[1])),
        default=None,
    )


def _lines(setup: Setup) -> int:
    """How much is to be configured."""
    return sum(text.count("\n") for text in setup.files.values()) + len(setup.settings)


def _setup_of(candidate: Candidate) -> Setup | None:
    if candidate.error is not None:
        raise candidate.error
    if isinstance(candidate.adapter_class, SetsUp):
        return candidate.adapter_class.setup(candidate.project)
    return Setup() if candidate.is_used else None
