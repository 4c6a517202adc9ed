"""Assumptions: what we take for granted about Stryker.NET and .NET, each with its source, in one place to verify.

All of it was verified with Stryker.NET 5.0.0 and 5.1.0 on the .NET SDK 10.0.401, Linux. Paths in brackets are files
of https://github.com/stryker-mutator/stryker-net, below `src/`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

# Where it is set up, and how it is called.
PACKAGE = "dotnet-stryker"  # the tool package, the name of the global tool's program, and the key in a tool manifest
MANIFESTS = (".config/dotnet-tools.json", "dotnet-tools.json")  # looked for upwards, until one says `isRoot`
GLOBAL_TOOLS = Path(".dotnet/tools")  # below the home directory
VERIFIED = "5.0 and 5.1"  # the versions that the tests were run with
INSTALL = f"dotnet tool install -g {PACKAGE}"
RESTORE = "dotnet tool restore"
CONFIG_NAMES = ("stryker-config.json", "stryker-config.yml", "stryker-config.yaml")  # [Stryker.CLI/ConfigBuilder.cs]
CONFIG_KEY = "stryker-config"  # the only key at the top [Stryker.CLI/FileBasedInput.cs]
SOLUTIONS = ("*.sln", "*.slnx")
PROJECTS = ("*.csproj", "*.fsproj")
SOURCES = (".cs",)  # the mutators for F# were never finished

# What it builds in the tree. Every mutant is compiled into one assembly, behind a switch. This goes into the `bin` of
# each test project; the original is moved aside first, unless it was already. It is put back at the end of a run, but
# not after a kill [Stryker.Core/ProjectComponents/TestProjects/TestProjectsInfo.cs].
BUILT = ("bin", "obj")
ARTIFACTS_OUTPUT, ARTIFACTS = "UseArtifactsOutput", "artifacts"  # in Directory.Build.props: all builds go there
BACKUP = ".stryker-unchanged"
OUTPUT = "StrykerOutput"  # where it writes without `-O`

# The switch: MUTANT_VARIABLE, which CONTROL_VARIABLE names, has the id of the active mutant. It is read once, when the
# first mutant is met. Older assemblies don't hold the name [Stryker.Core/InjectedHelpers/MutantControl.cs].
CONTROL_VARIABLE = "STRYKER_MUTANT_ID_CONTROL_VAR"
MUTANT_VARIABLE = "ACTIVE_MUTATION"

# Exit codes [Stryker.Options/ExitCodes.cs]. 0 also when there was nothing to test, and after some failed compilations.
SUCCESS, BELOW_THRESHOLD = 0, 2

# `-m GLOB` replaces `mutate` of the configuration [Stryker.Options/Options/Inputs/MutateInput.cs]. A glob is matched
# against the absolute path of the file, and against that relative to the mutated project; `*`, `?`, `[` are special
# [MutantFilters/FilePatternMutantFilter.cs]. `{start..end}` behind it are offsets into the source.
LIST_ALL = "**/*{0..1}"  # takes no mutant, and yet each file: all mutants are listed as Ignored, for FILTERED
SPECIAL, ANY_CHARACTER = r"[*?\[\]{}!]", "?"

# The report is the mutation-testing-report-schema, "2" [Stryker.Core/Reporters/Json]: absolute paths as keys, counters
# as ids, which are unique in a solution; coveredBy and killedBy with ids of tests, whose names are in `testFiles`;
# lines and columns are Roslyn's + 1. The ids are VSTest's or the testing platform's own, the same in every run.
REPORTS = "reports"  # below `-O`; the names of the files may be configured (`report-file-name`)
LINE_ENDS = "\r\n|[\r\n\u0085\u2028\u2029]"  # Roslyn's; the protocol's lines end at `\n` only
# Why a mutant is Ignored [Stryker.Core/MutantFilters]: all but the second are the user's wish.
FILTERED = "Removed by mutate filter"
BLOCK_COVERED = "Removed by block already covered filter"

# With `-r html --open-report:html` the page is written before the first mutant is tested, with all mutants in it. Those
# that need no test have their final status already [Stryker.Core/Reporters/Html].
REPORT_MARK = "app.report = "  # before the report, JSON in which `<` may stand as ESCAPED
ESCAPED = '<" + "'
PAGE_END = "</html>"

# It opens the page: .NET looks for one of these programs on PATH on Linux, powershell.exe under WSL
# [dotnet/runtime Process.Linux.cs; Stryker.Core/Reporters/WebBrowserOpener]. On macOS it calls /usr/bin/open, on
# Windows the shell: nothing keeps a browser from opening, so the page can't be had.
OPENERS = ("xdg-open", "gnome-open", "kfmclient", "powershell.exe")
HAS_PAGE = sys.platform == "linux"

# The configuration may ask for what needs version control, which a private copy doesn't have, or for the network.
UNWANTED_KEYS = ("since", "baseline")
DEFAULT_EXTRA_S = (
    5.0  # `additional-timeout`; the time-out is TIME_FACTOR times that of the tests that are run, and this
)
TIME_FACTOR = 1.5

# No build server outlives the run or is shared with the user's builds, and nothing asks git, for a private copy has no
# repository: MSBuild takes properties from the environment.
ENVIRONMENT = {
    "DOTNET_NOLOGO": "1",
    "DOTNET_CLI_TELEMETRY_OPTOUT": "1",
    "DOTNET_CLI_UI_LANGUAGE": "en",
    "DOTNET_CLI_USE_MSBUILD_SERVER": "0",
    "DOTNET_TieredPGO": "0",  # a tenth faster: nothing here runs long enough to be worth its measurements
    "MSBUILDDISABLENODEREUSE": "1",
    "UseSharedCompilation": "false",
    "EnableSourceControlManagerQueries": "false",
    "EnableSourceLink": "false",
    "NBGV_GitEngine": "Disabled",  # Nerdbank.GitVersioning
    "DisableGitVersionTask": "true",  # GitVersion.MsBuild
    "NO_COLOR": "1",
}
TEMPORARY = ("TMPDIR", "TEMP", "TMP")  # each run leaves 32 MB there: an unzipped VSTest

# Its output: lines of a log, `[12:34:56 ERR] …`, as they are. Then, when it can't work, SAYS_WHY_BELOW and the reasons,
# folded at WIDTH columns: at spaces, but in words that are longer than that, too [Stryker.CLI/Program.cs].
WIDTH = 80
LOGGED = r"^\[\d\d:\d\d:\d\d (\w{3})\] "
SAYS_WHY_BELOW = r"see the logs\s+below:"
SAYS_UNSTABLE = "unexpected test case"  # a test that the discovery of tests had not found
# What `dotnet` says when a local tool wasn't restored, or isn't there [dotnet/sdk].
SAYS_RESTORE = (RESTORE,)
SAYS_ABSENT = ("Could not execute because the specified command or file was not found", "No executable found matching")
# A line of MSBuild: place, code, text, project [the canonical error format].
BUILD_ERROR = r"^\s*(?P<place>[^\n]*?\S) ?: error (?P<code>[A-Z]+\d+): (?P<text>[^\n]*?)(?: \[[^\n\[\]]*\])?\r?$"
RESTORING = "NU"  # codes of NuGet


def arguments(output: Path, patterns: Sequence[str], jobs: int, config: Path | None, *, page: bool) -> list[str]:
    """What follows the command: `page` asks for the page with all mutants instead of the report."""
    return [
        *_each("-m", patterns),
        *(("-r", "html", "--open-report:html") if page else ("-r", "json")),
        *("-O", str(output)),
        *("-c", str(jobs)),
        *(["-f", str(config)] if config is not None else []),
        "--skip-version-check",
    ]


def _each(option: str, values: Iterable[str]) -> Iterable[str]:
    for value in values:
        yield from (option, value)
