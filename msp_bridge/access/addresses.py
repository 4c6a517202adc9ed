"""Addresses: where a server listens, and whether other machines can reach that."""

import errno
import ipaddress
import socket
from typing import Any, Self

from attrs import frozen

from msp_bridge.errors import BridgeError

PORT_TRIES = 20  # `--port 0`: how often a port that is free for one address family may be taken for another
BACKLOG = 100

Info = tuple[socket.AddressFamily, socket.SocketKind, int, tuple[Any, ...]]


@frozen
class Addresses:
    """Every address that a name means (localhost is often two), all with the same port."""

    name: str
    port: int
    _infos: tuple[Info, ...]

    @classmethod
    def resolve(cls, name: str, port: int) -> Self:
        """Resolve `name` to its addresses as of now; 0 is any free port. Raises BridgeError."""
        try:
            found = socket.getaddrinfo(name, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        except (OSError, UnicodeError) as error:
            raise _listen_error(name, port, error) from None
        infos: list[Info] = [(family, kind, protocol, address) for family, kind, protocol, _, address in found]
        return cls(name, port, tuple(dict.fromkeys(infos)))

    @property
    def remote(self) -> bool:
        """Whether other machines can reach one of them."""
        return not all(is_this_machine(address[0]) for _, _, _, address in self._infos)

    def listen(self) -> list[socket.socket]:
        """A socket that listens on each of them. Raises BridgeError."""
        for _ in range(PORT_TRIES):
            try:
                return self._bind_all()
            except OSError as error:
                if error.errno == errno.EADDRINUSE and self.port == 0:
                    continue
                raise _listen_error(self.name, self.port, error) from None
        raise BridgeError(f"can't find a port that is free on every address of {self.name}", "name one with --port")

    def _bind_all(self) -> list[socket.socket]:
        port, sockets = self.port, list[socket.socket]()
        try:
            for family, kind, protocol, address in self._infos:
                try:
                    bound = socket.socket(family, kind, protocol)
                except OSError:  # an address family that this kernel was built without
                    continue
                sockets.append(bound)
                _set_up(bound)
                try:
                    bound.bind((address[0], port or address[1], *address[2:]))
                except OSError as error:
                    # `localhost` is ::1 too, but IPv6 is switched off
                    if error.errno == errno.EADDRNOTAVAIL and len(self._infos) > 1:
                        sockets.pop().close()
                        continue
                    raise
                port = bound.getsockname()[1]
                bound.listen(BACKLOG)
        except BaseException:
            for bound in sockets:
                bound.close()
            raise
        if not sockets:
            raise OSError(errno.EADDRNOTAVAIL, "no such address on this machine")
        return sockets


def is_this_machine(host: str) -> bool:
    """Whether `host`, a name or an IP address, means this machine on every network; no name is looked up."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def address_text(address: Any) -> str:
    """A socket's address as text: `127.0.0.1:5678`, `[::1]:5678`."""
    match address:
        case (str(host), int(port), *_):
            return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    return str(address)


def _set_up(bound: socket.socket) -> None:
    bound.setblocking(False)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if bound.family == socket.AF_INET6:
        bound.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)


def _listen_error(name: str, port: int, error: Exception) -> BridgeError:
    match error:
        case OSError(errno=errno.EADDRINUSE):
            return BridgeError(
                f"port {port} on {name} is already in use", "stop what uses it, or choose another (0 picks a free one)"
            )
        case OSError(errno=errno.EACCES):
            return BridgeError(f"not allowed to listen on port {port}", "choose one above 1023 (0 picks a free one)")
    return BridgeError(f"can't listen on {name}:{port}: {getattr(error, 'strerror', None) or error}")
