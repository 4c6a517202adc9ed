"""MemoryStream: a ByteStream between two parties in one process, with room for a few bytes only, as a real pipe has."""

import asyncio
from typing import Self

ROOM = 64 * 1024


class Pipe:
    """Bytes in one direction."""

    def __init__(self, room: int = ROOM) -> None:
        self._data = bytearray()
        self._room = room
        self._changed = asyncio.Condition()
        self._ended = self._broken = False
        self.writes: list[bytes] = []

    async def read(self, most: int = ROOM) -> bytes:
        async with self._changed:
            await self._changed.wait_for(lambda: self._data or self._ended or self._broken)
            data = bytes(self._data[:most])
            del self._data[:most]
            self._changed.notify_all()
            return data

    async def write(self, data: bytes) -> None:
        self.writes.append(data)
        async with self._changed:
            self._data += data
            self._changed.notify_all()
            await self._changed.wait_for(lambda: len(self._data) <= self._room or self._broken)
        if self._broken or self._ended:
            raise ConnectionResetError("the peer is gone")

    async def end(self) -> None:
        """The reader sees the end after what is written."""
        async with self._changed:
            self._ended = True
            self._changed.notify_all()

    async def break_(self) -> None:
        """Reader and writer see that the other is gone, at once."""
        async with self._changed:
            self._broken = True
            self._data.clear()
            self._changed.notify_all()


class MemoryStream:
    """One party's end."""

    def __init__(self, incoming: Pipe, outgoing: Pipe) -> None:
        self.incoming, self.outgoing = incoming, outgoing
        self.closed = False

    @classmethod
    def pair(cls, room: int = ROOM) -> tuple[Self, Self]:
        one, other = Pipe(room), Pipe(room)
        return cls(one, other), cls(other, one)

    async def read(self) -> bytes:
        return await self.incoming.read()

    async def write(self, data: bytes) -> None:
        await self.outgoing.write(data)

    async def aclose(self) -> None:
        self.closed = True
        await self.outgoing.end()

    async def vanish(self) -> None:
        """As a crash does it: in both directions at once."""
        await self.incoming.break_()
        await self.outgoing.break_()
