"""The mutants of one module in the bridge's words; lines of inlined code, and names of tests.

PIT mutates bytecode: it knows the line of a mutant, and no column, nor a text in its place. So the location is the
line from its first character to its last that are no space, and PIT's description stands for the replacement. PIT often
has several mutants that agree in all of that; from the second on the description has a number.

Kotlin numbers the lines of an inline function beyond the end of the file that calls it. Which line calls it stands in
the class file, in the stratum KotlinDebug of its debug text (JSR 45).
"""

import itertools
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from attrs import define, field, frozen

from msp_bridge import reading
from msp_bridge.adapter import Location, Mutant, UnusableFile
from msp_bridge.source import BOM, SourceText
from msp_bridge.toolkit import walk

from .maven import Module

KILLED, SURVIVED, TIMED_OUT, NO_COVERAGE = "KILLED", "SURVIVED", "TIMED_OUT", "NO_COVERAGE"  # PIT's words
STRATUM, LINES = "*S KotlinDebug\n", "*L\n"
PACKAGE = re.compile(r"^\s*package\s+([\w.`]+)", re.MULTILINE)
ROW = re.compile(r"^(\d+)(?:#\d+)?(?:,(\d+))?:(\d+)(?:,(\d+))?$", re.MULTILINE)
UNIQUE_ID = re.compile(r"\[([\w-]+):([^\]]*)\]")  # of JUnit's platform
TESTNG = "._"  # after the name of a class, which is one test
JUNIT4 = re.compile(r"(.+)\(([\w.$]+)\)")
FAILING = re.compile(r"^Description \[testClass=([\w.$]+), name=(.+?)\](?: did not pass.*)?$", re.MULTILINE)


def calling_line(debug: str, line: int) -> int:
    """Find the line that calls what was inlined as `line`; it is `line` for the file's own code."""
    for row in ROW.finditer(debug.partition(STRATUM)[2].partition(LINES)[2]):
        call, repeated, first, step = (int(number or 1) for number in row.groups())
        if step and first <= line < first + repeated * step:
            return call + (line - first) // step
    return line


@frozen
class Found:
    """The `handle` of a mutant."""

    module: str
    key: str  # by which the host knows it
    digest: str  # of the file's content


@frozen
class _File:
    """A file as it was compiled."""

    path: str  # relative to the project's root, with `/`
    source: SourceText
    digest: str


@define
class ModuleListing:
    """The mutants of `module` in the copy at `root`. Reads files, so it blocks."""

    root: Path
    module: Module
    _paths: dict[str, list[Path]] = field(init=False)  # source files by name
    _places: dict[tuple[str, str], Path | None] = field(factory=dict, init=False)  # by name and package
    _files: dict[Path, _File | UnusableFile] = field(factory=dict, init=False)

    def __attrs_post_init__(self) -> None:
        configuration = self.module.configuration
        roots = {*configuration.sources, *(configuration.directory / "src" / "main").glob("*")}
        self._paths = {}
        for directory, _, names in (step for root in sorted(roots) for step in walk(root)):
            for name in names:
                places = self._paths.setdefault(name, [])
                if (place := Path(directory, name)) not in places:
                    places.append(place)

    def items(self, rows: Iterable[Mapping[str, Any]]) -> list[Mutant | UnusableFile]:
        """Make mutants of those `rows` of the host whose source file is in the project, by file and line."""
        located = [(file, row) for row in rows if (file := self._file(row)) is not None]
        unusable = {file.path: file for file, _ in located if isinstance(file, UnusableFile)}
        usable = [(file, row) for file, row in located if isinstance(file, _File)]
        usable.sort(key=lambda each: (each[0].path, each[1]["line"]))  # stable: PIT's own order within a line
        return [*unusable.values(), *self._mutants(usable)]

    def _mutants(self, located: Iterable[tuple[_File, Mapping[str, Any]]]) -> Iterator[Mutant]:
        seen: Counter[tuple[object, ...]] = Counter()
        for file, row in located:
            location = line_location(file.source, row["line"])
            if location is None:
                continue
            mutator, description = row["mutator"].rpartition(".")[2], row["description"]
            identity = (file.path, location, mutator, description)
            seen[identity] += 1
            text = description if seen[identity] == 1 else f"{description} ({seen[identity]})"
            yield Mutant(
                file.path, mutator, location, text, description, Found(self.module.name, row["key"], file.digest)
            )

    def _file(self, row: Mapping[str, Any]) -> _File | UnusableFile | None:
        """The file that a mutant's class was compiled from; None for generated code."""
        wanted = row["file"], row["package"]
        if wanted not in self._places:
            self._places[wanted] = self._place(*wanted)
        place = self._places[wanted]
        if place is None:
            return None
        if place not in self._files:
            self._files[place] = self._read(place)
        return self._files[place]

    def _place(self, name: str, package: str) -> Path | None:
        places = self._paths.get(name, ())
        below = f"/{package.replace('.', '/')}"
        named = (place for place in places if package and place.parent.as_posix().endswith(below))
        fitting = (place for place in places if _package(place) == package)
        return next(itertools.chain(named, fitting), None)

    def _read(self, file: Path) -> _File | UnusableFile:
        path = file.relative_to(self.root).as_posix()
        try:
            content = reading.content(file)
            text = content.decode(self.module.configuration.encoding).removeprefix(BOM)
        except (OSError, UnicodeDecodeError, LookupError) as error:
            return UnusableFile(path, str(error))
        return _File(path, SourceText(text), reading.digest_of(content))


def _package(file: Path) -> str:
    """The package that `file` says it is in: Kotlin's directories need not have its name. Blocks."""
    found = PACKAGE.search(reading.content_or_empty(file).decode("utf-8", "replace"))
    return found[1].replace("`", "") if found else ""


def line_location(source: SourceText, line: int) -> Location | None:
    """The stretch from the first to the last character of `line` that is no space; None if there is none."""
    if not 1 <= line <= source.line_count:
        return None
    start, end = source.line_offsets(line)
    text = source.text[start:end]
    first, last = start + len(text) - len(text.lstrip()), start + len(text.rstrip())
    return source.location(first, last) if first < last else None


def readable_name(name: str) -> str:
    """Shorten a name to `example.PriceTest.total()`.

    PIT's is the class, a dot, and what identifies the test in its framework: `[engine:…]/[class:…]/[method:…]` of
    JUnit 5, `total(example.PriceTest)` of JUnit 4, `_` of TestNG.
    """
    parts = [text for kind, text in UNIQUE_ID.findall(name) if kind != "engine"]
    if parts:
        return ".".join(parts)
    match = JUNIT4.search(name)
    return f"{match[2]}.{match[1].removeprefix(f'{match[2]}.')}" if match else name.removesuffix(TESTNG)


def killing_tests(names: Sequence[str]) -> tuple[str, ...]:
    """Shorten the names, but for classes of TestNG whose methods are among them."""
    classes = {name.rpartition(".")[0] + TESTNG for name in names if not name.endswith(TESTNG)}
    return tuple(readable_name(name) for name in names if name not in classes)


def failing_tests(printed: str) -> tuple[str, ...]:
    """Find the tests that fail without a mutant, in PIT's warnings about them."""
    return tuple(dict.fromkeys(readable_name(f"{group}.{name}") for group, name in FAILING.findall(printed)))


def all_ran(names: Sequence[str], run: int) -> bool:
    """Whether `run` says that each test was run: PIT counts the methods of TestNG beside their class."""
    return run >= 2 * len(names) if all(name.endswith(TESTNG) for name in names) else run == len(names)
