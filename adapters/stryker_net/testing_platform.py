"""Microsoft.Testing.Platform (MTP): the test program is its own host, started anew for each mutant.

`dotnet X.Tests.dll --server --client-host 127.0.0.1 --client-port P` connects to a socket of ours and speaks JSON-
RPC, framed by Content-Length. `testing/runTests` takes the tests as they were received; `testing/testUpdates/tests`
reports each of them. xunit v3, MSTest, NUnit and TUnit have it.
[https://github.com/microsoft/testfx/blob/main/docs/mstest-runner-protocol/001-protocol-intro.md]
"""

import json
import os
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from msp_bridge.adapter import ToolError
from msp_bridge.concurrency import at_most
from msp_bridge.jsonrpc.client import MessageReader
from msp_bridge.jsonrpc.framing import frame
from msp_bridge.jsonrpc.messages import notification, request, response

from .hosts import LEAVE_S, Case, Host

FAILED = frozenset({"failed", "error", "timed-out", "cancelled"})
ENDED = FAILED | {"passed", "skipped"}
SELECTING = ("uid", "display-name", "node-type", "location.type", "location.method")  # of a test's node


class HostProgram(Host):
    """One test program."""

    name = "the test program"

    @staticmethod
    def command(source: str, port: int) -> list[str]:
        """Implement `Host.command`."""
        return ["dotnet", source, "--server", "--client-host", "127.0.0.1", "--client-port", str(port)]

    async def run(self, cases: Sequence[Case] | None) -> None:
        """Implement `Host.run`."""
        chosen = {} if cases is None else {"tests": [json.loads(case.selector) for case in cases]}
        try:
            await self._initialize()
            await self._ask(2, "testing/runTests", {"runId": str(uuid.uuid4()), **chosen})
        except OSError:
            await self._ended()
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ToolError(
                f"{self._source} sent what is no message ({error!r})", "update its test framework"
            ) from error

    async def discover(self) -> None:
        """Implement `Host.discover`."""
        await self._initialize()
        await self._ask(2, "testing/discoverTests", {"runId": str(uuid.uuid4())})
        await self._link.write(frame(notification("exit", {})))
        async with at_most(LEAVE_S):
            await self._link.tree.exited()

    async def _initialize(self) -> None:
        self._reader = MessageReader(self._link, self.name)
        client = {"processId": os.getpid(), "clientInfo": {"name": "msp-bridge", "version": "1"}}
        await self._ask(1, "initialize", client | {"capabilities": {"testing": {"debuggerProvider": False}}})

    async def _ask(self, number: int, method: str, params: Any) -> None:
        """Send a request, and take what comes until its response. Raises OSError when the connection ends before."""
        await self._link.write(frame(request(number, method, params)))
        while not (self._stops and self.failures):
            message = await self._reader.receive()
            if message is None:
                raise ConnectionResetError
            if message.get("method") == "testing/testUpdates/tests":
                for change in message["params"].get("changes") or ():
                    self._take(change["node"])
            elif "method" in message and "id" in message:  # a request of the program: to attach a debugger
                await self._link.write(frame(response(message["id"], None)))
            elif message.get("id") == number:
                if "error" in message:
                    self.fault = f"the test program refused: {message['error'].get('message')}"
                return

    def _take(self, node: Mapping[str, Any]) -> None:
        state = node.get("execution-state")
        if state not in ENDED:
            return
        name, failed = str(node["display-name"]), state in FAILED
        selector = json.dumps({key: node[key] for key in SELECTING if key in node} | {"execution-state": "discovered"})
        seconds = float(node.get("time.duration-ms") or 0) / 1000
        self.cases[node["uid"]] = Case(node["uid"], name, self._source, selector, seconds, failed)
        if failed:
            self._note_failure(name, str(node.get("error.message") or ""))
