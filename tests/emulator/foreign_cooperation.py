"""Blocks and warps that share out work: a queue, stream-K, turns at named barriers.

After patterns in NVIDIA/cutlass (stream-K with a fix-up in turns, warp-specialised kernels with named barriers) and in
persistent kernels with a work queue, such as those of NVIDIA/cuda-samples and of graph libraries.
"""

from __future__ import annotations

import numpy as np
from foreign_harness import Foreign, floats, integers


def work_queue(fault: int) -> None:
    depth, threads = 20, 64
    tasks, done = np.full(256, -1, np.int32), np.zeros(16, np.int32)
    tasks[0] = 0
    one = np.ones(1, np.uint32)
    Foreign("cooperation", fault).go(
        "work_queue", 4, threads, tasks, np.zeros(1, np.uint32), one, one.copy(), done, depth
    )
    expected, left = np.zeros(16, np.int64), [0]
    while left:
        task = left.pop()
        expected[task % 16] += threads
        left += [2 * task + 1, 2 * task + 2] if task < depth else []
    assert np.array_equal(done, expected)


def stream_k(fault: int) -> None:
    tiles, steps, threads = 5, 7, 64
    a, b = integers(-9, 9, tiles, steps, threads), integers(-9, 9, steps, threads)
    device = Foreign("cooperation", fault)
    c, partial = (device.empty((tiles, threads), np.int32) for _ in range(2))
    device.go("stream_k", 9, threads, a, b, c, tiles, steps, np.zeros(tiles, np.int32), partial)
    assert np.array_equal(c.data.view(np.int32).reshape(tiles, threads), (a * b).sum(axis=1))


def take_turns(fault: int) -> None:
    x, out = floats(8, 64), np.zeros((8, 64), np.float32)
    Foreign("cooperation", fault).go("take_turns", 2, 160, x, out, 8)
    assert np.array_equal(out, x[:, ::-1])
