"""What the tests of the Stryker.NET adapter share: the scripted dotnet, and the adapter on a tree."""

import asyncio
import contextlib
import json
import os
import re
import struct
import sys
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import psutil
from attrs import frozen
from msp_bridge.adapters.stryker_net import StrykerNet
from msp_bridge.adapters.stryker_net.sdk import FIXED_FILE_INFO, OBJECT_MODEL, SHARED, TEST_HOST

from msp_bridge.adapter import Adapter, Mutant, Result
from msp_bridge.testing import RunningProcesses
from support import adapters
from support.adapters import detected

SDK = Path(__file__).with_name("scripted") / "dotnet"


@frozen
class Scripted:
    """The scripted dotnet: what it is to do, and what its command lines were."""

    directory: Path
    monkeypatch: Any

    def say(self, **script: Any) -> None:
        """From now on."""
        text = json.dumps({"log": str(self.directory / "log"), **script})
        self.monkeypatch.setenv("SCRIPTED_STRYKER", text)

    @property
    def browser(self) -> Path:
        """Exists when a browser was opened."""
        return self.directory / "browser"

    @property
    def runs(self) -> list[dict[str, Any]]:
        """The arguments and directories of its runs so far."""
        log = self.directory / "log"
        return [json.loads(line) for line in log.read_text("utf-8").splitlines()] if log.exists() else []

    def patterns(self, run: int = -1) -> list[str]:
        """The values of `-m`."""
        words = self.runs[run]["arguments"]
        return [words[at + 1] for at, word in enumerate(words) if word == "-m"]


def scripted_dotnet(directory: Path, monkeypatch: Any) -> Scripted:
    """First on PATH, and no other .NET anywhere. It is run by our Python, since `python3` may be a script that looks for one."""
    others = [place for place in os.environ["PATH"].split(os.pathsep) if not (Path(place) / "dotnet-stryker").exists()]
    monkeypatch.setenv("PATH", os.pathsep.join([str(SDK), str(Path(sys.executable).parent), *others]))
    monkeypatch.setenv("HOME", str(directory / "home"))
    (directory / "home").mkdir()
    scripted = Scripted(directory, monkeypatch)
    monkeypatch.setenv("SCRIPTED_BROWSER", str(scripted.browser))
    scripted.say()
    return scripted


def host_files(directory: Path, version: int, target: str, model: int | None = None, shared: int = 3) -> Path:
    """A directory with the files of a test host, of the version 18.`version`: what is read of them, and nothing else."""
    directory.mkdir(parents=True, exist_ok=True)
    versions = {
        **dict.fromkeys(TEST_HOST, version),
        **dict.fromkeys(OBJECT_MODEL, version if model is None else model),
        **dict.fromkeys(SHARED, shared),
    }
    for name, minor in versions.items():
        content = b"MZ" + FIXED_FILE_INFO + struct.pack("<4H", minor, 18, 0, 0) + b".NETCoreApp,Version=v"
        (directory / name).write_bytes(content + target.encode())
    return directory


VERDICTS = {"a - b": "Killed", "g - h": "Survived", "i - j": "Timeout"}  # of the project net_calc


def chosen(mutants: list[Mutant]) -> list[Mutant]:
    return [mutant for mutant in mutants if mutant.replacement in VERDICTS]


def adapter_on(root: Path, **options: Any) -> AbstractAsyncContextManager[StrykerNet]:
    return detected(StrykerNet, root, **options)


async def results_of(adapter: Adapter, mutants: Sequence[Mutant], **taken: Any) -> list[Result]:
    """As everywhere; but that a scripted tool gives nothing for test hosts is a remark, which most tests have no part in."""
    return await adapters.results_of(adapter, mutants, **{"notices": [], **taken})


def statuses(results: Sequence[Result], mutator: str = "Arithmetic mutation") -> dict[str, str]:
    """The replacement of each mutant to its status."""
    return {result.mutant.replacement: result.status.value for result in results if result.mutant.mutator == mutator}


def of(mutants: list[Mutant], replacement: str) -> Mutant:
    return next(mutant for mutant in mutants if mutant.replacement == replacement)


def outcomes(results: list[Result]) -> set[tuple[str, str, str]]:
    return {(Path(r.mutant.path).name, r.mutant.replacement, r.status.value) for r in results}


async def started(running: RunningProcesses, command: str) -> psutil.Process:
    """The process whose command line begins with the pattern `command`, as soon as there is one."""
    async with asyncio.timeout(300):
        while True:
            for process in running.look():
                with contextlib.suppress(psutil.Error):
                    if re.match(command, " ".join(process.cmdline()), re.IGNORECASE):
                        return process
            await asyncio.sleep(0.02)


async def kill(running: RunningProcesses, command: str) -> None:
    """Kill that process."""
    process = await started(running, command)
    with contextlib.suppress(psutil.Error):
        process.kill()
