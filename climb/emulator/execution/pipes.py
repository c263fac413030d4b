"""Messages of bytes between two processes, through a pair of pipes."""

from __future__ import annotations

import os
import select

_LENGTH = 8  # bytes of a message's length, before it


class Pipes:
    """One end of a connection: a descriptor to read from and one to write to."""

    def __init__(self, source: int, target: int) -> None:
        self._source, self._target = source, target
        self._poll = select.poll()
        self._poll.register(source, select.POLLIN)

    def send(self, message: bytes) -> None:
        """Send a message. Raises BrokenPipeError if the other end is closed."""
        left = memoryview(len(message).to_bytes(_LENGTH, "little") + message)
        while left:
            left = left[os.write(self._target, left) :]

    def receive(self, seconds: float | None = None) -> bytes | None:
        """Return the next message; None if none begins within some seconds. Raises EOFError if there will be no
        other."""
        if seconds is not None and not self._poll.poll(1000 * seconds):
            return None
        return self._read(int.from_bytes(self._read(_LENGTH), "little"))

    def _read(self, nbytes: int) -> bytes:
        out = bytearray()
        while len(out) < nbytes:
            part = os.read(self._source, min(nbytes - len(out), 1 << 20))
            if not part:
                raise EOFError
            out += part
        return bytes(out)

    def close(self) -> None:
        """Close both descriptors."""
        os.close(self._source)
        os.close(self._target)
