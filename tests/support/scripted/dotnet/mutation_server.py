"""The mutation server of the scripted dotnet: `serve stdio` as https://github.com/stryker-mutator/stryker-net/pull/3847
has it, as far as the adapter can see. It is not the real tool.

Each request builds and mutates anew. Faults mean here: `mute` never answers anything; `hang` never answers more than
`configure`, nor does it answer a cancel; `deaf` ignores cancels; `crash` and `killed` end it half-way; `compile-error` is an error answer; `silent` an answer without results;
`noise` is on stdout around every message; `unfinished` never tests the last mutant; `other-shape` is what it says;
`flood` announces a message that no one could hold.
"""

from __future__ import annotations

import hashlib
import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any


class Cancelled(Exception):
    pass


class MutationServer:
    def __init__(self, dotnet: Any, options: list[str]) -> None:
        self.dotnet, self.options = dotnet, options
        self.requests: queue.Queue[dict | None] = queue.Queue()
        self.cancelled: set[int] = set()
        self.base = Path.cwd()
        self.out, sys.stdout = sys.stdout.buffer, sys.stderr

    def run(self) -> int:
        threading.Thread(target=self.read, daemon=True).start()
        while (request := self.requests.get()) is not None:
            self.dotnet.read_script_again()
            if "log" in self.script:
                with open(f"{self.script['log']}.requests", "a", encoding="utf-8") as log:
                    log.write(json.dumps({**request, "pid": os.getpid()}) + "\n")
            self.answer(request)
        return 0

    @property
    def script(self) -> dict:
        return self.dotnet.SCRIPT

    @property
    def fault(self) -> str | None:
        return self.dotnet.FAULT

    def read(self) -> None:
        while header := sys.stdin.buffer.readline():
            length = int(header.partition(b":")[2])
            sys.stdin.buffer.readline()
            message = json.loads(sys.stdin.buffer.read(length))
            if message["method"] == "$/cancelRequest":
                self.cancelled.add(message["params"]["id"])
            else:
                self.requests.put(message)
        self.requests.put(None)

    def answer(self, request: dict) -> None:
        method, number = request["method"], request["id"]
        self.wait(number, lambda: self.fault != "mute")
        try:
            if method == "configure":
                result: Any = {"version": "0.4.0"}
            elif method == "discover":
                result = self.discover(number)
            else:
                result = self.test(number, request["params"]["mutants"])
            self.send({"id": number, "result": result})
        except Cancelled:
            self.send({"id": number, "error": {"code": -32800, "message": "The task was canceled."}})
        except Refusal as error:
            self.send({"id": number, "error": {"code": -32000, "message": str(error)}})

    def discover(self, number: int) -> dict:
        files = {}
        _, sources, assemblies = self.prepare(number)
        for source in sources:
            listed = [self.described(mutant) for mutant in source.mutants if mutant.status != "Ignored"]
            files[self.name(source)] = {"mutants": listed}
        self.restore(assemblies)
        return {"files": []} if self.fault == "other-shape" else {"files": files}

    def test(self, number: int, wanted: dict) -> dict:
        stryker, sources, assemblies = self.prepare(number)
        ids = {os.path.abspath(path): {entry["id"] for entry in file["mutants"]} for path, file in wanted.items()}
        files = [source for source in sources if str(source.path) in ids]
        chosen = [mutant for source in files for mutant in source.mutants if self.id(mutant) in ids[str(source.path)]]
        if self.fault == "silent":
            print("[07:20:01 FTL] Compilation failed: the mutated code has an error", flush=True)
            self.restore(assemblies)
            return {"files": {}}
        for mutant in chosen:
            if mutant.status != "Pending":
                self.tell(mutant)
        pending = [mutant for mutant in chosen if mutant.status == "Pending"]
        if self.script.get("stray"):
            subprocess.Popen(
                ["sleep", "600"], start_new_session=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL
            )
        try:
            for at, mutant in enumerate(pending):
                if at == 1 and "gate" in self.script:
                    self.wait(number, lambda: os.path.exists(self.script["gate"]))
                if at == len(pending) // 2:
                    self.break_down()
                if self.fault == "unfinished" and mutant is pending[-1]:
                    mutant.status, mutant.reason = "RuntimeError", "Stryker did not complete this mutant test."
                else:
                    stryker.judge(mutant)
                self.tell(mutant)
        finally:
            self.restore(assemblies)
        return {"files": {}}

    def prepare(self, number: int) -> tuple:
        self.wait(number, lambda: self.fault != "hang")
        if self.fault == "compile-error":
            print("[07:20:01 ERR] Calc.cs(3,5): error CS1002: ; expected", flush=True)
            raise Refusal(
                f"Initial build of targeted project failed: {self.base}/Calc.cs(3,5): error CS1002: ; expected"
            )
        stryker = self.dotnet.Stryker(self.dotnet.options_of(self.options))
        projects, tests = stryker.projects()
        assemblies = stryker.build(projects, tests)
        stryker.read_tests(tests)
        if any(b"mutated" in assembly.read_bytes() for assembly in assemblies):
            raise Refusal("Initial testrun has failing tests: the assembly is mutated")
        sources = stryker.mutate(projects)
        for assembly in assemblies:
            os.replace(assembly, f"{assembly}{self.dotnet.BACKUP}")
            assembly.write_bytes(b"mutated")
        return stryker, sources, assemblies

    def restore(self, assemblies: list[Path]) -> None:
        for assembly in assemblies:
            os.replace(f"{assembly}{self.dotnet.BACKUP}", assembly)

    def wait(self, number: int, over: Any) -> None:
        while not over():
            if number in self.cancelled and self.fault not in ("hang", "deaf", "mute"):
                raise Cancelled
            time.sleep(0.01)

    def break_down(self) -> None:
        if self.fault == "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        if self.fault == "crash":
            print("Unhandled exception. System.IO.IOException: No space left on device", flush=True)
            os._exit(134)
        if self.fault == "flood":
            self.out.write(b"Content-Length: 999999999\r\n\r\n{")
            self.out.flush()

    def tell(self, mutant: Any) -> None:
        told = {
            "coveredBy": mutant.covered_by or None,
            "killedBy": mutant.killed_by or None,
            "static": False,
            "status": mutant.status,
            "statusReason": mutant.reason,
        }
        entry = {**self.described(mutant), **{key: value for key, value in told.items() if value is not None}}
        files = {self.name(mutant.file): {"mutants": [entry]}}
        self.send({"method": "reportMutationTestProgress", "params": {"files": files}})

    def send(self, message: dict) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        if self.fault == "noise":
            self.out.write(b'\xff\xfe[07:20:00 INF] {"jsonrpc": \nContent-Length: 5\r\n\r\n\x1b[2J')
        self.out.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        self.out.flush()

    def described(self, mutant: Any) -> dict:
        entry = mutant.entry(nulls=True)
        described = {key: entry[key] for key in ("location", "mutatorName", "replacement")}
        return {"id": self.id(mutant), **described}

    def id(self, mutant: Any) -> str:
        entry = mutant.entry(nulls=True)
        (start, end) = (entry["location"][edge] for edge in ("start", "end"))
        place = f"{start['line']}:{start['column']}-{end['line']}:{end['column']}"
        words = "\n".join((self.name(mutant.file), place, mutant.name, mutant.replacement, ""))
        return hashlib.sha256(words.encode()).hexdigest().upper()

    def name(self, source: Any) -> str:
        return os.path.relpath(source.path, self.base)


class Refusal(Exception):
    pass
