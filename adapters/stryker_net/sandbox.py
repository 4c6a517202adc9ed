"""StrykerNetTestBed: the private copy in which Stryker.NET builds and mutates: no byte of the user's tree changes."""

import json
import os
import re
import shutil
import stat
from collections.abc import Mapping
from hashlib import blake2b
from pathlib import Path
from threading import Event
from typing import Any

from attrs import define, field

from msp_bridge import reading
from msp_bridge.toolkit import Sandbox

from .hosts import CONTROL_VARIABLE
from .plan import BUILT, MANIFESTS, OUTPUT, projects_in, what_is_built
from .sdk import ORIGINAL
from .setup import GLOBAL_TOOLS
from .tool import OPENERS

# Every mutant is compiled into one assembly, behind a switch. This goes into the `bin` of each test project; the
# original is moved aside first, unless it was already. It is put back at the end of a run, but not after a kill
# [Stryker.Core/ProjectComponents/TestProjects/TestProjectsInfo.cs].
BACKUP = ".stryker-unchanged"
CODE = (".cs", ".csproj", ".json", ".props", ".runsettings", ".targets")  # of what may name environment variables
PACKAGES = "obj/project.assets.json"  # what NuGet has found for a project
ARTIFACTS_OUTPUT, ARTIFACTS = "UseArtifactsOutput", "artifacts"  # in Directory.Build.props: all builds go there

# No build server outlives the run or is shared with the user's builds, and nothing asks git: a private copy has no
# repository: MSBuild takes properties from the environment.
ENVIRONMENT = {
    "DOTNET_NOLOGO": "1",
    "DOTNET_CLI_TELEMETRY_OPTOUT": "1",
    "DOTNET_CLI_UI_LANGUAGE": "en",
    "DOTNET_CLI_USE_MSBUILD_SERVER": "0",
    "DOTNET_TieredPGO": "0",  # a tenth faster: nothing here runs long enough to be worth its measurements
    "DOTNET_EnableWriteXorExecute": "0",  # 4 % of a test host: memory for compiled code isn't mapped twice
    "MSBUILDDISABLENODEREUSE": "1",
    "UseSharedCompilation": "false",
    "RunAnalyzers": "false",  # a fifth of a build's CPU time, for warnings; source generators run nevertheless
    "EnableSourceControlManagerQueries": "false",
    "EnableSourceLink": "false",
    "NBGV_GitEngine": "Disabled",  # Nerdbank.GitVersioning
    "DisableGitVersionTask": "true",  # GitVersion.MsBuild
    "NO_COLOR": "1",
    "VSTEST_CONNECTION_TIMEOUT": "300",  # s; on a busy machine its 90 end a run
    "DOTNET_INFO_WAIT_TIME": "300000",  # ms; of Buildalyzer, whose 10 s end a run there with "no build environment"
}

# Besides, where all programs end after seconds: while the project is prepared. The numbers are hexadecimal.
PREPARATION_ENVIRONMENT = {
    "DOTNET_TC_CallCountThreshold": "200",  # calls before a method is compiled again for speed, else 1E
    "DOTNET_GCgen0size": "4000000",  # bytes between two collections, 64 MB; else the size of a cache
    "UseSharedCompilation": "true",  # one compiler for all projects; it ends with the run
}
SOCKETS = Path("/tmp")  # noqa: S108 - in which the server of the compiler listens, whatever TMPDIR is
TEMPORARY = ("TMPDIR", "TEMP", "TMP")  # each run leaves 32 MB there: an unzipped VSTest

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
SHIM = "#!/bin/sh\nexit 0\n"
STARTERS = re.compile(rb"(?:CliWrap|MedallionShell|SimpleExec)\0")  # assemblies that start programs for others
PROCESSES = b"System.Diagnostics.Process\0"  # the assembly by which others do it themselves, and what they name then
COMPUTED = re.compile(rb"(?:(?<!Inline)DataAttribute|SourceAttribute|ITestDataSource|ITestBuilder|IFixtureBuilder)\0")
START = re.compile(rb"Start(?:Info)?\0")
FRAMEWORK = re.compile(r"xunit|nunit|mstest|tunit|microsoft\.(net\.test\.sdk|testing\.platform)", re.IGNORECASE)


@define(eq=False)
class StrykerNetTestBed:
    """Everything here blocks: call it in a thread, one call at a time.

    `bin` and `obj` of each project belong to the copy: what the user's builds have left there, full of absolute paths,
    isn't taken along, and the mutated assemblies stay for the test hosts.
    """

    __test__ = False  # pytest would take it for a test

    sandbox: Sandbox
    _above: Mapping[str, bytes] = field(factory=dict, init=False)

    @property
    def path(self) -> Path:
        """Where it is: no part of it is a link."""
        return self.sandbox.path

    @property
    def home(self) -> Path:
        """A private directory above it."""
        return self.sandbox.path.parent

    @property
    def temporary(self) -> Path:
        """The directory for temporary files of everything that runs here."""
        return self.home / "tmp"

    @property
    def preparation_environment(self) -> dict[str, str]:
        """For the restore and the run that prepares."""
        return {**self.environment, **PREPARATION_ENVIRONMENT, "SharedCompilationId": self._compiler_socket.name}

    @property
    def environment(self) -> dict[str, str]:
        """For whatever else runs here."""
        path = os.pathsep.join([str(self._shims), os.environ.get("PATH", ""), str(Path.home() / GLOBAL_TOOLS)])
        return {**ENVIRONMENT, **dict.fromkeys(TEMPORARY, str(self.temporary)), "PATH": path}

    def is_current(self) -> bool:
        """Whether nothing of the project was touched since the last `refresh`."""
        return self._above == what_is_above(self.sandbox.source) and self.sandbox.is_current()

    def refresh(self, stop: Event) -> None:
        """Bring it up to date. Raises `ToolError` when there's no room, `Stopped` soon after `stop` is set."""
        self.sandbox.overlaid.clear()
        places = {"", *projects_in(self.sandbox.source)}
        self.sandbox.overlaid.update(f"{at}{name}/" for at in places for name in (*BUILT, OUTPUT))
        if self._has_artifacts():
            self.sandbox.overlaid.add(f"{ARTIFACTS}/")
        self.sandbox.refresh(stop)
        self._above = what_is_above(self.sandbox.source)

    def state(self) -> list[object]:
        """Everything that a preparation depends on here: equal as long as the project and what is built are the same.

        A process that is killed while the copy is brought up to date or built leaves assemblies of another state.
        """
        records = sorted(self.sandbox.records.items(), key=lambda item: item[0])
        project = [(path, record.kind.value, record.digest) for path, record in records if not self._is_built(path)]
        files = sorted(str(file) for directory in self._mutated_directories() for file in directory.glob("*.dll"))
        stamps = [(file, status.st_size, status.st_mtime_ns) for file in files if (status := os.stat(file))]
        return [str(self.sandbox.source), str(self.path), sorted(self._above.items()), project, stamps]

    def named_variables(self) -> list[str]:
        """The environment variables that are set and named in the project's code, or in what MSBuild reads."""
        files = (self.path / path for path in self.sandbox.records if path.endswith(CODE) and not self._is_built(path))
        content = b" ".join([*map(reading.content, files), *self._above.values()])
        return [name for name in os.environ if len(name) > 1 and os.fsencode(name) in content]

    def _is_built(self, path: str) -> bool:
        return self.sandbox.is_overlaid(path) or self.sandbox.is_overlaid(f"{path}/")

    def make_ready(self) -> None:
        """Put back every assembly that was replaced, and write what a run finds around the project."""
        self.restore(BACKUP)
        self.restore(ORIGINAL)
        for name in ABOVE:
            target = self.home / name
            if name in self._above:
                target.parent.mkdir(exist_ok=True)
                target.write_bytes(self._above[name])
            else:
                target.unlink(missing_ok=True)
        self._shims.mkdir(exist_ok=True)
        for name in OPENERS:
            shim = self._shims / name
            shim.write_text(SHIM, encoding="ascii")
            shim.chmod(stat.S_IRWXU)

    def unrestored(self, base: str) -> Path | None:
        """The built files of the directory `base` (relative), if no packages were ever restored there."""
        directory = self.path / base
        restored = any((directory / place / PACKAGES).is_file() for place in projects_in(directory))
        return None if restored or self._has_artifacts() else what_is_built(directory)

    def clear(self) -> Path:
        """Delete temporary files and earlier reports. Returns the empty directory for a run's reports."""
        output = self.home / "output"
        for directory in (output, self.temporary):
            shutil.rmtree(directory, ignore_errors=True)
            directory.mkdir(parents=True, exist_ok=True)
        self._compiler_socket.unlink(missing_ok=True)
        return output

    def restore(self, suffix: str) -> bool:
        """Put back each file that has this `suffix` now. Whether there was one."""
        found = [
            os.path.join(directory, file)
            for directory, _, files in os.walk(self.home)
            for file in files
            if file.endswith(suffix)
        ]
        for file in found:
            os.replace(file, file.removesuffix(suffix))
        return bool(found)

    def test_assemblies(self) -> list[Path]:
        """Test assemblies of .NET beside a mutated assembly whose mutants can be chosen from outside; sorted."""
        return sorted(file for directory in self._mutated_directories() for file in _tests_in(directory))

    def built_tests(self) -> list[Path]:
        """The assemblies of all .NET test projects, mutated or not; sorted."""
        places = (Path(directory) for directory, _, _ in os.walk(self.path) if BUILT[0] in Path(directory).parts)
        return sorted(file for directory in places for file in _tests_in(directory))

    def _mutated_directories(self) -> set[Path]:
        found = set()
        for directory, _, files in os.walk(self.path):
            for file in files:
                if file.endswith(BACKUP):
                    assembly = Path(directory, file.removesuffix(BACKUP))
                    if assembly.is_file() and CONTROL_VARIABLE.encode("utf-16-le") in assembly.read_bytes():
                        found.add(Path(directory))
        return found

    @property
    def _compiler_socket(self) -> Path:
        """The socket of the compiler's server: its own for this copy, which one bridge has at a time."""
        return SOCKETS / f"msp-bridge-{blake2b(os.fsencode(self.path), digest_size=10).hexdigest()}"

    @property
    def _shims(self) -> Path:
        """A directory for the front of PATH, with programs that keep a browser from opening."""
        return self.home / "shims"

    def _has_artifacts(self) -> bool:
        return ARTIFACTS_OUTPUT in reading.text_or_empty(self.sandbox.source / "Directory.Build.props")


def what_is_above(source: Path) -> dict[str, bytes]:
    """The nearest files above the project at `source` that have a meaning for it, by name. Blocks."""
    found = {}
    for name, substitute in ABOVE.items():
        places = (place / name for place in source.parents)
        nearest = next((file for file in places if file.is_file()), None)
        content = nearest.read_bytes() if nearest is not None else substitute.encode()
        if content:
            found[name] = content
    return found


def starts_programs(assembly: Path) -> bool:
    """Whether these tests do, by themselves or by a package: coverage does not have such programs."""
    content = assembly.read_bytes()
    return bool(STARTERS.search(content) or (PROCESSES in content and START.search(content)))


def computes_data(assembly: Path) -> bool:
    """Whether these tests take data from code, by attributes such as MemberData, DynamicData and TestCaseSource."""
    return COMPUTED.search(assembly.read_bytes()) is not None


def _tests_in(directory: Path) -> list[Path]:
    """The assemblies in `directory` that run on .NET and depend on a test framework by themselves."""
    found = []
    for file in directory.glob("*.runtimeconfig.json"):
        name = file.name.removesuffix(".runtimeconfig.json")
        assembly = directory / f"{name}.dll"
        try:
            targets = json.loads((directory / f"{name}.deps.json").read_bytes())["targets"]
        except (OSError, ValueError, KeyError, TypeError):
            continue
        for target in targets.values():
            own: Mapping[str, Any] = next((value for key, value in target.items() if key.partition("/")[0] == name), {})
            if assembly.is_file() and any(map(FRAMEWORK.search, own.get("dependencies", {}))):
                found.append(assembly)
                break
    return found
