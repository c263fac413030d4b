"""A sign of life while a long launch runs."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Iterator

#: Seconds before the first sign, and between signs.
FIRST, EVERY = 2.0, 1.0


@contextlib.contextmanager
def progress(what: str, *, first: float = FIRST) -> Iterator[None]:
    """Print to a terminal's standard error how long `what` has been running; nothing if it is no terminal."""
    if not sys.stderr.isatty():
        yield
        return
    done, start = threading.Event(), time.monotonic()

    def tell() -> None:
        if done.wait(first):
            return
        while True:
            print(f"\r{what}: running for {time.monotonic() - start:.0f} s ", end="", file=sys.stderr, flush=True)
            if done.wait(EVERY):
                break
        print("\r\033[K", end="", file=sys.stderr, flush=True)

    thread = threading.Thread(target=tell, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
