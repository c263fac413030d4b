"""Foreign programs: reductions, scans, sorts, histograms, queues and locks.

Each function launches a program, with the fault of that number planted (0: none), and checks its answer.
"""

from __future__ import annotations

import numpy as np
from foreign_harness import RNG, Foreign, floats, integers, values

# Reductions


def reduce_volta(fault: int) -> None:
    x, out = floats(1001), np.zeros(1, np.float32)
    Foreign("reductions", fault).go("reduce_volta", 4, 128, x, out, 1001)
    np.testing.assert_allclose(out[0], x.astype(np.float64).sum(), atol=1e-4)


def sum_and_max(fault: int) -> None:
    x, total, most = floats(997), np.zeros(1, np.float32), np.full(1, -(2**31), np.int32)
    Foreign("reductions", fault).go("sum_and_max", 3, 96, x, 997, total, most)
    np.testing.assert_allclose(total[0], x.astype(np.float64).sum(), atol=1e-4)
    assert most[0] == np.rint(x * np.float32(1000)).max()


def sum_last_block(fault: int) -> None:
    device = Foreign("reductions", fault)
    x, out = floats(3001), np.zeros(1, np.float32)
    for _ in range(2):
        device.go("sum_last_block", 5, 256, x, device.empty(5, np.float32), out, 3001)
        np.testing.assert_allclose(out[0], x.astype(np.float64).sum(), atol=1e-3)


def kahan(fault: int) -> None:
    x = np.concatenate([[1e16], np.full(999, 1.0), [-1e16]])
    out = np.zeros(1)
    Foreign("reductions", fault).go("kahan", 1, 64, x, out, np.int64(x.size))

    def add(total: float, c: float, value: float) -> tuple[float, float]:
        t = total + (value - c)
        return t, (t - total) - (value - c)

    total, rest = 0.0, 0.0
    for thread in range(64):
        high, low = 0.0, 0.0
        for value in x[thread::64].tolist():
            high, low = add(high, low, value)
        total, rest = add(total, rest + low, high)
    assert out[0] == total


def reduce_old(fault: int) -> None:
    """Reduce in the last warp without barriers, which every GPU since Volta may break."""
    device = Foreign("reductions", fault, ("reduceOld<128>",))
    x = floats(1000)
    out = device.empty(3, np.float32)
    device.go("reduceOld<128>", 3, 128, x, out, np.uint32(1000), shared=4 * 128)


def reduce_loop(fault: int) -> None:
    """The same in a loop: a volatile read is no excuse if its loop waits for nothing."""
    device = Foreign("reductions", fault)
    device.go("reduce_loop", 1, 32, floats(32), device.empty(1, np.float32), 16)


# Scans


def hillis_steele(fault: int) -> None:
    x = floats(333)
    device = Foreign("scans", fault)
    out = device.empty(333, np.float32)
    device.go("hillis_steele", 1, 333, out, x, 333, shared=8 * 333)
    np.testing.assert_allclose(values(out, np.float32), np.cumsum(x.astype(np.float64)), atol=1e-4)


def scan_in_place(fault: int) -> None:
    x = integers(-9, 9, 777)
    expected = np.cumsum(x)
    Foreign("scans", fault).go("scan_in_place", 1, 1024, x, 777)
    assert np.array_equal(x, expected)


def blelloch(fault: int) -> None:
    device = Foreign("scans", fault)
    x = integers(-9, 9, 1000)
    sums, out = device.empty(8, np.int32), device.empty(1000, np.int32)
    device.go("blelloch", 8, 64, x, out, sums, 1000, shared=4 * (128 + 4))
    device.go("add_carry", 8, 64, out, sums, 1000)
    assert np.array_equal(values(out, np.int32), np.cumsum(x) - x)


def look_back(fault: int) -> None:
    device = Foreign("scans", fault)
    x = integers(-9, 9, 1500)
    out = device.empty(1500, np.int32)
    device.go("look_back", 12, 128, x, out, np.zeros(12, np.uint64), np.zeros(1, np.uint32), 1500)
    assert np.array_equal(values(out, np.int32), np.cumsum(x))


# Sorts


def bitonic_shared(fault: int) -> None:
    keys, vals = RNG.permutation(512).astype(np.uint32), np.arange(512, dtype=np.uint32)
    before = keys.copy()
    Foreign("sorts", fault).go("bitonic_shared", 1, 256, keys, vals, np.uint32(1))
    assert np.array_equal(keys, np.arange(512)) and np.array_equal(before[vals], keys)


def bitonic_steps(fault: int) -> None:
    device = Foreign("sorts", fault)
    x = floats(256)
    expected = np.sort(x)
    k = 2
    while k <= 256:
        j = k // 2
        while j:
            device.go("bitonic_sort_step", 4, 64, x, j, k)
            j //= 2
        k *= 2
    assert np.array_equal(x, expected)


def odd_even(fault: int) -> None:
    x = integers(-50, 50, 101)
    expected = np.sort(x)
    Foreign("sorts", fault).go("odd_even", 1, 51, x, 101, shared=4 * 101)
    assert np.array_equal(x, expected)


def radix_pass(fault: int) -> None:
    device = Foreign("sorts", fault)
    x = RNG.integers(0, 2**12, 250).astype(np.uint32)
    held = device.upload(x)
    for shift in (0, 4, 8):
        out = device.empty(250, np.uint32)
        device.go("radix_pass", 1, 256, held, out, shift, 250)
        held = out
    assert np.array_equal(values(held, np.uint32), np.sort(x))


def merge_path(fault: int) -> None:
    device = Foreign("sorts", fault, ("merge<double, 5>",))
    a, b = np.sort(RNG.standard_normal(301)), np.sort(RNG.standard_normal(202)) + 5
    out = device.empty(503, np.float64)
    device.go("merge<double, 5>", 4, 32, a, 301, b, 202, out)
    assert np.array_equal(values(out, np.float64), np.sort(np.concatenate([a, b])))


# Histograms, queues, locks


def _histogram(kernel: str, fault: int) -> None:
    x = RNG.integers(0, 256, 3000).astype(np.uint8)
    histogram = np.zeros(256, np.uint32)
    size = 750 if kernel == "histo_match" else np.int64(3000)
    Foreign("concurrent", fault).go(kernel, 3, 256, x, size, histogram)
    assert np.array_equal(histogram, np.bincount(x, minlength=256))


def histo_global(fault: int) -> None:
    _histogram("histo_global", fault)


def histo_private(fault: int) -> None:
    _histogram("histo_private", fault)


def histo_match(fault: int) -> None:
    _histogram("histo_match", fault)


def compaction(fault: int) -> None:
    x = integers(-50, 50, 333)
    out, count = np.zeros(333, np.int32), np.zeros(1, np.int32)
    Foreign("concurrent", fault).go("filter_k", 3, 128, out, count, x, 333)
    assert np.array_equal(np.sort(out[: count[0]]), np.sort(x[x > 0]))


def bfs(fault: int) -> None:
    device = Foreign("concurrent", fault)
    vertices = 150
    edges = [RNG.integers(0, vertices, int(RNG.integers(1, 5))) for _ in range(vertices)]
    first = np.cumsum([0, *map(len, edges)]).astype(np.int32)
    flat = np.concatenate(edges).astype(np.int32)
    level = np.full(vertices, -1, np.int32)
    level[0] = 0
    expected = level.copy()
    frontier, depth = np.array([0], np.int32), 0
    g = np.array([0, 0, vertices], np.int64)
    g[:2] = device.upload(first).address, device.upload(flat).address
    packed = np.frombuffer(g.tobytes(), "V24")[0]
    while frontier.size:
        depth += 1
        following, size = np.full(vertices, -1, np.int32), np.zeros(1, np.int32)
        device.go("bfs_step", 2, 64, packed, level, frontier, frontier.size, following, size, depth)
        for v in range(vertices):
            if expected[v] == depth - 1:
                expected[edges[v]] = np.where(expected[edges[v]] < 0, depth, expected[edges[v]])
        frontier = following[: size[0]].copy()
    assert np.array_equal(level, expected) and depth > 4


def locked_dot(fault: int) -> None:
    device = Foreign("concurrent", fault)
    a, b, c = floats(999), floats(999), np.zeros(1, np.float32)
    device.go("locked_dot", 6, 128, device.upload(np.zeros(1, np.int32)), a, b, 999, c)
    np.testing.assert_allclose(c[0], a.astype(np.float64) @ b, atol=1e-3)


def ticket_lock(fault: int) -> None:
    value = np.ones(1, np.int32)
    Foreign("concurrent", fault).go("ticket_lock", 9, 32, np.zeros(1, np.uint32), np.zeros(1, np.uint32), value)
    expected = 1
    for _ in range(9):
        expected = expected * 3 + 1
    assert value[0] == expected


def bucket_locks(fault: int) -> None:
    keys, sums = integers(0, 1000, 150), np.zeros(5, np.int32)
    Foreign("concurrent", fault).go("bucket_locks", 2, 96, keys, 150, np.zeros(5, np.int32), sums, 5, max_steps=2_000)
    assert np.array_equal(sums, [keys[keys % 5 == b].sum() for b in range(5)])


def max_and_lists(fault: int) -> None:
    x, best = floats(300), np.full(1, -9, np.float32)
    heads, following = np.full(7, -1, np.int32), np.full(300, -2, np.int32)
    Foreign("concurrent", fault).go("max_and_lists", 3, 128, x, 300, best, heads, following)
    assert best[0] == x.max()
    for k, at in enumerate(heads):
        seen = []
        while at >= 0:
            seen.append(at)
            at = following[at]
        assert sorted(seen) == list(range(k, 300, 7))


def hand_over(fault: int) -> None:
    x, out = integers(0, 99, 32), np.zeros(32, np.int32)
    Foreign("concurrent", fault).go("hand_over", 1, 64, x, out)
    assert np.array_equal(out, 2 * x)
