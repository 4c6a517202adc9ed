"""Assumptions: all that we take for granted about the real Stryker.NET, each with its source, in one place to verify.

No .NET SDK was at hand when this was written: the tool was read, not run. Paths in brackets are files of
https://github.com/stryker-mutator/stryker-net (4.x), below `src/`; `docs/stryker-net.md` has the checklist.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

# Where it is set up, and how it is called.
PACKAGE = "dotnet-stryker"  # the tool package, the name of the global tool's program, and the key in a tool manifest
MANIFESTS = (".config/dotnet-tools.json", "dotnet-tools.json")  # looked for upwards, until one says `isRoot`
GLOBAL_TOOLS = Path(".dotnet/tools")  # below the home directory
INSTALL = f"dotnet tool install -g {PACKAGE}"
RESTORE = "dotnet tool restore"
CONFIG_NAMES = ("stryker-config.json", "stryker-config.yml", "stryker-config.yaml")  # [Stryker.CLI/ConfigBuilder.cs]
CONFIG_KEY = "stryker-config"  # the only key at the top [Stryker.CLI/FileBasedInput.cs]
SOLUTIONS = ("*.sln", "*.slnx")
PROJECTS = ("*.csproj", "*.fsproj")
SOURCES = (".cs",)  # the mutators for F# were never finished

# What it builds in the tree. The mutated assembly goes into the test project's bin, the original is moved aside first,
# unless it was already [Stryker.Core/ProjectComponents/TestProjects/TestProjectsInfo.cs]. It is put back at the end,
# but neither after a kill nor when there was nothing to test, as in our discovery [Stryker.Core/StrykerRunner.cs].
BUILT = ("bin", "obj")
ARTIFACTS_OUTPUT, ARTIFACTS = "UseArtifactsOutput", "artifacts"  # in Directory.Build.props: all builds go there
BACKUP = ".stryker-unchanged"
OUTPUT = "StrykerOutput"  # where it writes without `-O`

# Exit codes [Stryker.Options/ExitCodes.cs]. 0 also when there was nothing to test, and after some failed compilations.
SUCCESS, BELOW_THRESHOLD = 0, 2

# `-m GLOB` replaces `mutate` of the configuration [Stryker.Options/Options/Inputs/MutateInput.cs]. A glob is matched
# against the absolute path of the file, and against that relative to the mutated project; `*`, `?`, `[` are special
# [MutantFilters/FilePatternMutantFilter.cs]. `{start..end}` behind it are offsets into the source without a byte order
# mark, in UTF-16 code units, for .NET strings count these; a mutant must lie wholly within one; spans that touch are
# merged [ExclusionPattern.cs, FilePattern.cs]. A file of which no pattern takes anything is listed without mutants.
NOTHING = "{0..1}"  # takes no mutant, and yet the file: all its mutants are listed as Ignored. `{0..0}` drops the file.
EVERYTHING = "**/*"
ANY_CHARACTER = "?"

# The report is the mutation-testing-report-schema, "2" [Stryker.Core/Reporters/Json]: absolute paths as keys, counters
# as ids, coveredBy and killedBy with ids of tests, whose names are in `testFiles`; lines and columns are Roslyn's + 1.
REPORTS = "reports"  # below `-O`; the names of the files may be configured (`report-file-name`)
FILE_FILTERED = "File ignored by mutate filter"  # `source` of a file that no pattern takes; its `language` is "none"
LINE_ENDS = "\r\n|[\r\n\u0085\u2028\u2029]"  # Roslyn's; the protocol's lines end at `\n` only

# With `-r html --open-report:html` the page is written before the first mutant is tested, with all mutants in it. Those
# that need no test have their final status already. Then come Server-Sent Events [Stryker.Core/Reporters/Html].
REPORT_MARK = "app.report = "  # before the report, JSON in which `<` may stand as ESCAPED
ESCAPED = '<" + "'
STREAM_ADDRESS = r'<mutation-test-report-app\b[^>]*\bsse="http://(localhost):(\d+)/"'
PAGE_END = "</html>"
TESTED, FINISHED = "mutant-tested", "finished"  # the events; the data of the first is the mutant, without its file

# It opens the page: .NET looks for one of these programs on PATH on Linux, powershell.exe under WSL
# [dotnet/runtime Process.Linux.cs; Stryker.Core/Reporters/WebBrowserOpener]. On macOS it calls /usr/bin/open, on
# Windows the shell: nothing keeps a browser from opening, so we don't ask for the page, and results come at the end.
OPENERS = ("xdg-open", "gnome-open", "kfmclient", "powershell.exe")
CAN_STREAM = sys.platform == "linux"

# The configuration may ask for what needs version control, which a private copy doesn't have, or for the network.
UNWANTED_KEYS = ("since", "baseline")

# No build server outlives the run or is shared with the user's builds, and nothing asks git, for a private copy has no
# repository: MSBuild takes properties from the environment.
ENVIRONMENT = {
    "DOTNET_NOLOGO": "1",
    "DOTNET_CLI_TELEMETRY_OPTOUT": "1",
    "DOTNET_CLI_UI_LANGUAGE": "en",
    "DOTNET_CLI_USE_MSBUILD_SERVER": "0",
    "MSBUILDDISABLENODEREUSE": "1",
    "UseSharedCompilation": "false",
    "EnableSourceControlManagerQueries": "false",
    "EnableSourceLink": "false",
    "NBGV_GitEngine": "Disabled",  # Nerdbank.GitVersioning
    "DisableGitVersionTask": "true",  # GitVersion.MsBuild
    "NO_COLOR": "1",
}
# Its own mutation server, in no release yet: https://github.com/stryker-mutator/stryker-net/pull/3847, read at its
# commits 5b988a4, 814ce5c and a80c070 [Stryker.CLI/MutationServer, docs/mutation-server-protocol.md]. A tool without it
# refuses the unknown word with an exit code other than 0, for it is neither an option nor a command of it.
SERVE = ("serve", "stdio")  # options of a run follow behind `--`: none before the word `serve` reach the requests
SERVE_HELP = ("serve", "--help")  # starts nothing
HELP_NAMES = b"stdio"  # which no help of a tool without a server says
# `configure` without a file leaves the options as they are; its answer has the protocol's version.
PROTOCOL = "0.4."
# Each request reads the configuration, builds and mutates anew [MutationServerService.cs]: it sees edited sources. We
# start another server when files of the build have changed, for what MSBuild keeps of these was not looked into.
# `discover` without files lists every mutant but those that are Ignored already: by a comment, by `mutate`. Files are
# relative to the working directory, with `/`, also with `../`; locations as in the report. An id is a SHA-256 in hex of
# place, file, mutator, replacement and description: the same in every copy [MutationServerMutantIdentity.cs].
# `mutationTest` with `mutants` tests these ids and no others. Each is told once, as soon as it is known, at first those
# that need no test; the answer itself is empty. Tests are told by id, without names anywhere; nothing has a duration.
# When the mutated code does not compile, the answer is empty, too, and nothing was told [StrykerRunner.cs].
TESTED_MORE = "reportMutationTestProgress"
# `$/cancelRequest` ends a run, as the end of its input does: it answers when its test processes are gone and the
# assemblies are back. How promptly was not measured: perhaps not while it builds.

# What it says before it says why it can't work [Stryker.CLI/Program.cs].
SAYS_WHY_BELOW = "see the logs below"
# What `dotnet` says when a local tool wasn't restored, or isn't there [dotnet/sdk].
SAYS_RESTORE = (RESTORE,)
SAYS_ABSENT = ("Could not execute because the specified command or file was not found", "No executable found matching")


def arguments(output: Path, patterns: Sequence[str], jobs: int, config: Path | None, *, live: bool) -> list[str]:
    """What follows the command: `live` asks for the page and the stream, too [CommandLineConfigReader.cs]."""
    reporters = ["json", "html"] if live else ["json"]
    return [
        *_each("-m", patterns),
        *_each("-r", reporters),
        *(["--open-report:html"] if live else []),
        *("-O", str(output)),
        *("-c", str(jobs)),
        *(["-f", str(config)] if config is not None else []),
        "--skip-version-check",
    ]


def _each(option: str, values: Iterable[str]) -> Iterable[str]:
    for value in values:
        yield from (option, value)
