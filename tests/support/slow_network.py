"""A slow network: a network namespace whose one link delays packets and loses some of them.

This thread, and the processes that it starts, are in the namespace: no packet leaves the machine. Who listens at `HERE` is
reached at `THERE`, over the link: a packet for `THERE` comes back as one from `THERE` to `HERE`. Source and destination are
swapped, which changes no checksum; so the kernel's own TCP deals with what is late or lost. It takes root and /dev/net/tun,
and not the kernel's `netem`, which many kernels are built without.
"""

import contextlib
import ctypes
import errno
import fcntl
import os
import random
import select
import socket
import struct
import threading
import time
from collections.abc import Iterator
from heapq import heappop, heappush

import pytest

HERE, THERE = "10.0.0.1", "10.0.0.2"
CLONE_NEWNET = 0x40000000
TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 1, 0x1000
SIOCSIFFLAGS, IFF_UP = 0x8914, 1
SIOCSIFADDR, SIOCSIFDSTADDR = 0x8916, 0x8918


class Link:
    """Carries packets in a thread of its own: each `delay` s late, and the part `loss` of them not at all."""

    def __init__(self, tun: int, delay: float, loss: float) -> None:
        self._tun, self._delay, self._loss = tun, delay, loss
        self._chance = random.Random(1)
        self._ended, self._wake = os.pipe()
        self._thread = threading.Thread(target=self._carry, name="slow link")
        self.carried = self.lost = 0
        self._thread.start()

    def close(self) -> None:
        os.close(self._wake)
        self._thread.join()
        os.close(self._ended)

    def _carry(self) -> None:
        waiting: list[tuple[float, int, bytes]] = []
        while True:
            timeout = max(0.0, waiting[0][0] - time.monotonic()) if waiting else None
            readable = select.select([self._tun, self._ended], [], [], timeout)[0]
            if self._ended in readable:
                return
            if self._tun in readable:
                packet = os.read(self._tun, 65536)
                if packet[0] >> 4 == 4:
                    if self._chance.random() < self._loss:
                        self.lost += 1
                    else:
                        self.carried += 1
                        swapped = packet[:12] + packet[16:20] + packet[12:16] + packet[20:]
                        heappush(waiting, (time.monotonic() + self._delay, self.carried, swapped))
            while waiting and waiting[0][0] <= time.monotonic():
                os.write(self._tun, heappop(waiting)[2])


@contextlib.contextmanager
def slow_network(delay: float, loss: float) -> Iterator[Link]:
    """With a link of `delay` s each way that loses the part `loss` of the packets; skips where that is not permitted."""
    libc = ctypes.CDLL(None, use_errno=True)
    with contextlib.ExitStack() as stack:
        outside = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
        stack.callback(os.close, outside)
        if libc.unshare(CLONE_NEWNET):
            pytest.skip(f"may not make a network namespace: {errno.errorcode[ctypes.get_errno()]}")
        stack.callback(libc.setns, outside, CLONE_NEWNET)
        try:
            tun = os.open("/dev/net/tun", os.O_RDWR)
        except OSError as error:
            pytest.skip(f"may not make a link: {error}")
        stack.callback(os.close, tun)
        _set_up(tun)
        link = Link(tun, delay, loss)
        stack.callback(link.close)
        yield link


def _set_up(tun: int) -> None:
    name = b"slow"
    fcntl.ioctl(tun, TUNSETIFF, struct.pack("16sH22x", name, IFF_TUN | IFF_NO_PI))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        for request, address in ((SIOCSIFADDR, HERE), (SIOCSIFDSTADDR, THERE)):
            place = struct.pack("16sH2x4s16x", name, socket.AF_INET, socket.inet_aton(address))
            fcntl.ioctl(any_socket, request, place)
        for device in (b"lo", name):
            fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sH22x", device, IFF_UP))
