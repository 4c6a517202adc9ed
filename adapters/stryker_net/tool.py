"""Tool: one run of Stryker.NET in a private copy, and what its end means.

What is known of the tool was verified with 5.0.0 and 5.1.0 on the .NET SDK 10.0.401, Linux. Paths in brackets, here and
in the other modules, are files of https://github.com/stryker-mutator/stryker-net, below `src/`.
"""

import asyncio
import json
import os
import re
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msp_bridge.adapter import BaselineError, ToolError
from msp_bridge.concurrency import meanwhile
from msp_bridge.processes import ProcessTree

from .setup import INSTALL, RESTORE

# 0 also when there was nothing to test, and after some failed compilations [Stryker.Options/ExitCodes.cs].
SUCCESS, BELOW_THRESHOLD = 0, 2
REPORTS = "reports"  # below `-O`; the names of the files may be configured (`report-file-name`)

# `-m GLOB` replaces `mutate` of the configuration [Stryker.Options/Options/Inputs/MutateInput.cs]. A glob is matched
# against the absolute path of the file, and against that relative to the mutated project
# [MutantFilters/FilePatternMutantFilter.cs]. `{start..end}` behind it are offsets into the source.
LIST_ALL = "**/*{0..1}"  # takes no mutant, and yet each file: all mutants are listed as Ignored
SPECIAL, ANY_CHARACTER = r"[*?\[\]{}!]", "?"  # of a glob

# With `-r html --open-report:html` the page is written before the first mutant is tested, with all mutants in it. Those
# that need no test have their final status already [Stryker.Core/Reporters/Html]. On Linux .NET opens it with a program
# on PATH. On macOS it calls /usr/bin/open, on Windows the shell: there nothing keeps a browser from opening.
HAS_PAGE = sys.platform == "linux"
OPENERS = (
    "xdg-open",
    "gnome-open",
    "kfmclient",
    "powershell.exe",
)  # [dotnet/runtime Process.Linux.cs; WebBrowserOpener]
REPORT_MARK = "app.report = "  # before the report, JSON in which `<` may stand as ESCAPED
ESCAPED = '<" + "'
PAGE_END = "</html>"

# Its output: lines of a log, `[12:34:56 ERR] …`, as they are. Then, when it can't work, SAYS_WHY_BELOW and the reasons,
# folded at WIDTH columns: at spaces, but in words that are longer than that, too [Stryker.CLI/Program.cs].
WIDTH = 80
LOGGED = r"^\[\d\d:\d\d:\d\d (\w{3})\] "
SAYS_WHY_BELOW = r"see the logs\s+below:"
SAYS_RED = "Initial testrun has"  # failing tests, more than half or, with a setting, any; it prints what each one says
SAYS_CRASHED = r"^Unhandled exception\. ([^\n]+)"  # .NET itself, before SIGABRT
SAYS_LOGGING = "An error occurred while writing to logger(s)"  # seen once in some hundred runs, while it was busy
SAYS_UNSTABLE = "unexpected test case"  # a test that the discovery of tests had not found
# What `dotnet` says when a local tool isn't there [dotnet/sdk].
SAYS_ABSENT = ("Could not execute because the specified command or file was not found", "No executable found matching")
# A line of MSBuild: place, code, text, project [the canonical error format].
BUILD_ERROR = r"^\s*(?P<place>[^\n]*?\S) ?: error (?P<code>[A-Z]+\d+): (?P<text>[^\n]*?)(?: \[[^\n\[\]]*\])?\r?$"
RESTORING = "NU"  # codes of NuGet

LOOK_S = 0.05  # between two looks for the page
TAIL_BYTES = 256 * 1024  # of its output that are remembered
SHOWN_CHARS = 600  # characters of them in an error
ERRORS = 3  # of the compiler that are shown
BY_HAND = "run `dotnet stryker` by hand to see all that it prints"
CONTROLS = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|[\x00-\x08\x0b-\x1f]")


class LoggingCrash(ToolError):
    """The tool has crashed because it could not write to its own log, which happens by chance."""


def arguments(output: Path, patterns: Sequence[str], jobs: int, config: Path | None, *, page: bool) -> list[str]:
    """The arguments after the command: `page` asks for the page with all mutants instead of the report."""
    return [
        *(word for pattern in patterns for word in ("-m", pattern)),
        *(("-r", "html", "--open-report:html") if page else ("-r", "json")),
        *("-O", str(output)),
        *("-c", str(jobs)),
        *(["-f", str(config)] if config is not None else []),
        "--skip-version-check",
    ]


def glob_of(path: str) -> str:
    """The glob for `-m` that names the file `path`."""
    return re.sub(SPECIAL, ANY_CHARACTER, path)


async def run(
    command: Sequence[str], *, cwd: Path, env: Mapping[str, str], output: Path, root: Path, page: bool
) -> Mapping[str, Any]:
    """Its report, as JSON. With `page` that of its page, which is there before a mutant is tested: it is ended then.

    `output` is the directory that it reports to, `root` the one whose name errors leave out. No process is left, in any
    case. Raises `ToolError`, with what it printed, when there is no report.
    """
    async with ProcessTree.running(command, cwd=cwd, env=env, grace=0, pid_namespace=False) as tree:
        async with meanwhile(tree.output(tail=TAIL_BYTES), "output of Stryker.NET") as ending:
            over = not page
            while not over:
                over = ending.done()  # before the look: the page may be the last that it wrote
                found = await asyncio.to_thread(_page, output)
                if found is not None:
                    return found
                await asyncio.wait([ending], timeout=LOOK_S)
            tail = await ending
        code = await tree.exited()
        file = next(iter(sorted((output / REPORTS).glob("*.json"))), None)
        if page or code not in (SUCCESS, BELOW_THRESHOLD) or file is None:
            printed = tail.decode("utf-8", "replace") + "\n" + tree.errors
            raise failure(printed, code, root)
    try:
        content: Mapping[str, Any] = json.loads((await asyncio.to_thread(file.read_bytes)).decode("utf-8-sig"))
    except (OSError, ValueError) as error:
        raise ToolError(f"Stryker.NET wrote a report that can't be read ({error})", "run it again") from error
    return content


def _page(output: Path) -> Mapping[str, Any] | None:
    """The report in the page; None while the page isn't written to its end."""
    for file in sorted((output / REPORTS).glob("*.html")):
        html = file.read_bytes().decode("utf-8-sig", "replace")
        at = html.rfind(REPORT_MARK)
        if at >= 0 and html.rstrip().endswith(PAGE_END):
            try:
                content, _ = json.JSONDecoder().raw_decode(html[at + len(REPORT_MARK) :].replace(ESCAPED, "<"))
            except ValueError as error:
                problem = f"Stryker.NET wrote a page that can't be read ({error})"
                raise ToolError(problem, 'set `engine = "tool"`, and open an issue with its version') from error
            found: Mapping[str, Any] = content
            return found
    return None


def failure(printed: str, code: int, root: Path) -> ToolError:
    """The error in `printed`, the output of a run without a report, and the exit code `code`."""
    printed = CONTROLS.sub("", printed.replace("\r\n", "\n")).replace(f"{root}{os.sep}", "")
    if RESTORE in printed:
        return ToolError("the local tools of this project are not restored", f"run `{RESTORE}` in it")
    if any(words in printed for words in SAYS_ABSENT):
        return ToolError("`dotnet stryker` is not to be found", INSTALL)
    logged = re.split(SAYS_WHY_BELOW, printed, maxsplit=1)[0]  # where no line is folded
    found = [line.groupdict() for line in re.finditer(BUILD_ERROR, logged, re.MULTILINE)]
    errors = {f"{error['place']}: error {error['code']}: {error['text']}": error["code"] for error in found}
    if errors:
        shown = " | ".join([*errors][:ERRORS]) + (f" | and {len(errors) - ERRORS} more" if len(errors) > ERRORS else "")
        if any(name.startswith(RESTORING) for name in errors.values()):
            return ToolError(f"the packages of the project can't be restored: {shown}", "run `dotnet restore`")
        return ToolError(f"the project doesn't build: {shown}", "fix what `dotnet build` shows")
    if SAYS_RED in printed:
        return BaselineError("the tests fail without any mutant", "make `dotnet test` pass")
    reason = excerpt(printed)
    if crash := re.search(SAYS_CRASHED, printed, re.MULTILINE):
        kind = LoggingCrash if SAYS_LOGGING in crash[1] else ToolError
        return kind(f"Stryker.NET has crashed: {crash[1][:SHOWN_CHARS]} | {reason}", BY_HAND)
    if code < 0:
        name = signal.Signals(-code).name if -code in signal.valid_signals() else str(-code)
        return ToolError(
            f"Stryker.NET was killed ({name}) before it had a report: {reason}", "see whether memory is short"
        )
    if SAYS_UNSTABLE in printed:
        return ToolError(f"Stryker.NET can't test: {reason}", "give the tests names that are the same in every run")
    ended = "ended without a report" if code == SUCCESS else f"failed (exit code {code})"
    return ToolError(f"Stryker.NET {ended}: {reason}", BY_HAND)


def excerpt(printed: str) -> str:
    """Why it can't work, by its own words: the reasons that it ends with, or else the last errors of its log."""
    logged, *reasons = re.split(SAYS_WHY_BELOW, printed, maxsplit=1)
    paragraphs = [" ".join(part.split()) for part in unfolded("".join(reasons)).split("\n\n")]
    said = [part for part in paragraphs if part and not part.startswith("at ")][:2]
    levels = [
        (found[1], line[found.end() :].strip()) for line in logged.splitlines() if (found := re.match(LOGGED, line))
    ]
    wanted = ("ERR", "FTL") if not said else ("ERR", "FTL", "WRN") if len(said) == 1 else ()
    said += [text for level, text in levels if level in wanted][-1:]
    if not said:
        said = [line.strip() for line in logged.splitlines() if line.strip()][-3:] or ["it printed nothing"]
    joined = " | ".join(dict.fromkeys(said))
    return joined if len(joined) <= SHOWN_CHARS else f"{joined[:SHOWN_CHARS]}…"


def unfolded(printed: str) -> str:
    """The output without the folds of its console.

    A folded line keeps the space that it was folded at, unless that would not fit. A word that is longer than a line
    has folds in it: then the whole line is a piece of it.
    """
    lines = []
    for line in printed.split("\n"):
        full = len(line) >= WIDTH
        lines.append(
            line if line.endswith(" ") and line.strip() else line + (("" if " " not in line else " ") if full else "\n")
        )
    return "".join(lines)
