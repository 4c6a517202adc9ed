"""Commands that one process runs one after another, each in a world of its own."""

import os
from collections.abc import AsyncIterator
from pathlib import Path

import psutil
import pytest

from msp_bridge.concurrency import in_thread
from msp_bridge.isolation.printed import HEAD, MIDDLE, TAIL
from msp_bridge.toolkit import Isolation, JsonLinesProcess

STRAY = (
    'import os, time\nif os.fork() == 0:\n    os.setsid()\n    os.write(1, b"%d" % os.getpid())\n    time.sleep(600)'
)


@pytest.fixture(params=["all parts", "overlay"])
async def host(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[JsonLinesProcess]:
    """With a process namespace for each command, and without."""
    if request.param == "overlay":
        monkeypatch.setenv("MSP_BRIDGE_ISOLATION", "overlay")
    root, home = tmp_path / "root", tmp_path / "home"
    root.mkdir()
    home.mkdir()
    isolation = Isolation.of("a test", root, network=False)
    await isolation.probe()
    if not isolation.is_on:
        pytest.skip("this machine permits no isolation")
    argv = await in_thread(isolation.command, isolation.root, (), [home], home)
    process = await JsonLinesProcess.start(argv, name="the host", cwd=root)
    yield process
    await process.close()


async def run(
    host: JsonLinesProcess, tmp_path: Path, script: str, seconds: float | None = None
) -> tuple[int | None, str]:
    command = ["python3", "-c", script] if "import" in script else ["sh", "-c", script]
    limits = {"seconds": seconds, "wanted": "wanted"}
    question = {"command": command, "cwd": str(tmp_path / "root"), "env": {"WORD": "given"}, **limits}
    answer = await host.ask(question)
    return answer["code"], answer["printed"]


async def test_each_command_begins_where_the_first_did(host: JsonLinesProcess, tmp_path: Path) -> None:
    for _ in range(2):
        assert await run(host, tmp_path, 'ls; echo "$WORD" >&2; echo left > file; ls; exit 3') == (3, "given\nfile\n")
    assert os.listdir(tmp_path / "root") == []
    assert await run(host, tmp_path, "kill -KILL $$") == (128 + 9, "")
    assert (await run(host, tmp_path, "exec /missing"))[0] == 127


async def test_what_is_printed_is_bounded(host: JsonLinesProcess, tmp_path: Path) -> None:
    code, printed = await run(host, tmp_path, "echo first; yes | head -c 3000000; echo last")
    assert code == 0
    assert printed.startswith("first\n")
    assert printed.endswith("last\n")
    assert len(printed) <= HEAD + TAIL


async def test_wanted_lines_in_the_middle_of_much_output_are_kept(host: JsonLinesProcess, tmp_path: Path) -> None:
    much = "yes unwanted | head -c 500001; echo; "
    _, printed = await run(
        host, tmp_path, f"{much} echo wanted 1; {much} echo wanted 2; {much} yes wanted | head -c 900000"
    )
    lines = printed.splitlines()
    assert len(printed) <= HEAD + MIDDLE + TAIL
    assert [line for line in lines if line.startswith("wanted ")] == ["wanted 1", "wanted 2"]
    assert set(lines) - {"wanted 1", "wanted 2"} <= {"unwanted", "wanted", "", *(lines[-1:])}


async def test_a_command_is_ended_at_its_limit_with_all_that_it_has_started(
    host: JsonLinesProcess, tmp_path: Path
) -> None:
    assert (await run(host, tmp_path, "sleep 600 & sleep 600", 0.2))[0] is None
    code, _ = await run(host, tmp_path, STRAY)
    assert code == 0  # it does not wait for the stray, which holds the output open
    left = [each.cmdline() for each in psutil.Process(host.pid).children(recursive=True)]
    assert [argv for argv in left if STRAY in argv or argv[:1] == ["sleep"]] == []
