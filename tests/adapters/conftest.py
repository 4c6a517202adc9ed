"""Fixtures of the adapters' tests."""

import asyncio
import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from support.go_trees import PROGRAMS
from support.net_trees import Scripted, scripted_dotnet

from msp_bridge.toolkit import Isolation


@pytest.fixture(scope="session")
def pit_tools(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where PIT is kept as it was resolved and compiled, for all tests of all processes."""
    mine = tmp_path_factory.getbasetemp()
    place = (mine.parent if "PYTEST_XDIST_WORKER" in os.environ else mine) / "pit"
    place.mkdir(exist_ok=True)
    return place


@pytest.fixture
def lasting() -> Iterator[Path]:
    """A directory that is not among temporary files, of which a tool that is isolated has its own."""
    directory = Path(tempfile.mkdtemp(dir="/var/lib" if os.access("/var/lib", os.W_OK) else Path.home()))
    yield directory
    shutil.rmtree(directory)


@pytest.fixture
def starts(lasting: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the tests of the project js_command write a line when they start."""
    file = lasting / "starts"
    monkeypatch.setenv("JS_COMMAND_LOG", str(file))
    return file


@pytest.fixture(params=[True, False], ids=["isolated", "portable"])
def isolated(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """The test is run in both ways; isolated only as far as the machine permits it."""
    if not request.param:
        monkeypatch.setenv("MSP_BRIDGE_ISOLATION", "off")
    return bool(request.param)


@pytest.fixture
def portable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without isolation: what fails isolated is tried once more without it, which costs another start of the tool."""
    monkeypatch.setenv("MSP_BRIDGE_ISOLATION", "off")


@pytest.fixture
def dotnet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Scripted:
    """The scripted dotnet, on PATH."""
    return scripted_dotnet(tmp_path, monkeypatch)


@pytest.fixture
def go_programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """go and gremlins are on PATH. The adapter's own program in Go is built once for all tests of the process."""
    monkeypatch.setenv("PATH", PROGRAMS)
    (tmp_path / "cache").mkdir()
    (tmp_path.parent / "gremlins").mkdir(exist_ok=True)
    (tmp_path / "cache" / "gremlins").symlink_to(tmp_path.parent / "gremlins")


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The empty directory for temporary files of the system."""
    directory = tmp_path / "temporary"
    directory.mkdir()
    monkeypatch.setenv("TMPDIR", str(directory))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return directory


@pytest.fixture
async def service() -> AsyncIterator[int]:
    """The port of something on this machine that the tests of a project talk to."""
    server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]


@pytest.fixture
async def permitted(lasting: Path) -> None:
    """Isolation with all its parts, where the test has not switched it off."""
    isolation = Isolation.of("a tool", lasting, network=False)
    await isolation.probe()
    if os.environ.get("MSP_BRIDGE_ISOLATION") != "off" and len(isolation.parts) < 5:
        pytest.skip(f"this machine permits no isolation: {isolation.description}")
