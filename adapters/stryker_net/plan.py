"""StrykerNetPlan: where Stryker.NET is to be run, found by what is set up in the project, and how."""

import os
import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Self

from attrs import frozen

from msp_bridge import reading
from msp_bridge.adapter import ConfigurationError, Project

from .setup import (
    CONFIG_NAMES,
    PACKAGE,
    StrykerNetConfiguration,
    StrykerNetInstallation,
    check_settings,
    could_be_ours,
    global_tool,
)

SOLUTIONS = ("*.sln", "*.slnx")
PROJECTS = ("*.csproj", "*.fsproj")
MANIFESTS = (".config/dotnet-tools.json", "dotnet-tools.json")  # looked for upwards, until one says `isRoot`
BUILT = ("bin", "obj")  # what builds write, in the directory of each project
OUTPUT = "StrykerOutput"  # where the tool writes reports without an option
MAX_DEPTH = 4  # directories below the root in which test projects have their configuration: src/tests/Unit/Shop.Tests
MAX_DIRECTORIES = 2000  # directories in which we look for them, nearest first
REFERENCE = re.compile(r"<ProjectReference\b[^>]*\bInclude\s*=\s*[\"']([^\"']+)[\"']", re.IGNORECASE)
CONFIGURED = re.compile(r"\b(?:solution|test-projects)[\"']?\s*:[\s\[\"'-]*(\.\.[^\"'\s,\]]*)")  # in JSON and in YAML
LISTED = re.compile(r"[\"']([^\"']+\.(?:cs|fs)proj)[\"']", re.IGNORECASE)  # in a solution, of either format
TEST_PROJECT = re.compile(r"Microsoft\.NET\.Test\.Sdk|<IsTestProject>\s*true", re.IGNORECASE)
PLATFORM = re.compile(r"xunit\.v3|TUnit|TestingPlatform|EnableMSTestRunner|EnableNUnitRunner", re.IGNORECASE)
FLOATING = re.compile(r"<Package(?:Reference|Version)\b[^>]*\bVersion(?:Override)?\s*=\s*[\"'][^\"']*\*", re.IGNORECASE)
TEST_FRAMEWORK = re.compile(r"xunit|nunit|mstest|TUnit", re.IGNORECASE)
SKIPPED = frozenset({*BUILT, OUTPUT, "node_modules", "packages", "TestResults", "artifacts"})


@frozen
class Base:
    """`directory` is relative to the root: "" or "tests/Shop.Tests/"."""

    directory: str
    config: Path | None  # absolute, in the user's tree


@frozen
class StrykerNetPlan:
    """The bases, how the tool is called, and what the configurations say."""

    project: Project
    installation: StrykerNetInstallation
    bases: tuple[Base, ...]
    configurations: Mapping[str, StrykerNetConfiguration]  # by the directory of the base

    @classmethod
    def make(cls, project: Project) -> Self:
        """Raises `ConfigurationError` and `ToolError`."""
        check_settings(project)
        bases = bases_of(project)
        if not bases:
            raise ConfigurationError(f"Stryker.NET is not set up in {project.root}", "`msp-bridge doctor` says how")
        installation = StrykerNetInstallation.find(project, local_tool(project.root / bases[0].directory))
        read = {base.directory: StrykerNetConfiguration.read(base.config) for base in bases if base.config is not None}
        return cls(project, installation, bases, read)

    @property
    def key(self) -> str:
        """Changes when other mutants may come of the same files. Most configurations are files of the project."""
        named = "" if self.project.config_file is None else repr(sorted(self.configurations.items()))
        bases = [base.directory for base in self.bases]
        return f"{self.installation} {self.installation.stamp} {self.uses_hosts} {bases} {named}"

    @property
    def uses_hosts(self) -> bool:
        """Whether mutants may be tested in test hosts of our own."""
        return bool(self.project.settings.get("engine", "auto") != "tool")

    def uses_platform(self, base: Base) -> bool:
        """Whether the tests run on Microsoft.Testing.Platform, not on VSTest: it is the user's choice for the tool."""
        configuration = self.configuration(base)
        return self.installation.uses_platform or (configuration is not None and configuration.uses_platform)

    def configuration(self, base: Base) -> StrykerNetConfiguration | None:
        """The configuration of `base`; None when there is none."""
        return self.configurations.get(base.directory)

    def check(self, base: Base) -> None:
        """Raises `ConfigurationError` when the code under test isn't in the project."""
        root = self.project.root
        reference = leads_outside(root / base.directory, root)
        if reference is not None:
            problem = f"the tests in {root / base.directory} need {reference}, which lies outside of {root}"
            raise ConfigurationError(problem, "open the directory that holds both")

    def config(self, base: Base, home: Path) -> Path | None:
        """The configuration to name: None where Stryker.NET finds it by itself. `home` is for one that is adapted."""
        configuration = self.configuration(base)
        if configuration is None:
            return None
        text = configuration.for_copy()
        if text is not None:
            file = home / "stryker-config.json"
            file.write_text(text, encoding="utf-8")
            return file
        return configuration.file if self.project.config_file is not None else None


def bases_of(project: Project) -> tuple[Base, ...]:
    """Where Stryker.NET is to be run; empty when it isn't set up in the project. Reads files only."""
    root, named = project.root, project.config_file
    if named is not None:
        meant = could_be_ours(named) and not (project.nested and not named.is_relative_to(root))
        return (_named(root, named),) if meant else ()
    here = _config_in(root)
    if here is not None and not (project.nested and leads_outside(root, root)):
        return (Base("", here),)
    if project.nested:
        own = any((root / name).is_file() and _names_tool(root / name) for name in MANIFESTS)
        return (Base("", None),) if own and has_solution(root) else ()
    below = tuple(_below(root))
    if below:
        return below
    if _matching(root, (*SOLUTIONS, *PROJECTS)) and (
        local_tool(root) is not None or (global_tool() is not None and has_tests(root))
    ):
        return (Base("", None),)
    return ()


def local_tool(directory: Path) -> Path | None:
    """The tool manifest at or above `directory` that names the tool."""
    for place in (directory, *directory.parents):
        for name in MANIFESTS:
            if (place / name).is_file():
                if _names_tool(place / name):
                    return place / name
                if reading.table(place / name).get("isRoot") is True:
                    return None
    return None


def manifest_of(directory: Path) -> Path | None:
    """The nearest tool manifest at or above `directory`, which takes what `dotnet tool install` installs."""
    files = (place / name for place in (directory, *directory.parents) for name in MANIFESTS)
    return next((file for file in files if file.is_file()), None)


def has_solution(directory: Path) -> bool:
    """Whether there is one in `directory`."""
    return bool(_matching(directory, SOLUTIONS))


def what_is_built(directory: Path) -> Path | None:
    """The solution in `directory`, or else the project; None where there are several."""
    files = _matching(directory, SOLUTIONS) or _matching(directory, PROJECTS)
    return files[0] if len(files) == 1 else None


def leads_outside(directory: Path, root: Path) -> str | None:
    """A path that the projects in `directory`, or Stryker.NET's configuration there, need from outside of `root`."""
    needed = [
        path for file in _matching(directory, PROJECTS) for path in REFERENCE.findall(reading.text_or_empty(file))
    ]
    config = _config_in(directory)
    if config is not None:
        needed += CONFIGURED.findall(reading.text_or_empty(config))
    for path in needed:
        target = os.path.normpath(directory / path.replace("\\", "/"))
        if "$(" not in path and not Path(target).is_relative_to(root):
            return str(path)
    return None


def floats(root: Path) -> bool:
    """Whether a project or a file of properties below `root` asks for whatever version of a package is the newest."""
    from msp_bridge.toolkit import walk  # here: a search for projects doesn't wait for it

    files = (Path(directory, name) for directory, _, names in walk(root) for name in names)
    wanted = (file for file in files if file.name.endswith(("proj", ".props", ".targets")))
    return any(FLOATING.search(reading.text_or_empty(file)) for file in wanted)


def needs_platform(directory: Path) -> bool:
    """Whether there are tests in or below `directory` that may need Microsoft.Testing.Platform."""
    return any(
        PLATFORM.search(reading.text_or_empty(file))
        for place in projects_in(directory)
        for file in _matching(directory / place, PROJECTS)
    )


def projects_in(root: Path) -> dict[str, bool]:
    """The directories (relative, with `/` at the end, "" for the root) that hold a project, and whether it tests."""
    found = {}
    for directory, names, files in os.walk(root):
        names[:] = sorted(name for name in names if not _is_skipped(name))
        projects = [
            reading.text_or_empty(Path(directory, file))
            for file in files
            if file.endswith((".csproj", ".fsproj", ".vbproj"))
        ]
        if projects:
            relative = os.path.relpath(directory, root)
            found["" if relative == "." else f"{relative}/"] = all(map(TEST_PROJECT.search, projects))
    return found


def _named(root: Path, config: Path) -> Base:
    """A file of the usual name is meant for its own directory, any other for the root."""
    if config.name in CONFIG_NAMES and config.parent != root and config.parent.is_relative_to(root):
        return Base(f"{config.parent.relative_to(root).as_posix()}/", config)
    return Base("", config)


def _below(root: Path) -> Iterator[Base]:
    """The test projects with a configuration of their own, whose mutants lie outside of their directory."""
    pending = deque([("", 0)])
    for _ in range(MAX_DIRECTORIES):
        if not pending:
            return
        directory, depth = pending.popleft()
        config = _config_in(root / directory) if directory else None
        if config is not None and leads_outside(root / directory, root / directory):
            yield Base(directory, config)
        if depth < MAX_DEPTH:
            pending.extend((f"{directory}{name}/", depth + 1) for name in _directories(root / directory))


def _directories(directory: Path) -> list[str]:
    try:
        with os.scandir(directory) as entries:
            return sorted(e.name for e in entries if e.is_dir(follow_symlinks=False) and not _is_skipped(e.name))
    except OSError:
        return []


def _is_skipped(name: str) -> bool:
    return name.startswith(".") or name in SKIPPED


def _config_in(directory: Path) -> Path | None:
    return next((directory / name for name in CONFIG_NAMES if (directory / name).is_file()), None)


def has_tests(root: Path) -> bool:
    """Whether a project in the root, or of a solution in it, is one of tests."""
    files = _matching(root, PROJECTS)
    for solution in _matching(root, SOLUTIONS):
        files += [root / path.replace("\\", "/") for path in LISTED.findall(reading.text_or_empty(solution))]
    return any(TEST_PROJECT.search(text) or TEST_FRAMEWORK.search(text) for text in map(reading.text_or_empty, files))


def _names_tool(manifest: Path) -> bool:
    tools = reading.table(manifest).get("tools")
    return isinstance(tools, dict) and any(name.lower() == PACKAGE for name in tools)


def _matching(directory: Path, patterns: Iterable[str]) -> list[Path]:
    return sorted(file for pattern in patterns for file in directory.glob(pattern) if file.is_file())
