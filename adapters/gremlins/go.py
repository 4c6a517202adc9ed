"""Calls of go and of our own program for Go sources. None of them writes into the project."""

import json
import re
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from functools import partial
from pathlib import Path
from typing import Any

from attrs import define, field, frozen

from msp_bridge import reading
from msp_bridge.adapter import ToolError
from msp_bridge.concurrency import in_thread, meanwhile
from msp_bridge.processes import ProcessTree

from .installation import go, search_path

SHOWN_CHARS = 600  # of output in an error message
OVERLAY = "overlay.json"
SOURCES = [Path(__file__).parent / "programs" / f"{name}.go" for name in ("mutants", "listing", "combining")]
NOT_IN_WORKSPACE = "run `go work use .` there, or set GOWORK=off"
STARTS_PROGRAMS = "os/exec"  # the package of tests that do
NEXT = re.compile(r"\S")
PLACE = "msp-gremlin-"  # the directory of a binary, and what it is to do: tests may look at a binary's own name
STARTED = """
// gremlinStarted is the directory of the binary that runs the tests: of this process, or of one that has started a copy
// of it. Empty: that has ended.
func gremlinStarted() string {
	file, err := gremlinOs.Executable()
	if err != nil {
		file = gremlinOs.Args[0]
	}
	place := gremlinFilepath.Dir(file)
	process := gremlinStrconv.Itoa(gremlinOs.Getppid())
	for !gremlinStrings.HasPrefix(gremlinFilepath.Base(place), "PLACE") {
		stat, err := gremlinOs.ReadFile("/proc/" + process + "/stat")
		if err != nil {
			return ""
		}
		file, _ = gremlinOs.Readlink("/proc/" + process + "/exe")
		place = gremlinFilepath.Dir(file)
		_, afterName, _ := gremlinStrings.Cut(string(stat), ") ")
		process = gremlinStrings.Fields(afterName)[1] // its parent
	}
	return place
}
""".replace("PLACE", PLACE)
FIELDS = (
    "Dir,ImportPath,Name,Standard,DepOnly,ForTest,Module,Error,"
    "GoFiles,CgoFiles,IgnoredGoFiles,TestGoFiles,XTestGoFiles,Imports,TestImports,XTestImports"
)


@frozen
class Package:
    """One package of the module, as `go list` describes it."""

    path: str  # the import path
    directory: str  # relative to the module, with `/`; "." for its root
    name: str
    files: tuple[str, ...]  # names of its Go files, tests left out, that are built on this machine
    tests: tuple[str, ...]  # names of its files of tests
    imports: frozenset[str]  # import paths, of its tests too
    starts_programs: bool  # in its tests, which may build them from its own code: coverage does not have that
    ignored: tuple[str, ...]  # names of further Go files that such programs may be built from

    @property
    def has_tests(self) -> bool:
        """Whether there are any on this machine."""
        return bool(self.tests)


@frozen
class Listed:
    """The packages of the module, and what their builds and tests read besides."""

    packages: tuple[Package, ...]
    outside: tuple[Path, ...]  # directories that no version pins: of a workspace, replacements, what that has vendored
    workspace: Path | None  # the `go.work` in use
    flags: str  # GOFLAGS


@frozen
class Go:
    """The commands of go in the module at `root`."""

    root: Path

    async def output(self, *arguments: str) -> bytes:
        """Return what `go ARGUMENTS` prints; raises `ToolError` when it fails."""
        return await output([go(), *arguments], self.root)

    async def listed(self, *options: str) -> Listed:
        """List what `options` build. Packages without a file for this machine are left out.

        Raises `ToolError`, also for a module that the `go.work` above it does not name.
        """
        command = ("list", "-e", "-deps", "-test", f"-json={FIELDS}", *options, "./...")
        async with meanwhile(self.output("env", "GOFLAGS", "GOWORK", "GOMODCACHE"), "go env") as asked:
            found = _json_values((await self.output(*command)).decode())
            flags, workspace, cache = (await asked).decode().splitlines()
        named = [each for each in found if not each.get("DepOnly") and not each.get("ForTest")]
        for reason in (each["Error"]["Err"] for each in named if "Dir" not in each):
            remedy = NOT_IN_WORKSPACE if "go.work" in reason else "make `go list ./...` work there"
            raise ToolError(f"go finds no packages in {self.root}: {reason}", remedy)
        imported = {each["ImportPath"]: each for each in found if not each.get("Standard") and not each.get("ForTest")}
        places = {_place(each) for each in found if not each.get("Standard") and "Dir" in each}
        outside = (each for each in places if not each.is_relative_to(self.root) and not each.is_relative_to(cache))
        return Listed(
            tuple(self._package(each, imported) for each in named if not _is_made_of_tests(each)),
            tuple(sorted(outside)),
            Path(workspace) if workspace not in ("", "off") else None,
            flags,
        )

    def _package(self, fields: Mapping[str, Any], imported: Mapping[str, Mapping[str, Any]]) -> Package:
        def each(*names: str) -> Iterable[str]:
            return (item for name in names for item in fields.get(name, ()))

        directory = Path(fields["Dir"])
        starts_programs = _start_programs({*each("TestImports", "XTestImports")}, fields["ImportPath"], imported)
        inside = directory.relative_to(self.root) if directory.is_relative_to(self.root) else Path("..")
        return Package(
            fields["ImportPath"],
            inside.as_posix(),
            fields.get("Name", ""),
            tuple(each("GoFiles", "CgoFiles")),
            tuple(each("TestGoFiles", "XTestGoFiles")),
            frozenset(each("Imports", "TestImports", "XTestImports")),
            starts_programs,
            tuple(each("IgnoredGoFiles")) if starts_programs else (),
        )

    async def build_tests(self, package: Package, directory: Path, *options: str) -> Path | str:
        """Build the test binary of `package` in `directory`; return it, or what the compiler prints if that fails.

        It has the name that go gives it.
        """
        options = ("-vet=off", "-o", f"{directory}/", *options, f"./{package.directory}")
        return await self._built("test", "-c", *options) or next(directory.glob("*.test"))

    async def compile(self, package: Package, *options: str) -> str | None:
        """Compile `package` without its tests, and link nothing; return what the compiler prints if it fails."""
        return await self._built("list", "-export", *options, f"./{package.directory}")

    async def write_profile(self, directory: Path, profile: Path) -> None:
        """Write the coverage of processes, as they have left it in `directory`, as a profile; raises `ToolError`."""
        await self.output("tool", "covdata", "textfmt", f"-i={directory}", f"-o={profile}")

    async def _built(self, *arguments: str) -> str | None:
        async with running([go(), *arguments], self.root) as tree:
            printed = await tree.output()
            if await tree.exited() == 0:
                return None
            return printed.decode("utf-8", "replace") + tree.both_errors or tree.outcome


@define
class SourceProgram:
    """Our program for Go sources (`programs`), built once for each version of it into `directory`."""

    go: Go
    directory: Path
    _built: Path | None = field(default=None, init=False)

    async def ask(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Return its answer; raises `ToolError`."""
        if self._built is None:
            self._built = await self._build()
        with tempfile.NamedTemporaryFile("w", prefix="msp-bridge-", encoding="utf-8") as file:
            json.dump(request, file)
            file.flush()
            answer: dict[str, Any] = json.loads(await output([str(self._built), file.name], self.go.root))
        return answer

    async def _build(self) -> Path:
        version = (await self.go.output("env", "GOVERSION")).decode().strip()
        text = b"".join(await in_thread(lambda: [reading.content(file) for file in SOURCES]))
        program = self.directory / f"mutants-{version}-{reading.digest_of(text)}"
        if not program.exists():
            await in_thread(partial(self.directory.mkdir, parents=True, exist_ok=True))
            fresh = program.with_suffix(".new")
            await output(
                [go(), "build", "-o", str(fresh), *map(str, SOURCES)],
                self.directory,
                env={"GOWORK": "off", "GOFLAGS": ""},
            )
            fresh.replace(program)
        return program


def placed(binary: Path, directory: Path, name: str) -> Path:
    """Return `binary` as a file of the same name in a place in `directory`, by which it knows `name`. Blocks."""
    program = directory / f"{PLACE}{name}" / binary.name
    program.parent.mkdir(exist_ok=True)
    if not program.exists():
        program.hardlink_to(binary)
    return program


def overlay_option(place: Path, root: Path, texts: Mapping[str, bytes]) -> str:
    """Write `texts` into `place`, and return the option by which go reads them for the files of `root`. Blocks.

    They are named by paths relative to `root`; there need not be such files. `place` must not exist.
    """
    place.mkdir()
    replaced = {}
    for number, (path, text) in enumerate(texts.items()):
        (place / f"{number}.go").write_bytes(text)
        replaced[str(root / path)] = str(place / f"{number}.go")
    (place / OVERLAY).write_text(json.dumps({"Replace": replaced}), encoding="utf-8")
    return f"-overlay={place / OVERLAY}"


def running(
    argv: Sequence[str], cwd: Path, env: Mapping[str, str | None] | None = None
) -> AbstractAsyncContextManager[ProcessTree]:
    """Start `argv`, to be ended with the block; go is found by what it starts."""
    return ProcessTree.running(argv, cwd=cwd, env={"PATH": search_path(), **(env or {})})


async def output(argv: Sequence[str], cwd: Path, env: Mapping[str, str] | None = None) -> bytes:
    """Return what `argv` prints; raises `ToolError` when it fails."""
    async with running(argv, cwd, env) as tree:
        printed = await tree.output()
        if await tree.exited() != 0:
            reason = tree.errors.strip()[-SHOWN_CHARS:] or tree.outcome
            command = " ".join([Path(argv[0]).name, *argv[1:3]])
            raise ToolError(f"`{command}` fails in {cwd}: {reason}", "correct what it says")
    return printed


def _place(fields: Mapping[str, Any]) -> Path:
    """Where a package comes from: its module, or its own directory if it is vendored."""
    return Path(fields.get("Module", {}).get("Dir") or fields["Dir"])


def _start_programs(tests: set[str], package: str, imported: Mapping[str, Mapping[str, Any]]) -> bool:
    """Whether tests that import `tests` do, themselves or by a package that they need and `package` does not."""
    needed = _reached(tests, imported) - _reached({package}, imported)
    return STARTS_PROGRAMS in tests or any(STARTS_PROGRAMS in imported[path].get("Imports", ()) for path in needed)


def _reached(paths: set[str], imported: Mapping[str, Mapping[str, Any]]) -> set[str]:
    """The packages that `paths` lead to by packages of the module, but for those of go itself."""
    reached: set[str] = set()
    new = paths & imported.keys()
    while new:
        reached |= new
        own = (imported[path] for path in new if not imported[path].get("DepOnly"))
        new = {path for each in own for path in each.get("Imports", ())} & imported.keys() - reached
    return reached


def _is_made_of_tests(fields: Mapping[str, Any]) -> bool:
    """Whether go has made the package up, the program of another one's tests."""
    made = all("/" in name for name in fields.get("GoFiles", ()))
    tests = fields.get("TestGoFiles", ()) or fields.get("XTestGoFiles", ())
    return fields["ImportPath"].endswith(".test") and made and not tests


def _json_values(text: str) -> list[dict[str, Any]]:
    """Return the values of a text that has one after the other."""
    decoder, found, rest = json.JSONDecoder(), [], NEXT.search(text)
    while rest is not None:
        value, end = decoder.raw_decode(text, rest.start())
        found.append(value)
        rest = NEXT.search(text, end)
    return found
