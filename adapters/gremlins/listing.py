"""GoListing: the mutants that gremlins lists, each with its exact text, without running a test.

gremlins runs all tests for their coverage before it lists mutants, even in a dry run, and copies the module. So the
listing is made in a directory that has links to the files in question and nothing else, which it doesn't copy; and the
`go` that it finds is a script, which writes an empty profile in place of the tests' and notes the arguments. They say
how gremlins would run the tests: build tags, coverage of other packages, all tests of the module.
"""

from __future__ import annotations

import fnmatch
import itertools
import os
import re
import shlex
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from pathlib import Path
from typing import Any

from attrs import define, evolve, field, frozen

from msp_bridge import reading
from msp_bridge.adapter import Mutant, Scope, ToolError, UnusableFile
from msp_bridge.concurrency import in_thread
from msp_bridge.source import BOM, Edit, SourceText, in_comment
from msp_bridge.toolkit import walk

from .go import Go, SourceProgram, output
from .installation import gremlins, search_path

CONFIGURATION = ".gremlins.yaml"
SOURCES = "sources"  # a directory of the listed module
NOT_BUILT = ("vendor", "testdata")  # directories of which go builds nothing for this module, nor of "_*" and ".*"
OF_RUN = re.compile(r"--?((?:short|parallel|cpu|shuffle|timeout)(?:=.*)?)")
STAND_IN = """#!/bin/sh
for argument; do
    [ "$previous" = -coverprofile ] && echo "mode: set" > "$argument"
    previous=$argument
    printf '%s\\n' "$argument" >> "$MSP_BRIDGE_ARGUMENTS"
done
"""


@frozen
class Found:
    """The `handle` of a mutant: everything that testing it needs."""

    digest: str  # of the file's content
    start: int  # bytes, 0-based
    end: int
    text: str
    line: int  # of the token, as gremlins and go's coverage count it
    column: int  # 1-based, bytes
    function: tuple[int, int] | None  # start and end in bytes; None: the code runs at the start of each test binary
    alone: bool  # it can't be in one binary with other mutants
    ignored: str  # the comment that leaves it out, or empty
    comment: int  # where such a comment can be added, in bytes; -1: nowhere


@frozen
class TestOptions:
    """How gremlins is configured to run tests."""

    tags: str = ""
    coverpkg: str = ""
    everything: bool = False  # the tests of all packages, for each mutant (`integration`)
    links_itself: bool = False  # GOFLAGS has options of the linker
    for_runs: tuple[str, ...] = ()  # of test binaries, from GOFLAGS

    @property
    def for_builds(self) -> tuple[str, ...]:
        """Options of all builds. Without tags there are none: they would replace those of GOFLAGS."""
        return (f"-tags={self.tags}",) if self.tags else ()

    @property
    def for_tests(self) -> tuple[str, ...]:
        """Options of builds of tests: as `go test` links, without what debuggers read, in two thirds of the time."""
        return self.for_builds if self.links_itself else (*self.for_builds, "-ldflags=-s -w")

    def with_flags(self, flags: str) -> TestOptions:
        """These with what GOFLAGS, `flags`, says of links and of how tests run, as for `go test`."""
        of_runs = (OF_RUN.fullmatch(flag) for flag in shlex.split(flags))
        return evolve(
            self, links_itself="-ldflags" in flags, for_runs=tuple(f"-test.{each[1]}" for each in of_runs if each)
        )

    @classmethod
    def of_arguments(cls, arguments: Sequence[str]) -> TestOptions:
        """From the arguments of the `go test` that measures coverage: of SOURCES, or of all in integration mode."""
        values = dict(itertools.pairwise(arguments))
        return cls(values.get("-tags", ""), values.get("-coverpkg", ""), "./..." in arguments)


@define
class GoListing:
    """The mutants of the module at `root`."""

    go: Go
    program: SourceProgram
    config_file: Path | None
    options: TestOptions = field(factory=TestOptions, init=False)  # as the last listing has found them

    async def items(self, scope: Scope) -> list[Mutant | UnusableFile]:
        """Return the mutants of the files in scope, and the files that can't be parsed; raises `ToolError`."""
        files = await in_thread(lambda: [path for path in go_files(self.go.root) if scope.covers(path)])
        checked = await self._ask({path: [] for path in files})
        broken: list[Mutant | UnusableFile] = [
            UnusableFile(path, of_file["error"]) for path, of_file in checked.items() if of_file["error"]
        ]
        listed = await self._listed([path for path in files if not checked[path]["error"]])
        edits = await self._ask(listed)
        for path, of_file in edits.items():
            if of_file["error"]:
                raise ToolError(
                    f"{path}: {of_file['error']}", "use gremlins 0.5 or 0.6, or report that a newer one differs"
                )
        return broken + await in_thread(lambda: list(self._mutants(listed, edits)))

    async def _ask(self, files: Mapping[str, Sequence[Mapping[str, Any]]]) -> dict[str, Any]:
        request = [{"path": str(self.go.root / path), "mutants": places} for path, places in files.items()]
        answer = await self.program.ask({"list": request}) if request else {"list": []}
        return dict(zip(files, answer["list"] or (), strict=True))

    async def _listed(self, files: Sequence[str]) -> dict[str, list[dict[str, Any]]]:
        """Return type, line and column of gremlins' mutants, by file and in the order of the text."""
        if not files:
            return {}
        with tempfile.TemporaryDirectory(prefix="msp-bridge-") as directory:
            private = Path(directory)
            await in_thread(self._prepare, private, files)
            report, arguments = private / "report.json", private / "arguments"
            argv = [gremlins(), "unleash", "--dry-run", "--silent", "--workers", "1", "--diff", "", "-o", str(report)]
            argv += ["--threshold-efficacy", "0", "--threshold-mcover", "0"]
            if self.config_file is not None:
                argv += ["--config", str(self.config_file)]
            env = {
                "PATH": os.pathsep.join([str(private / "bin"), search_path()]),
                "TMPDIR": str(private),
                "MSP_BRIDGE_ARGUMENTS": str(arguments),
            }
            await output([*argv, SOURCES], private / "module", env=env)
            self.options = TestOptions.of_arguments((await in_thread(reading.text, arguments)).split("\n"))
            listed = await in_thread(lambda: reading.json_value(report)["files"] if report.exists() else ())
        found = {file["file_name"]: file["mutations"] for file in listed or ()}  # without mutants there is no report
        return {path: sorted(found[path], key=itemgetter("line", "column", "type")) for path in files if path in found}

    def _prepare(self, private: Path, files: Iterable[str]) -> None:
        stand_in, module = private / "bin" / "go", private / "module"
        stand_in.parent.mkdir()
        stand_in.write_text(STAND_IN, encoding="utf-8")
        stand_in.chmod(0o700)
        module.mkdir()
        (module / CONFIGURATION).symlink_to(self.go.root / CONFIGURATION)
        for path in files:
            place = module / SOURCES / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.symlink_to(self.go.root / path)
        (module / "go.mod").write_text("module listed\n", encoding="utf-8")

    def _mutants(self, listed: Mapping[str, Any], edits: Mapping[str, Any]) -> Iterator[Mutant]:
        for path, places in listed.items():
            try:
                content = reading.content(self.go.root / path)
                source, digest = SourceText(content.decode().removeprefix(BOM)), reading.digest_of(content)
            except (OSError, UnicodeDecodeError):
                continue  # it has changed meanwhile: it was Go before
            for place, edit in zip(places, edits[path]["edits"], strict=True):
                if content[edit["start"] : edit["end"]].decode() == edit["text"]:
                    continue  # gremlins 0.6 replaces %= by itself, and reports that it lived
                start, end = (_characters(content, edit[key]) for key in ("start", "end"))
                function = edit["function"] and tuple(edit["function"])
                handle = Found(digest, line=place["line"], column=place["column"], **{**edit, "function": function})
                yield Mutant(path, place["type"], source.location(start, end), edit["text"], None, handle)


def ignoring(root: Path, mutant: Mutant, reason: str) -> Edit:
    """Return the edit that adds the comment; raises `ToolError` where none can stand. Blocks."""
    content = reading.content_or_empty(root / mutant.path)
    place = mutant.handle.comment
    if place < 0 or reading.digest_of(content) != mutant.handle.digest:
        raise ToolError(
            f"no comment can stand at the end of {mutant.path}:{mutant.location.start.line}",
            "give the expression a line of its own, and list the mutants again",
        )
    before = "" if content[place - 1 : place].isspace() else " "
    after = " " if content[place : place + 1] == b"/" else ""
    comment = f"//nomutant:{mutant.mutator.lower().replace('_', '-')}{in_comment(reason, ' ')}"
    at = _characters(content, place)
    location = SourceText(content.decode().removeprefix(BOM)).location(at, at)
    return Edit(mutant.path, location, f"{before}{comment}{after}", f"{mutant.mutator} in this line")


def go_files(root: Path) -> list[str]:
    """Return the Go files of the module at `root` but for tests: relative, with `/`. Blocks."""
    found: list[str] = []
    left_out: list[str] = []  # directories, with a `/` at the end
    for directory, _, files in walk(root):
        inside = "" if Path(directory) == root else f"{Path(directory).relative_to(root).as_posix()}/"
        name = Path(directory).name
        other = inside and (name in NOT_BUILT or name.startswith(("_", ".")) or "go.mod" in files)
        if other or inside.startswith(tuple(left_out)):
            left_out.append(inside)
            continue
        chosen = (name for name in fnmatch.filter(files, "*.go") if not name.endswith("_test.go"))
        found += [inside + name for name in chosen]
    return found


def _characters(content: bytes, offset: int) -> int:
    text = content[:offset].decode()
    return len(text.removeprefix(BOM))
