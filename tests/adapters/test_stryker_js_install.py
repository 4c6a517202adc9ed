"""The commands that set StrykerJS up are run as they are printed, by each package manager, from a registry on loopback."""

import base64
import hashlib
import io
import json
import os
import subprocess
import tarfile
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote

import pytest
from msp_bridge.adapters.stryker_js import StrykerJs
from msp_bridge.adapters.stryker_js.installation import StrykerJsInstallation
from support import environments
from support.adapters import project_at
from support.files import written
from support.stryker_js_trees import TESTS

NPM = TESTS / "npm"
PROGRAMS = {  # the scripts that Node runs; npm is on PATH
    "pnpm": NPM / "pnpm/node_modules/pnpm/bin/pnpm.cjs",
    "yarn": NPM / "yarn/node_modules/@yarnpkg/cli-dist/bin/yarn.js",
    "yarn 1": NPM / "yarn/node_modules/yarn/bin/yarn.js",
}
CORE, VERSION = "@stryker-mutator/core", "9.6.1"
PACKAGE = {"name": CORE, "version": VERSION, "bin": {"stryker": "bin/stryker.js"}}
SCRIPT = "#!/usr/bin/env node\nrequire('fs').writeFileSync('ran.txt', process.argv.slice(2).join(' '));\n"
WORKSPACE = '{"name": "ours", "version": "1.0.0", "private": true, "workspaces": ["packages/*"]}'
ALONE = '{"name": "ours", "version": "1.0.0", "private": true}'
MEMBER = '{"name": "part", "version": "1.0.0"}'
TIMEOUT_S = 300.0


def tarball() -> bytes:
    """A StrykerJS that does nothing but write its arguments to `ran.txt`."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for name, text in {"package.json": json.dumps(PACKAGE), "bin/stryker.js": SCRIPT}.items():
            entry = tarfile.TarInfo(f"package/{name}")
            entry.size, entry.mode = len(text.encode()), 0o755
            archive.addfile(entry, io.BytesIO(text.encode()))
    return packed.getvalue()


@pytest.fixture(scope="module")
def registry() -> Iterator[str]:
    """The address of a package registry that has only this StrykerJS."""
    packed = tarball()
    integrity = "sha512-" + base64.b64encode(hashlib.sha512(packed).digest()).decode()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path.endswith(".tgz"):
                self._answer(200, packed)
            elif unquote(self.path) == f"/{CORE}":
                dist = {"tarball": f"{address}/core.tgz", "integrity": integrity}
                versions = {VERSION: {**PACKAGE, "dist": dist}}
                document = {"name": CORE, "dist-tags": {"latest": VERSION}, "versions": versions}
                self._answer(200, json.dumps(document).encode())
            else:
                self._answer(404, b"{}")

        def _answer(self, status: int, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Silent."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        address = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield address
        server.shutdown()
        thread.join()


def environment(directory: Path, program: str) -> dict[str, str]:
    """Where `program` is on PATH by its name, and which has a home directory of its own."""
    programs = directory / "bin"
    programs.mkdir()
    if program in PROGRAMS:
        assert PROGRAMS[program].is_file(), f"{PROGRAMS[program]} is missing: `make test` installs it"
        environments.program(programs / program.split()[0], f'exec node "{PROGRAMS[program]}" "$@"')
    own = {
        "HOME": str(directory),
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "CI": "",
        "NO_PROXY": "127.0.0.1",
        "YARN_CACHE_FOLDER": str(directory / "yarn"),  # Yarn 1 has another place for root
    }
    return {name: os.environ[name] for name in ("LANG", "TMPDIR") if name in os.environ} | own


def configure(root: Path, registry: str) -> None:
    """In the files of the project, which each package manager reads."""
    (root / ".npmrc").write_text(f"registry={registry}/\naudit=false\nupdate-notifier=false\n")
    settings = [f'npmRegistryServer: "{registry}"', 'unsafeHttpWhitelist: ["127.0.0.1"]', "enableTelemetry: false"]
    (root / ".yarnrc.yml").write_text("\n".join([*settings, "enableGlobalCache: false", ""]))
    (root / ".yarnrc").write_text(f'registry "{registry}"\ndisable-self-update-check true\n')


@pytest.mark.parametrize(
    ("program", "files", "folder"),
    [
        pytest.param("npm", {"package.json": ALONE}, ".", id="npm"),
        pytest.param("npm", {"package.json": WORKSPACE}, ".", id="npm, a workspace"),
        pytest.param("npm", {"package.json": WORKSPACE}, "packages/part", id="npm, a part of a workspace"),
        pytest.param("pnpm", {"package.json": ALONE, "pnpm-lock.yaml": ""}, ".", id="pnpm"),
        pytest.param(
            "pnpm",
            {"package.json": ALONE, "pnpm-lock.yaml": "", "pnpm-workspace.yaml": "packages: ['packages/*']\n"},
            ".",
            id="pnpm, a workspace",
        ),
        pytest.param(
            "pnpm",
            {"package.json": ALONE, "pnpm-lock.yaml": "", "pnpm-workspace.yaml": "packages: ['packages/*']\n"},
            "packages/part",
            id="pnpm, a part of a workspace",
        ),
        pytest.param("yarn", {"package.json": ALONE, "yarn.lock": ""}, ".", id="Yarn"),
        pytest.param("yarn", {"package.json": WORKSPACE, "yarn.lock": ""}, ".", id="Yarn, a workspace"),
        pytest.param(
            "yarn", {"package.json": WORKSPACE, "yarn.lock": ""}, "packages/part", id="Yarn, a part of a workspace"
        ),
        pytest.param("yarn 1", {"package.json": ALONE, "yarn.lock": "# yarn lockfile v1\n"}, ".", id="Yarn 1"),
        pytest.param(
            "yarn 1", {"package.json": WORKSPACE, "yarn.lock": "# yarn lockfile v1\n"}, ".", id="Yarn 1, a workspace"
        ),
    ],
)
def test_the_printed_command_installs_stryker_and_starts_its_set_up(
    tmp_path: Path, registry: str, program: str, files: dict[str, str], folder: str
) -> None:
    repository = tmp_path / "a repository"
    (repository / "packages/part").mkdir(parents=True)
    (repository / "packages/part/package.json").write_text(MEMBER)
    written(repository, files)
    configure(repository, registry)
    root = repository / folder
    command = StrykerJs.absent(project_at(root, cache=tmp_path / "cache")).remedy
    assert command is not None
    env = environment(tmp_path, program)
    done = subprocess.run(command, shell=True, cwd=root, env=env, capture_output=True, text=True, timeout=TIMEOUT_S)
    assert done.returncode == 0, (command, done.stdout, done.stderr)
    assert (root / "ran.txt").read_text() == "init"
    assert StrykerJsInstallation.find(root).version == VERSION
    assert CORE in json.loads((root / "package.json").read_text())["devDependencies"]
