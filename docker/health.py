#!/usr/bin/env -S python3 -I
"""Whether the server in this container is alive, as HEALTHCHECK asks: exit code 0, or 1 and the reason.

On a socket it must answer, and so over HTTP. To connect would prove nothing: the kernel accepts for a server that
hangs. On stdio only its client can ask it anything: there it must merely not be stopped, and when it ends, the
container ends.
"""

import os
import socket
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.realpath(__file__))), "lib"))
import psutil

TIMEOUT = 5.0  # seconds
BODY = b'{"jsonrpc": "2.0", "id": 1, "method": "health"}'  # there is no such method: the answer is an error, at once
MESSAGE = b"Content-Length: %d\r\n\r\n%s" % (len(BODY), BODY)
REQUEST = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"  # nor such a page


def main() -> None:
    """Asks every server of this container."""
    for process in psutil.process_iter(["cmdline", "status"]):
        arguments = process.info["cmdline"] or []
        if not ("serve" in arguments and any(os.path.basename(argument) == "msp-bridge" for argument in arguments)):
            continue
        if process.info["status"] == psutil.STATUS_STOPPED:
            sys.exit(f"the server, process {process.pid}, is stopped")
        for connection in process.net_connections("tcp"):
            if connection.status == psutil.CONN_LISTEN:
                _ask(*connection.laddr, REQUEST if "mcp" in arguments else MESSAGE)


def _ask(address: str, port: int, question: bytes) -> None:
    try:  # Linux takes "every address", 0.0.0.0 or ::, for this machine
        with socket.create_connection((address, port), timeout=TIMEOUT) as connection:
            connection.sendall(question)
            connection.recv(1)  # an answer; or the end, from a server that wants a token or TLS first
    except ConnectionResetError:
        return  # such an end, too
    except OSError as error:
        sys.exit(f"the server on port {port} does not answer: {error}")


main()
