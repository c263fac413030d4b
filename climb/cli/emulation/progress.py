"""A sign of life while a long launch runs."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Callable, Iterator

#: Seconds before the first sign, and between signs.
FIRST, EVERY = 2.0, 1.0


@contextlib.contextmanager
def progress(what: str, where: Callable[[], str] = str, *, first: float = FIRST) -> Iterator[None]:
    """Print to a terminal's standard error how long `what` has been running, and `where` it is; nothing without a
    terminal."""
    if not sys.stderr.isatty():
        yield
        return
    done, start = threading.Event(), time.monotonic()

    def tell() -> None:
        if done.wait(first):
            return
        while True:
            place = where()
            text = f"{what}: running for {time.monotonic() - start:.0f} s" + (f", {place}" if place else "")
            print(f"\r\033[K{text} ", end="", file=sys.stderr, flush=True)
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
