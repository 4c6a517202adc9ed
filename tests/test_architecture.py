"""Who may import whom (docs/explanation/architecture.md), and which words stand in one place only."""

import ast
import functools
import gc
import graphlib
import os
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import pytest

from msp_bridge.cli import COMMANDS
from msp_bridge.text import release

HERE = Path(__file__).parents[1]
NO_TESTS_OF_OURS = {"corpus", "projects", "node_modules"}  # what tests are made of
FILES = sorted(
    file for top in ("msp_bridge", "adapters") for file in (HERE / top).rglob("*.py") if "programs" not in file.parts
)
PROGRAMS = {  # what runs in a project's own interpreter, and what it imports beside the standard library
    "msp_bridge/isolation": set(),
    "msp_bridge/python_engine/programs": {"pytest", "_pytest"},
    "msp_bridge/toolkit/programs": set(),
    "adapters/cosmic_ray/programs": {"cosmic_ray", "msp_bridge_in_project", "parso"},
    "adapters/mutmut/programs": {"libcst", "msp_bridge_in_project", "mutmut"},
}
MAY = {  # what each package, or module at the top level, may import of ours, besides itself
    package: set(names.split())
    for package, names in {
        "": "",
        "__main__": "cli",
        "access": "concurrency errors jsonrpc",
        "jsonrpc": "errors processes text writing",
        "model": "",
        "errors": "",
        "concurrency": "",
        "notices": "errors",
        "phases": "concurrency notices",
        "reading": "",
        "rows": "model",
        "writing": "errors",
        "text": "model",
        "source": "model reading",
        "adapter": "errors model notices source",
        "processes": "concurrency errors",
        "python_adapter": "adapter concurrency python_engine toolkit.install",
        "python_engine": (
            "adapter concurrency errors model notices phases processes reading source text toolkit writing"
        ),
        "toolkit": "concurrency errors isolation phases processes reading writing",
        "cluster": (
            "access.addresses adapter concurrency environment errors model notices phases reading rows text "
            "toolkit version writing"
        ),
        "environment": "adapter errors reading",
        "isolation": "",
        "incremental": "adapter concurrency errors model reading rows text toolkit",
        "dialects": (
            "concurrency errors jsonrpc model notices reports.accepted reports.results rows session source text "
            "workspace.selection workspace.versions"
        ),
        "workspace": (
            "adapter cluster concurrency environment errors incremental isolation.left_out model notices phases "
            "processes reading source text toolkit.kept_answers"
        ),
        "reports": (
            "access.addresses concurrency errors isolation.left_out model notices phases reading rows source text version "
            "writing"
        ),
        "testing": "adapter concurrency isolation model processes python_engine reading source",
        "session": "model notices phases source workspace",
        "server": "concurrency dialects.dialect errors jsonrpc session workspace",
        "socket_server": "access concurrency dialects.dialect jsonrpc server workspace",
        "last_results": "environment.cache errors model reports workspace.targets",
        "browse": (
            "concurrency errors isolation.left_out last_results model notices phases processes reports source "
            "text workspace"
        ),
        "mcp": (
            "access concurrency errors isolation.left_out jsonrpc last_results model notices phases reading "
            "reports server source text workspace"
        ),
        "adapters": (
            "adapter concurrency errors isolation.left_out isolation.printed jsonrpc model notices phases processes "
            "python_adapter python_engine reading rows source text toolkit writing"
        ),
        "cli": (
            "access adapter browse cluster.connection concurrency dialects.dialect dialects.msp environment "
            "errors isolation.left_out jsonrpc last_results mcp model notices phases processes reading reports "
            "rows server socket_server source testing text toolkit.install toolkit.slot workspace writing"
        ),
    }.items()
}


def name_of(file: Path) -> str:
    """`msp_bridge/jsonrpc/framing.py` -> `jsonrpc.framing`; `adapters/mutmut/host.py` -> `adapters.mutmut.host`."""
    parts = file.relative_to(HERE).with_suffix("").parts
    return ".".join(part for part in parts[parts[0] == "msp_bridge" :] if part != "__init__")


@functools.cache
def parsed(file: Path) -> ast.Module:
    gc.disable()  # on Python 3.11 a finalizer that runs while a tree is built fails the build (python/cpython#106905)
    try:
        return ast.parse(file.read_text("utf-8"))
    finally:
        gc.enable()


@functools.cache
def imports(file: Path) -> tuple[str, ...]:
    """The names below `msp_bridge` that the file imports, anywhere in it."""
    return tuple(_imports(file))


def _imports(file: Path) -> Iterator[str]:
    for node in ast.walk(parsed(file)):
        if isinstance(node, ast.Import):
            yield from (
                alias.name.removeprefix("msp_bridge.") for alias in node.names if alias.name.startswith("msp_bridge.")
            )
        elif isinstance(node, ast.ImportFrom):
            module = f"{node.module or ''}"
            if node.level:
                package = name_of(file).split(".")[: None if file.name == "__init__.py" else -1]
                yield ".".join([*package[: len(package) - node.level + 1], *filter(None, [module])])
            elif module == "msp_bridge":
                yield from (alias.name for alias in node.names)
            elif module.startswith("msp_bridge."):
                yield module.removeprefix("msp_bridge.")


def allowed(importer: str, imported: str) -> bool:
    package, other = importer.split(".")[0], imported.split(".")[0]
    if imported == "__version__":
        return True
    if package == "adapters" and other == "adapters":
        return importer.split(".")[1:2] == imported.split(".")[1:2]
    if package == other:
        return True
    return other in MAY[package] or any(imported == may or imported.startswith(f"{may}.") for may in MAY[package])


def test_a_module_imports_only_what_its_package_may() -> None:
    pairs = [(name_of(file), imported) for file in FILES for imported in imports(file)]
    assert [pair for pair in pairs if not allowed(*pair)] == []


def test_no_package_imports_one_that_imports_it() -> None:
    """`graphlib` raises CycleError for a cycle of any length."""
    imported: dict[str, set[str]] = {}
    for file in FILES:
        package = name_of(file).split(".")[0]
        others = {name.split(".")[0] for name in imports(file)} & MAY.keys()
        imported.setdefault(package, set()).update(others - {package})
    assert {*graphlib.TopologicalSorter(imported).static_order()} >= MAY.keys()


def test_every_package_has_its_rule() -> None:
    assert {name_of(file).split(".")[0] for file in FILES} == MAY.keys()


def siblings(file: Path) -> set[str]:
    """The modules beside it that a program of a project's interpreter imports."""
    found: set[str] = set()
    for node in ast.walk(parsed(file)):
        if isinstance(node, ast.ImportFrom) and node.level == 1:
            found |= {node.module.split(".")[0]} if node.module else {alias.name for alias in node.names}
    return found


def foreign(file: Path) -> set[str]:
    """The top-level packages that a program of a project's interpreter imports beside the standard library's."""
    absolute = {
        name.split(".")[0]
        for node in ast.walk(parsed(file))
        if isinstance(node, ast.Import) or (isinstance(node, ast.ImportFrom) and not node.level)
        for name in ([node.module or ""] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names])
    }
    return absolute - sys.stdlib_module_names


@pytest.mark.parametrize("folder", PROGRAMS)
def test_a_program_of_a_projects_interpreter_needs_nothing_of_the_bridge_but_its_isolation(folder: str) -> None:
    files = sorted((HERE / folder).rglob("*.py"))
    nodes = [node for file in files for node in ast.walk(parsed(file)) if isinstance(node, ast.ImportFrom)]
    assert {name for file in files for name in foreign(file)} == PROGRAMS[folder]
    assert {node.module and node.module.split(".")[0] for node in nodes if node.level > 1} <= {"isolation"}


def test_no_program_of_another_package_is_started_by_its_path() -> None:
    """An arrow between packages that `imports` would not see."""
    assert [name_of(file) for file in FILES if ").parents[" in file.read_text("utf-8")] == []


@pytest.mark.parametrize("folder", PROGRAMS)
def test_the_programs_of_a_projects_interpreter_have_layers(folder: str) -> None:
    """`graphlib` raises CycleError where two import one another."""
    imported = {file.stem: siblings(file) for file in (HERE / folder).glob("*.py")}
    assert {name for names in imported.values() for name in names} <= imported.keys()
    assert set(graphlib.TopologicalSorter(imported).static_order()) == imported.keys()


def test_every_program_of_a_projects_interpreter_has_its_rule() -> None:
    found = {
        folder
        for top in ("msp_bridge", "adapters")
        for folder in (HERE / top).rglob("programs")
        if [*folder.glob("*.py")]
    } | {HERE / "msp_bridge/isolation"}
    assert {folder.relative_to(HERE).as_posix() for folder in found} == PROGRAMS.keys()


@functools.cache
def words(file: Path) -> frozenset[str]:
    """Names and attributes as they stand in the code: `print`, `os.kill`, `subprocess`."""
    return frozenset(_words(file))


def _words(file: Path) -> Iterator[str]:
    for node in ast.walk(parsed(file)):
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield f".{node.attr}"
            yield ast.unparse(node)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}", *(f"{node.module}.{alias.name}" for alias in node.names))


SPAWNING = """.create_subprocess_exec .create_subprocess_shell .send_signal .subprocess_exec .subprocess_shell .terminate
ProcessPoolExecutor multiprocessing os.execv os.execve os.execvp os.execvpe os.fork os.forkpty os.kill os.killpg os.popen
os.posix_spawn os.posix_spawnp os.system psutil.Popen pty subprocess"""


def using(forbidden: set[str]) -> dict[str, set[str]]:
    """The modules that use some of `forbidden`, and which."""
    return {name_of(file): found for file in FILES if (found := forbidden & words(file))}


def test_nothing_spawns_or_kills_outside_processes() -> None:
    assert {
        name: found
        for name, found in using(set(SPAWNING.split())).items()
        if not name.startswith(("processes", "isolation"))
    } == {}


def test_nothing_prints_to_stdout() -> None:
    assert using({"print", "sys.stdout.write", "sys.__stdout__"}) == {}


def test_a_module_begins_with_what_it_is_about() -> None:
    assert [name_of(file) for file in FILES if parsed(file).body and not ast.get_docstring(parsed(file))] == []


def test_only_what_ends_or_checks_processes_looks_at_them() -> None:
    users = using({"psutil"})
    assert {user for user in users if user.split(".")[0] not in ("processes", "testing")} == set()


def loaded_by(*modules: str) -> set[str]:
    """What an interpreter has imported that has imported these."""
    code = f"import sys, {', '.join(modules)}; print(*sys.modules)"
    return {*subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True).stdout.split()}


def test_an_editor_waits_for_nothing_that_only_tools_or_other_clients_need() -> None:
    loaded = loaded_by("msp_bridge.cli.serve", "msp_bridge.dialects.msp")
    heavy = {"cluster", "incremental", "mcp", "processes", "python_engine", "reports.standard", "toolkit"}
    assert not {f"msp_bridge.{name}" for name in heavy} & loaded
    assert not {"distributed", "mcp", "psutil", "pydantic", "sqlite3", "wcmatch"} & loaded


LIGHT = {"configuration", "installation", "mutants", "plan", "setup"}  # of adapters: what looks for projects needs
FOREIGN = """configparser distributed email fastjsonschema html http importlib.metadata mcp psutil rich sqlite3 urllib.request
wcmatch zipfile"""  # none of which an editor waits for


def modules_until_configured(root: Path) -> set[str]:
    """What `serve stdio` in `root` has imported when it has answered `configure`."""
    code = (
        "import atexit, sys; atexit.register(lambda: print(*sys.modules, file=sys.stderr)); "
        "from msp_bridge.__main__ import main; main()"
    )
    body = b'{"jsonrpc": "2.0", "id": 1, "method": "configure", "params": {}}'
    done = subprocess.run(
        [sys.executable, "-c", code, "serve", "stdio"],
        cwd=root,
        env={**os.environ, "MSP_BRIDGE_CACHE": str(root / "cache")},
        input=b"Content-Length: %d\r\n\r\n%b" % (len(body), body),
        capture_output=True,
        check=True,
        timeout=60,
    )
    assert b'"version"' in done.stdout, done.stderr
    return {*done.stderr.decode().splitlines()[-1].split()}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("pyproject.toml", "[tool.mutmut]"),
        ("cosmic-ray.toml", "[cosmic-ray]"),
        ("stryker.config.json", "{}"),
    ],
)
def test_finding_out_whose_a_project_is_waits_for_nothing_that_tests_it(tmp_path: Path, name: str, text: str) -> None:
    """Structure, not time: an import that one of these pulls in again would cost every editor's start."""
    root = tmp_path / "project"
    root.mkdir()
    (root / name).write_text(f"{text}\n")
    loaded = modules_until_configured(root)
    heavy = {"cluster", "incremental", "mcp", "processes", "python_engine", "reports", "testing", "toolkit"}
    assert not {f"msp_bridge.{name}" for name in heavy} & loaded
    parts = {
        name.split(".", 3)[3] for name in loaded if name.startswith("msp_bridge.adapters.") and name.count(".") > 2
    }
    assert parts == {"adapter", *LIGHT}
    loaded_by_platformdirs = {"configparser"} if release(version("platformdirs")) < (4, 12) else set()
    assert loaded.isdisjoint({*FOREIGN.split()} - loaded_by_platformdirs)


def test_no_command_waits_for_an_optional_package() -> None:
    """Nor fails without it: `aiohttp` is for `run --live`, `mcp` for `serve mcp`, `textual` for `browse`."""
    modules = {module.partition(":")[0] for module, *_ in COMMANDS.values()}
    assert not {"aiohttp", "mcp", "textual"} & loaded_by(*(f"msp_bridge.cli.{name}" for name in sorted(modules)))


def test_the_architecture_names_every_package() -> None:
    text = (HERE / "docs/explanation/architecture.md").read_text("utf-8")
    packages = {file.parent.name for file in (HERE / "msp_bridge").glob("*/__init__.py")}
    assert [package for package in sorted(packages) if f"`{package}/" not in text] == []


def test_every_package_is_installed() -> None:
    listed = tomllib.loads((HERE / "pyproject.toml").read_text("utf-8"))["tool"]["setuptools"]["packages"]
    files = (file for top in ("msp_bridge", "adapters") for file in (HERE / top).rglob("*.py"))
    folders = {file.parent.relative_to(HERE).parts for file in files}
    names = {".".join(("msp_bridge", *parts) if parts[0] == "adapters" else parts) for parts in folders}
    assert names | {"msp_bridge.docs"} == set(listed)


def test_nothing_is_used_that_the_pythons_of_uv_do_not_have() -> None:
    """They are built with the headers of an old kernel and an old C library."""
    missing = {"copy_file_range", "getrandom", "memfd_create", "pidfd_open", "pidfd_send_signal"}
    files = [file for top in ("msp_bridge", "adapters") for file in (HERE / top).rglob("*.py")]
    used = {
        (file.name, node.attr)
        for file in files
        for node in ast.walk(ast.parse(file.read_text("utf-8")))
        if isinstance(node, ast.Attribute) and node.attr in missing
    }
    assert used == set()


def test_no_two_test_modules_have_the_same_name() -> None:
    """pytest imports them by their names alone: the second one is an error, and none of its tests runs."""
    names = Counter[str]()
    for _, directories, files in os.walk(HERE / "tests"):
        directories[:] = [name for name in directories if name not in NO_TESTS_OF_OURS]
        names.update(name for name in files if name.startswith("test_") and name.endswith(".py"))
    assert names["test_architecture.py"] == 1
    assert [name for name, count in names.items() if count > 1] == []
