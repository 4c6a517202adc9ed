"""MutatedBinaries: test binaries with mutants in them, as few as can be.

`go build -overlay` takes a file's text from elsewhere, so nothing is written into the module. Most of the time of a
build is the linker's: mutants share a binary where `programs/combining.go` can write them into one, with some hundred
kilobytes of added code at most. The compiler says which of them are no Go; the others are built again without those.

Which of its mutants is on says the directory that the binary was started in. So the processes of the same binary that
tests start have the mutant, too, whatever environment they get; those of a copy elsewhere, as testscript makes, look up
in `/proc` which binary has started them. Commands of go that tests run get it as an `Edit`.

A binary with several mutants is used only if its tests pass while each function runs as a copy without a mutant: they
might see one call more, through a library that names callers. Packages that look at callers themselves are built with
one mutant at a time.
"""

import itertools
import re
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from attrs import define, field, frozen

from msp_bridge import reading
from msp_bridge.adapter import Mutant, ToolError
from msp_bridge.concurrency import in_thread

from .execution import Edit
from .go import PLACE, STARTED, Go, Package, SourceProgram, overlay_option, placed
from .listing import TestOptions

MIN_TOGETHER = 4  # for fewer, binaries of their own are built sooner
MAX_ADDED = 300_000  # bytes of copied functions in one binary
LOOKS_AT_CALLERS = re.compile(rb"\b(runtime\.Caller|runtime\.Callers|runtime\.Stack|debug\.Stack|debug\.PrintStack)\(")
OF_MUTANT = re.compile(r"gremlin_(\d+)\.go:\d+(?::\d+)?: (.*)")
ERROR = re.compile(r"^\S+\.go:\d+:\d+: (.*)", re.MULTILINE)
ADDED_FILE = "0-msp-bridge-gremlin.go"  # the first of the package: so is its variable, which any initializer may need
UNCHANGED = -1  # the number of no mutant: its functions run as copies
SWITCH = """package {name}

import (
	gremlinOs "os"
	gremlinFilepath "path/filepath"
	gremlinStrconv "strconv"
	gremlinStrings "strings"
)

var gremlin__ = func() int {{
	name := gremlinFilepath.Base(gremlinStarted())
	number, _ := gremlinStrconv.Atoi(gremlinStrings.TrimPrefix(name, "{place}"))
	return number
}}()
"""


@frozen
class Binary:
    """A test binary of the package of a suite, and its mutants by the numbers that switch them on."""

    file: Path
    mutants: Mapping[int, Mutant]

    def program(self, number: int) -> Path:
        """The binary with this mutant on, or UNCHANGED; 0: with the only one. Blocks."""
        if number == 0:
            return self.file
        return placed(self.file, self.file.parent, str(number))


@frozen
class Refused:
    """A mutant that does not compile."""

    mutant: Mutant
    reason: str


Built = Binary | Refused | None  # of one mutant; None: its file has changed


@define
class MutatedBinaries:
    """Builds in the private `directory`. Files that have changed since mutants were found in them give no binary."""

    go: Go
    program: SourceProgram
    options: TestOptions
    directory: Path
    flags: str  # GOFLAGS
    _numbers: Iterator[int] = field(factory=lambda: itertools.count(1), init=False)

    def groups(self, package: Package, mutants: Sequence[Mutant]) -> tuple[list[list[Mutant]], list[Mutant]]:
        """Return the groups that may share a binary, and the mutants that have to be alone. Blocks."""
        together = [mutant for mutant in mutants if not mutant.handle.alone]
        files = (self.go.root / package.directory / name for name in package.files)
        if len(together) < MIN_TOGETHER or any(LOOKS_AT_CALLERS.search(reading.content(file)) for file in files):
            return [], list(mutants)
        return _limited(together), [mutant for mutant in mutants if mutant.handle.alone]

    async def alone(self, tested: Package, mutant: Mutant) -> Built:
        """Build the tests of `tested` with `mutant`."""
        texts = await in_thread(self._mutated, mutant)
        if texts is None:
            return None
        built = await self._build(tested, texts)
        return Binary(built, {0: mutant}) if isinstance(built, Path) else _refused(mutant, built)

    async def together(
        self, package: Package, tested: Package, mutants: Sequence[Mutant]
    ) -> tuple[Binary | None, list[Refused]]:
        """Build the tests of `tested` with all `mutants` of `package`, those left out that don't compile.

        There is no binary if the compiler's message names none of them.
        """
        file = Path()

        async def build(texts: Mapping[str, bytes], *options: str) -> str | None:
            nonlocal file
            found = await self._build(tested, texts, *options)
            if isinstance(found, str):
                return found
            file = found
            return None

        built, refused = await self._accepted(package, mutants, build)
        return (Binary(file, built) if built else None), refused

    async def refused(self, package: Package, mutants: Sequence[Mutant]) -> list[Refused]:
        """Find those of `mutants` that don't compile, while the package does; nothing is linked."""
        found: list[Refused] = []
        alone = [mutant for mutant in mutants if mutant.handle.alone]

        async def build(texts: Mapping[str, bytes], *options: str) -> str | None:
            options = (
                *self.options.for_builds,
                await in_thread(overlay_option, self._place(), self.go.root, texts),
                *options,
            )
            return await self.go.compile(package, *options)

        if not mutants or await build({}) is not None:
            return []
        for group in _limited(mutant for mutant in mutants if not mutant.handle.alone):
            built, refused = await self._accepted(package, group, build)
            found += refused
            decided = {*built.values(), *(each.mutant for each in refused)}
            alone += [mutant for mutant in group if mutant not in decided]
        for mutant in alone:
            texts = await in_thread(self._mutated, mutant)
            if texts is not None and (printed := await build(texts)) is not None:
                found.append(_refused(mutant, printed))
        return found

    async def _accepted(
        self,
        package: Package,
        mutants: Sequence[Mutant],
        build: Callable[..., Awaitable[str | None]],
    ) -> tuple[dict[int, Mutant], list[Refused]]:
        """Build `mutants` together until none of them is refused; none are built if the compiler's message names none.

        `build` takes the texts of files and options for go, and returns what the compiler prints if it fails.
        """
        numbered = dict(enumerate(mutants, 1))
        refused: list[Refused] = []
        while numbered:
            texts = await self._combined(package, numbered)
            numbered = {number: mutant for number, mutant in numbered.items() if mutant.path in texts}
            if await build(texts) is None:
                break
            texts = await self._combined(package, numbered, lines_name_mutants=True)
            printed = await build(texts, f"-gcflags={package.path}=-e") or ""
            errors = {int(number): reason for number, reason in reversed(OF_MUTANT.findall(printed))}
            new = [Refused(numbered.pop(number), errors[number]) for number in errors if number in numbered]
            if not new:
                return {}, refused
            refused += new
        return numbered, refused

    async def _combined(
        self, package: Package, numbered: Mapping[int, Mutant], *, lines_name_mutants: bool = False
    ) -> dict[str, bytes]:
        """Return the texts of files, by their paths."""
        request, paths = [], []
        for path in dict.fromkeys(mutant.path for mutant in numbered.values()):
            of_file = {number: mutant for number, mutant in numbered.items() if mutant.path == path}
            content = await in_thread(self._content, next(iter(of_file.values())))
            if content is None:
                continue
            places = [
                {"number": number, "start": m.handle.start, "end": m.handle.end, "text": m.handle.text}
                for number, m in of_file.items()
            ]
            paths.append(path)
            file = str(self.go.root / path)
            request.append(
                {"path": file, "text": content.decode(), "mutants": places, "linesNameMutants": lines_name_mutants}
            )
        answer = await self.program.ask({"combine": request})
        texts = {path: text.encode() for path, text in zip(paths, answer["combine"] or (), strict=True)}
        switch = f"{package.directory}/{ADDED_FILE}"
        return {**texts, switch: (SWITCH.format(name=package.name, place=PLACE) + STARTED).encode()} if texts else {}

    def _mutated(self, mutant: Mutant) -> dict[str, bytes] | None:
        """Return the text of the file of `mutant`, by its path; None as for `_content`. Blocks."""
        content, handle = self._content(mutant), mutant.handle
        if content is None:
            return None
        return {mutant.path: content[: handle.start] + handle.text.encode() + content[handle.end :]}

    def _content(self, mutant: Mutant) -> bytes | None:
        """Read the file of `mutant`; None if it is not the one that the mutant was found in. Blocks."""
        try:
            content = reading.content(self.go.root / mutant.path)
        except OSError:
            return None
        return content if reading.digest_of(content) == mutant.handle.digest else None

    def edit(self, mutant: Mutant, place: Path) -> Edit | None:
        """The mutant for commands of go that tests run, to be written into `place`; None as for `_content`. Blocks."""
        texts = self._mutated(mutant)
        return None if texts is None else Edit(texts, self.flags, place)

    async def _build(self, tested: Package, texts: Mapping[str, bytes], *options: str) -> Path | str:
        place = self._place()
        overlay = await in_thread(overlay_option, place, self.go.root, texts)
        return await self.go.build_tests(tested, place, *self.options.for_tests, overlay, *options)

    def _place(self) -> Path:
        return self.directory / str(next(self._numbers))


def _refused(mutant: Mutant, printed: str) -> Refused:
    error = ERROR.search(printed)
    if error is None:
        raise ToolError(f"go can't build {mutant.path} with a mutant: {' '.join(printed.split())[-600:]}")
    return Refused(mutant, error[1])


def _limited(mutants: Iterable[Mutant]) -> list[list[Mutant]]:
    """Group mutants of functions, so that the copies of one group add MAX_ADDED bytes at most."""
    groups: list[list[Mutant]] = []
    added = MAX_ADDED
    for mutant in mutants:
        start, end = mutant.handle.function
        added += end - start
        if added > MAX_ADDED:
            groups.append([])
            added = end - start
        groups[-1].append(mutant)
    return groups


def by_package(packages: Iterable[Package], mutants: Iterable[Mutant]) -> dict[Package | None, list[Mutant]]:
    """Group `mutants` by the package that their file belongs to; None for a file that nothing builds here."""
    owners = {
        f"{each.directory}/{name}".removeprefix("./"): each
        for each in packages
        for name in (*each.files, *each.ignored)
    }
    groups: dict[Package | None, list[Mutant]] = {}
    for mutant in mutants:
        groups.setdefault(owners.get(mutant.path), []).append(mutant)
    return groups
