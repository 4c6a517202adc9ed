"""A slow network: each port is reached by a relay that passes on what comes late, and now and then much later.

So a lost packet looks from both ends of a connection: TCP sends it again after a while, and what follows waits for it.
The relays have threads of their own, since a test may hold up its loop.
"""

import contextlib
import random
import socket
import threading
import time
from collections.abc import Iterator
from socketserver import BaseRequestHandler, ThreadingTCPServer

HOST = "127.0.0.1"
DELAY_S, AGAIN_S = 0.05, 0.3  # one way, and until what was lost is sent again
LOSS = 0.02  # the part of what is sent that is lost


class SlowNetwork:
    """Its relays, and what they have carried so far."""

    def __init__(self) -> None:
        self._chance, self._over = random.Random(1), threading.Event()
        self._relays: list[ThreadingTCPServer] = []
        self.carried = self.lost = 0

    def reached(self, port: int) -> int:
        """The port by which `port` is reached."""
        network = self

        class Relay(BaseRequestHandler):
            def handle(self) -> None:
                with contextlib.suppress(OSError), network._connected(port) as there:
                    back = threading.Thread(target=network._carry, args=(there, self.request))
                    back.start()
                    network._carry(self.request, there)
                    back.join()

        relay = ThreadingTCPServer((HOST, 0), Relay)
        threading.Thread(target=relay.serve_forever).start()
        self._relays.append(relay)
        return relay.server_address[1]

    def close(self) -> None:
        """Returns when the last connection has ended."""
        self._over.set()
        for relay in self._relays:
            relay.shutdown()
            relay.server_close()

    def _connected(self, port: int) -> socket.socket:
        """As soon as somebody listens there."""
        while not self._over.wait(0.02):
            with contextlib.suppress(ConnectionRefusedError):
                return socket.create_connection((HOST, port))
        raise ConnectionRefusedError(port)

    def _carry(self, source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while piece := source.recv(65536):
                lost = self._chance.random() < LOSS
                time.sleep(DELAY_S + lost * AGAIN_S)
                target.sendall(piece)
                self.carried += 1
                self.lost += lost
            target.shutdown(socket.SHUT_WR)


@contextlib.contextmanager
def slow_network() -> Iterator[SlowNetwork]:
    """One that is there while the block lasts."""
    with contextlib.closing(SlowNetwork()) as network:
        yield network
