"""The image in real containers: `make docker-test`, no part of `make test`, for it needs a Docker engine or podman."""

# ruff: noqa: D102, D103
from __future__ import annotations

import asyncio
import contextlib
import json
import re
import subprocess
import time
import uuid
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT, UNKNOWN_USER
from engine import Engine
from support.msp_client import LONG, Client, ReaderWriter
from support.new_user import walk

HEALTH = "/opt/msp-bridge/bin/msp-bridge-health"


@pytest.fixture(scope="session")
def image(engine: Engine) -> str:
    return engine.build("localhost/msp-bridge-test/bridge", ROOT, PYTHON_IMAGE=engine.python_image("3.13"))


@pytest.fixture(scope="session")
def with_tools(engine: Engine, image: str) -> str:
    """As docs/how-to/docker.md has it for a base image."""
    return engine.build(
        "localhost/msp-bridge-test/tools",
        ROOT / "docker",
        f"FROM {image}\nUSER root\nRUN pip install --no-cache-dir --root-user-action ignore mutmut pytest\nUSER 1000\n",
    )


def as_owner(project: Path, mode: str = "rw") -> list[str]:
    """The options that docs/how-to/docker.md names: the same path inside as outside, the same user."""
    owner = project.stat()
    place = ["--volume", f"{project}:{project}:{mode}", "--workdir", str(project)]
    return [*place, "--user", f"{owner.st_uid}:{owner.st_gid}"]


def contents(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


@contextlib.asynccontextmanager
async def session(engine: Engine, *arguments: str) -> AsyncIterator[tuple[Client, asyncio.subprocess.Process]]:
    process = await asyncio.create_subprocess_exec(
        *engine.argv("--interactive", *arguments),
        env=engine.environment,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        yield Client(ReaderWriter(process.stdout, process.stdin)), process
    finally:
        process.stdin.close()
        await process.wait()


class Container:
    """A container that runs in the background."""

    def __init__(self, engine: Engine, image: str, *arguments: str, options: Sequence[str] = ()) -> None:
        self._engine, self.name = engine, f"msp-bridge-test-{uuid.uuid4().hex[:12]}"
        self.process = subprocess.Popen(
            engine.argv("--interactive", "--name", self.name, *options, image, *arguments),
            env=engine.environment,
            stdin=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.serving = self.line()

    def line(self) -> str:
        """The next one that the server writes to stderr."""
        assert self.process.stderr is not None
        line = self.process.stderr.readline()
        assert line, "the server has ended"
        return line

    def python(self, code: str) -> str:
        return self._engine("exec", self.name, "python3", "-c", code)

    def health(self) -> tuple[int, str]:
        argv = [self._engine.program, "exec", self.name, HEALTH]
        done = subprocess.run(argv, env=self._engine.environment, capture_output=True, text=True)
        return done.returncode, done.stderr

    def signal(self, name: str) -> None:
        self._engine("kill", "--signal", name, self.name)

    def remove(self) -> None:
        self._engine("rm", "--force", self.name, check=False)
        self.process.communicate(timeout=LONG)


@pytest.fixture
def on_stdio(engine: Engine, image: str) -> Iterator[Container]:
    container = Container(engine, image)
    yield container
    container.remove()


@pytest.fixture
def on_a_socket(engine: Engine, image: str) -> Iterator[Container]:
    container = Container(engine, image, "serve", "socket", "--port", "0")
    yield container
    container.remove()


@pytest.mark.parametrize("mode", ["rw", "ro"])
async def test_an_editor_talks_to_it_over_stdio_about_a_mounted_project(
    engine: Engine, with_tools: str, project: Path, mode: str
) -> None:
    before = contents(project)
    async with session(engine, *as_owner(project, mode), with_tools) as (client, process):
        assert await client.request("configure", {}) == {"version": "0.4.0"}
        path = str(project / "src/shop/cart.py")  # as an editor names it
        found = await client.request("discover", {"files": [{"path": path}]})
        assert list(found["files"]) == ["src/shop/cart.py"]
        await client.request("mutationTest", {"files": [{"path": path}]})
        results = client.take_results()
        assert len(results) == len(found["files"]["src/shop/cart.py"]["mutants"]) > 10
        assert {mutant["status"] for _, mutant in results} == {"Killed", "Survived"}
    assert process.returncode == 0
    assert contents(project) == before


def test_a_report_belongs_to_the_user_who_mounts_the_project(engine: Engine, with_tools: str, project: Path) -> None:
    argv = engine.argv(*as_owner(project), with_tools, "run", "src/shop/cart.py", "--json", "report.json")
    done = subprocess.run(argv, env=engine.environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    report = project / "report.json"
    assert report.stat().st_uid == project.stat().st_uid
    assert json.loads(report.read_text())["files"]


def test_the_path_of_a_new_user(engine: Engine, with_tools: str, project: Path, tmp_path: Path) -> None:
    reports = tmp_path / "reports"
    reports.mkdir()
    reports.chmod(0o777)

    def bridge(
        directory: Path, *arguments: str, env: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        options = [*as_owner(project), "--volume", f"{reports}:{reports}", "--workdir", str(directory)]
        options += [f"--env={name}={value}" for name, value in {"COLUMNS": "200", **(env or {})}.items()]
        argv = engine.argv(*options, with_tools, *arguments)
        return subprocess.run(argv, env=engine.environment, capture_output=True, text=True)

    before = contents(project)
    page = walk(bridge, project, reports).read_text()
    assert contents(project) == before
    assert not re.search(r'<(?:script|link)[^>]+(?:src|href)="https?:', page)


def test_any_user_has_a_home_a_name_and_a_cache(engine: Engine, image: str) -> None:
    code = (
        "import getpass, pathlib, os; getpass.getuser(); (pathlib.Path.home() / 'x').touch();"
        "pathlib.Path(os.environ['MSP_BRIDGE_CACHE'], 'x').touch(); print(os.getuid())"
    )
    argv = engine.argv("--user", f"{UNKNOWN_USER}:{UNKNOWN_USER}", "--entrypoint", "python3", image, "-c", code)
    assert engine(*argv[1:]) == f"{UNKNOWN_USER}\n"


def test_sigterm_ends_it_in_order(on_stdio: Container) -> None:
    assert "serving MSP on stdio" in on_stdio.serving
    on_stdio.signal("TERM")
    assert on_stdio.process.wait(LONG) == 0


def test_sigterm_ends_a_run(engine: Engine, with_tools: str, project: Path) -> None:
    """The signal comes to PID 1, which hands it on: the run ends as one that somebody interrupts."""
    name = f"msp-bridge-test-{uuid.uuid4().hex[:12]}"
    argv = engine.argv("--name", name, *as_owner(project), with_tools, "run")
    with subprocess.Popen(argv, env=engine.environment, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        assert running.stdout.readline().startswith("mutmut: ")
        engine("kill", "--signal", "TERM", name)
        assert running.wait(LONG) == 130


def test_the_end_of_stdin_ends_it(on_stdio: Container) -> None:
    assert on_stdio.process.stdin is not None
    on_stdio.process.stdin.close()
    assert on_stdio.process.wait(LONG) == 0
    on_stdio.process.stdin = None


def test_orphans_are_reaped(on_stdio: Container) -> None:
    orphan = on_stdio.python("import os; pid = os.fork(); print(pid) if pid else os._exit(0)").strip()
    deadline = time.monotonic() + LONG
    while on_stdio.python(f"import os; print(os.path.exists('/proc/{orphan}'))") == "True\n":
        assert time.monotonic() < deadline, "a zombie stays"


def test_health_on_stdio(on_stdio: Container) -> None:
    assert on_stdio.health() == (0, "")


def test_health_on_a_socket(on_a_socket: Container) -> None:
    assert "serving MSP on" in on_a_socket.serving
    assert on_a_socket.health() == (0, "")


@pytest.mark.parametrize("where", ["on_stdio", "on_a_socket"])
def test_a_server_that_is_stopped_is_sick(where: str, request: pytest.FixtureRequest) -> None:
    container: Container = request.getfixturevalue(where)
    container.python("import os, signal; os.kill(-1, signal.SIGSTOP)")
    code, reason = container.health()
    container.python("import os, signal; os.kill(-1, signal.SIGCONT)")
    assert code == 1
    assert "is stopped" in reason


def test_a_remote_editor_needs_the_token(engine: Engine, image: str) -> None:
    argv = ["serve", "socket", "--address", "0.0.0.0", "--port", "0", "--allow-remote"]  # noqa: S104
    refused = subprocess.run(engine.argv(image, *argv), env=engine.environment, capture_output=True, text=True)
    assert refused.returncode == 2
    assert "--allow-remote needs a token" in refused.stderr
    container = Container(engine, image, *argv, options=["--env", "MSP_BRIDGE_TOKEN=0123456789abcdef"])
    try:
        while "serving MSP on" not in container.serving:
            container.serving = container.line()
        assert container.health() == (0, "")
    finally:
        container.remove()


async def test_its_directory_runs_in_an_image_with_another_python(engine: Engine, image: str, project: Path) -> None:
    """As docs/how-to/docker.md has it for a development container: COPY --from."""
    tag = engine.build(
        "localhost/msp-bridge-test/development",
        ROOT / "docker",
        f"FROM {engine.python_image('3.11')}\nCOPY --from={image} /opt/msp-bridge /opt/msp-bridge\n"
        "RUN pip install --no-cache-dir --root-user-action ignore mutmut pytest\n",
    )
    bridge = ["--entrypoint", "/opt/msp-bridge/bin/msp-bridge"]
    async with session(engine, *as_owner(project), *bridge, "--env", "HOME=/tmp", tag, "serve", "stdio") as (client, _):
        assert await client.request("configure", {}) == {"version": "0.4.0"}
        await client.request("mutationTest", {"files": [{"path": "src/shop/cart.py"}]})
        results: list[tuple[str, Any]] = client.take_results()
        assert {mutant["status"] for _, mutant in results} == {"Killed", "Survived"}
