"""Work on large arrays in threads: NumPy releases the interpreter lock while it computes."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")


def on_all_cores(work: Callable[[int], T], items: Iterable[int], *, most: int | None = None) -> list[T]:
    """Call ``work`` for each item, on as many threads as the host has cores, and return the results in order.

    ``most`` limits the threads if each needs much memory. A single item starts no thread. Raises the errors of
    ``work``.
    """
    items = list(items)
    if len(items) < 2:
        return [work(item) for item in items]
    cores = os.cpu_count() or 1
    with ThreadPoolExecutor(cores if most is None else min(most, cores)) as pool:
        return list(pool.map(work, items))
