"""Programs in the styles of courses and worklogs: right answers, no false alarms, and faults planted in them found.

The sources in `foreign/` are as their authors would have written them; `-DFAULT=n` plants the n-th fault of a file.
Every launch looks for races everywhere, and outputs hold nothing until they are written.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from harness import Device

from climb.emulator import (
    ALL_CHECKS,
    Allocation,
    Counters,
    EmulatorError,
    EndlessLoop,
    OutOfBounds,
    Race,
    Uninitialised,
    UnsupportedInstruction,
    checking,
)

FOREIGN = Path(__file__).parent / "foreign"
RNG = np.random.default_rng()


@pytest.fixture(autouse=True)
def same_numbers_whatever_runs_before() -> None:
    RNG.bit_generator.state = np.random.default_rng(11).bit_generator.state


class Foreign(Device):
    """A file of `foreign/`, with a fault or none."""

    def __init__(self, name: str, fault: int = 0, names: tuple[str, ...] = ()) -> None:
        super().__init__((FOREIGN / f"{name}.cu").read_text(), names, (f"-DFAULT={fault}",))

    def empty(self, shape: int | tuple[int, ...], dtype: type) -> Allocation:
        """Memory that holds nothing yet."""
        return self.memory.allocate(int(np.prod(shape)) * np.dtype(dtype).itemsize, "out", initialised=False)

    def go(self, *args: object, **more: int) -> Counters:
        with checking(ALL_CHECKS):
            return self.launch(*args, **more)


def values(held: Allocation, dtype: type) -> np.ndarray:
    """What was written; fails where something was not."""
    assert held.written is None or held.written.all(), "part of the output was never written"
    return held.data.view(dtype)


def floats(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def integers(low: int, high: int, *shape: int) -> np.ndarray:
    return RNG.integers(low, high, shape).astype(np.int32)


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
    """The last warp without barriers, which every GPU since Volta may break."""
    device = Foreign("reductions", fault, ("reduceOld<128>",))
    x = floats(1000)
    out = device.empty(3, np.float32)
    device.go("reduceOld<128>", 3, 128, x, out, np.uint32(1000), shared=4 * 128)


def reduce_loop(fault: int) -> None:
    """The same in a loop: a volatile read in a loop that waits for nobody is no excuse."""
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


# Matrices


def transpose(fault: int) -> None:
    device = Foreign("matrices", fault)
    x = floats(45, 70)
    out = device.empty((70, 45), np.float32)
    device.go("transposeCoalesced", (3, 2), (32, 8), out, x, 70, 45)
    assert np.array_equal(values(out, np.float32).reshape(70, 45), x.T)


def sgemm_naive(fault: int) -> None:
    a, b, c = floats(37, 29), floats(29, 41), floats(37, 41)
    expected = 1.5 * a.astype(np.float64) @ b - 0.5 * c
    Foreign("matrices", fault).go("sgemm_naive", (2, 2), (32, 32), 37, 41, 29, 1.5, a, b, -0.5, c)
    np.testing.assert_allclose(c, expected, atol=1e-4)


def sgemm_shared(fault: int) -> None:
    device = Foreign("matrices", fault)
    a, b = floats(37, 45), floats(45, 41)
    c = device.empty((37, 41), np.float32)
    device.go("MatMulShared", (3, 3), (16, 16), a, b, c, 37, 45, 41)
    np.testing.assert_allclose(values(c, np.float32).reshape(37, 41), a.astype(np.float64) @ b, atol=1e-4)


def sgemm_2d(fault: int) -> None:
    name = "sgemm2DBlocktiling<32, 32, 8, 4, 4>"
    device = Foreign("matrices", fault, (name,))
    a, b = floats(45, 19), floats(19, 50)
    c = device.empty((45, 50), np.float32)
    device.go(name, (2, 2), 64, 45, 50, 19, a, b, c)
    np.testing.assert_allclose(values(c, np.float32).reshape(45, 50), a.astype(np.float64) @ b, atol=1e-4)


def sgemm_warptiled(fault: int) -> None:
    device = Foreign("matrices", fault)
    a, b = floats(64, 24), floats(24, 128)
    c = device.empty((64, 128), np.float32)
    device.go("sgemm_warptiled", (2, 1), 128, 64, 128, 24, a, b, c)
    np.testing.assert_allclose(values(c, np.float32).reshape(64, 128), a.astype(np.float64) @ b, atol=1e-4)


def _sparse(rows: int, cols: int) -> tuple[np.ndarray, ...]:
    dense = floats(rows, cols) * (RNG.random((rows, cols)) < 0.2)
    dense[3] = 0
    index = [np.flatnonzero(row) for row in dense]
    first = np.cumsum([0, *(len(i) for i in index)]).astype(np.int32)
    return dense, first, np.concatenate(index).astype(np.int32), dense[dense != 0]


def spmv_scalar(fault: int) -> None:
    dense, first, index, data = _sparse(77, 90)
    x, y = floats(90), floats(77)
    expected = y + dense.astype(np.float64) @ x
    Foreign("matrices", fault).go("spmv_csr_scalar", 2, 64, 77, first, index, data, x, y)
    np.testing.assert_allclose(y, expected, atol=1e-4)


def spmv_vector(fault: int) -> None:
    device = Foreign("matrices", fault)
    dense, first, index, data = _sparse(21, 300)
    x, y = floats(300), device.empty(21, np.float32)
    device.go("spmv_csr_vector", 6, 128, 21, first, index, data, x, y)
    np.testing.assert_allclose(values(y, np.float32), dense.astype(np.float64) @ x, atol=1e-4)


# Stencils


def stencil_1d(fault: int) -> None:
    device = Foreign("stencils", fault)
    x, out = integers(-9, 9, 300), device.empty(300, np.int32)
    device.go("stencil_1d", 3, 128, x, out, 300)
    assert np.array_equal(values(out, np.int32), np.convolve(x, np.ones(7, np.int32), "same"))


def heat3d(fault: int) -> None:
    device = Foreign("stencils", fault)
    u = RNG.standard_normal((7, 10, 13))
    v = device.empty(u.shape, np.float64)
    device.go("heat3d", (2, 3), (8, 4), u, v, 13, 10, 7, np.float64(0.1), shared=8 * 10 * 6)
    p = np.pad(u, 1)
    near = p[:-2, 1:-1, 1:-1] + p[2:, 1:-1, 1:-1] + p[1:-1, :-2, 1:-1] + p[1:-1, 2:, 1:-1]
    near += p[1:-1, 1:-1, :-2] + p[1:-1, 1:-1, 2:]
    np.testing.assert_allclose(values(v, np.float64).reshape(u.shape), u + 0.1 * (near - 6 * u), atol=1e-12)


def blur(fault: int) -> None:
    device = Foreign("stencils", fault)
    image = RNG.integers(0, 256, (19, 21, 3)).astype(np.uint8)
    weights = np.outer([1, 4, 6, 4, 1], [1, 4, 6, 4, 1]).astype(np.float32) / 256
    symbol = device.module.symbol("mask")
    symbol.data[:] = weights.reshape(-1).view(np.uint8)
    out = device.empty(image.shape, np.uint8)
    device.go("blur", (3, 3), (8, 8, 3), image, out, 21, 19)
    p = np.pad(image, ((2, 2), (2, 2), (0, 0)), "edge").astype(np.float64)
    expected = sum(weights[j, i] * p[j : j + 19, i : i + 21] for j in range(5) for i in range(5))
    assert np.array_equal(values(out, np.uint8).reshape(image.shape), (expected + 0.5).astype(np.uint8))


def life(fault: int) -> None:
    device = Foreign("stencils", fault)
    old = RNG.random((15, 23)) < 0.4
    out = device.empty(old.shape, np.bool_)
    device.go("life", 3, 128, old, out, 23, 15)
    near = sum(np.roll(old, (j, i), (0, 1)).astype(int) for j in (-1, 0, 1) for i in (-1, 0, 1)) - old
    assert np.array_equal(values(out, np.bool_).reshape(old.shape), (near == 3) | old & (near == 2))


# Numerics


def nbody(fault: int) -> None:
    device = Foreign("numerics", fault)
    x = floats(75, 4)
    x[:, 3] = np.abs(x[:, 3])
    out = device.empty((75, 4), np.float32)
    device.go("calculate_forces", 3, 32, x, out, 75, shared=32 * 16)
    r = x[None, :, :3].astype(np.float64) - x[:, None, :3]
    expected = (r * (x[:, 3] * ((r**2).sum(2) + 1e-4) ** -1.5)[:, :, None]).sum(1)
    found = values(out, np.float32).reshape(75, 4)
    np.testing.assert_allclose(found[:, :3], expected, rtol=1e-3, atol=1e-2)


def mandelbrot(fault: int) -> None:
    device = Foreign("numerics", fault)
    out = device.empty((20, 35), np.uint8)
    device.go("mandelbrot", (3, 3), (16, 8), out, 35, 20, 60)
    x, y = np.meshgrid(-2 + 3.0 * np.arange(35) / 35, -1.5 + 3.0 * np.arange(20) / 20)
    expected = np.zeros((20, 35), np.uint8)
    for at in np.ndindex(20, 35):
        a = b = 0.0
        for count in range(61):
            if count == 60:
                break
            a, b = (a * a - b * b) + x[at], (b * a + a * b) + y[at]
            if a * a + b * b > 4:
                break
        expected[at] = count
    assert np.array_equal(values(out, np.uint8).reshape(20, 35), expected)


def monte_carlo(fault: int) -> None:
    hits = np.zeros(1, np.uint64)
    Foreign("numerics", fault).go("monte_carlo", 3, 64, hits, 50, np.uint32(77))
    s = np.uint32(77) ^ (np.arange(1, 193, dtype=np.uint32) * np.uint32(2654435761))

    def step() -> np.ndarray:
        nonlocal s
        s = s ^ s << np.uint32(13)
        s = s ^ s >> np.uint32(17)
        s = s ^ s << np.uint32(5)
        return (s >> np.uint32(8)).astype(np.float32) * np.float32(2.0**-24)

    inside = 0
    for _ in range(50):
        x, y = step(), step()
        yy = (y * y).astype(np.float64)
        inside += int(((x.astype(np.float64) ** 2 + yy).astype(np.float32) <= 1).sum())
    assert hits[0] == inside


def hashing(fault: int) -> None:
    device = Foreign("numerics", fault)
    words = [RNG.bytes(int(n)) for n in RNG.integers(0, 20, 70)]
    starts = np.cumsum([0, *map(len, words)]).astype(np.int32)
    text = np.frombuffer(b"".join(words), np.uint8).copy()
    out = device.empty(70, np.uint64)
    device.go("fnv_then_mix", 2, 40, text, starts, out, 70)
    full = 2**64 - 1
    for word, found in zip(words, values(out, np.uint64), strict=True):
        h = 14695981039346656037
        for byte in word:
            h = (h ^ byte) * 1099511628211 & full
        h ^= h >> 33
        h = h * 0xFF51AFD7ED558CCD & full
        h ^= h >> 33
        turned = int(f"{h:064b}"[::-1], 2)
        expected = (h * 1000003 >> 64) + h % 1000003 + h // 97 * 3 + (64 - h.bit_length()) + h.bit_count() + turned
        assert int(found) == expected & full


def find(fault: int) -> None:
    device = Foreign("numerics", fault)
    text = RNG.integers(97, 99, 400).astype(np.uint8)
    device.module.symbol("pattern").data[:5] = np.frombuffer(b"abbab", np.uint8)
    where, count = np.full(400, -1, np.int32), np.zeros(1, np.int32)
    device.go("find", 4, 100, text, 400, 5, where, count)
    whole = text.tobytes()
    expected = [i for i in range(396) if whole[i : i + 5] == b"abbab"]
    assert sorted(where[: count[0]]) == expected and expected


def softmax(fault: int) -> None:
    device = Foreign("numerics", fault)
    x = floats(7, 75) * 5
    out = device.empty(x.shape, np.float32)
    device.go("softmax_rows", 2, 128, x, out, 7, 75)
    e = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
    np.testing.assert_allclose(values(out, np.float32).reshape(x.shape), e / e.sum(1, keepdims=True), rtol=1e-4)


def layernorm(fault: int) -> None:
    device = Foreign("numerics", fault)
    x, gamma, beta = floats(5, 300) * 3 + 1, floats(300), floats(300)
    out = device.empty(x.shape, np.float32)
    device.go("layernorm", 5, 64, x, out, gamma, beta, 300)
    y = x.astype(np.float64)
    expected = (y - y.mean(1, keepdims=True)) / np.sqrt(y.var(1, keepdims=True) + 1e-5) * gamma + beta
    np.testing.assert_allclose(values(out, np.float32).reshape(x.shape), expected, rtol=1e-3, atol=1e-4)


def attention(fault: int) -> None:
    device = Foreign("numerics", fault)
    q, k, v = (floats(2, 50, 8) for _ in range(3))
    out = device.empty(q.shape, np.float32)
    scale = 8**-0.5
    shared = 4 * (4 * 16 * 8 + 16 * 16)
    device.go("attention", 2, 16, q, k, v, 50, 8, 4, 4, 16, 16, scale, out, shared=shared)
    s = np.einsum("bid,bjd->bij", q.astype(np.float64), k) * scale
    e = np.exp(s - s.max(2, keepdims=True))
    expected = np.einsum("bij,bjd->bid", e / e.sum(2, keepdims=True), v)
    np.testing.assert_allclose(values(out, np.float32).reshape(q.shape), expected, atol=1e-4)


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


# The language


def haxpy(fault: int) -> None:
    x, y = floats(1001).astype(np.float16), floats(1001).astype(np.float16)
    expected = (1.5 * x.astype(np.float64) + y).astype(np.float16)
    Foreign("language", fault).go("haxpy", 2, 128, 1001, np.float16(1.5), x, y)
    assert np.array_equal(y, expected)


def machine(fault: int) -> None:
    device = Foreign("language", fault)
    # From n the loop makes n!; what is left becomes -((n! + 6) ^ 5) << 2.
    push, add, mul, sub, dup, swap, jnz, halt, over, xor, shl, neg = range(12)
    code = [(push, 1), (over, 0), (mul, 0), (swap, 0), (push, 1), (sub, 0), (swap, 0), (over, 0), (jnz, -7)]
    code += [(push, 3), (dup, 0), (add, 0), (add, 0), (push, 5), (xor, 0), (neg, 0), (push, 2), (shl, 0), (halt, 0)]
    ops, args = (np.array(column, np.int32) for column in zip(*code, strict=True))

    def one(start: int) -> int:
        stack, pc = [start], 0
        while True:
            op, arg = code[pc]
            if op == push:
                stack.append(arg)
            elif op in (add, mul, sub, xor, shl):
                b, a = stack.pop(), stack.pop()
                stack.append({add: a + b, mul: a * b, sub: a - b, xor: a ^ b, shl: a << (b & 31)}[op])
            elif op == dup:
                stack.append(stack[-1])
            elif op == swap:
                stack[-1], stack[-2] = stack[-2], stack[-1]
            elif op == over:
                stack.append(stack[-2])
            elif op == neg:
                stack[-1] = -stack[-1]
            elif op == jnz and stack.pop():
                pc += arg - 1
            elif op == halt:
                return stack[-1]
            pc += 1

    out = device.empty(70, np.int32)
    device.go("machine", 2, 40, ops, args, out, 70)
    assert values(out, np.int32).tolist() == [one(t % 11 + 1) for t in range(70)]


def carved(fault: int) -> None:
    device = Foreign("language", fault)
    n = 45
    d, f, h = RNG.standard_normal(n), floats(n), RNG.integers(0, 99, n).astype(np.uint16)
    out = device.empty(n, np.float64)
    device.go("carved", 1, 32, d, f, h, out, n, shared=14 * n)
    i = np.arange(n)
    product = f[n - 1 - i] * h[i * 7 % n].astype(np.float32)
    np.testing.assert_allclose(values(out, np.float64), d[n - 1 - i] + product, rtol=1e-6, atol=1e-5)


def ptx_inside(fault: int) -> None:
    device = Foreign("language", fault)
    x = RNG.integers(0, 2**32, 100).astype(np.uint32)
    x[::3] %= 2000
    out = device.empty(100, np.uint32)
    device.go("ptx_inside", 2, 64, x, out, 100)
    lane = np.arange(100, dtype=np.uint32) % 32
    r = np.where(x > 1000, x >> 3, x * np.uint32(5)).astype(np.uint32)
    assert np.array_equal(values(out, np.uint32), r + (x ^ r ^ lane) * np.uint32(3) + (x >> 4 & 4095))


def vectors(fault: int) -> None:
    device = Foreign("language", fault, ("shift<short, 3>",))
    x = integers(-99, 99, 50, 3).astype(np.int16)
    out = device.empty(x.shape, np.int16)
    device.go("shift<short, 3>", 1, 32, np.frombuffer(np.array([1, -2, 300], np.int16).tobytes(), "V6")[0], x, out, 50)
    assert np.array_equal(values(out, np.int16).reshape(x.shape), x + np.array([1, -2, 300], np.int16))


CORRECT = [
    reduce_volta, sum_and_max, sum_last_block, kahan, hillis_steele, scan_in_place, blelloch, look_back, bitonic_shared,
    bitonic_steps, odd_even, radix_pass, merge_path, transpose, sgemm_naive, sgemm_shared, sgemm_2d, sgemm_warptiled,
    spmv_scalar, spmv_vector, stencil_1d, heat3d, blur, life, nbody, mandelbrot, monte_carlo, hashing, find, softmax,
    layernorm, attention, histo_global, histo_private, histo_match, compaction, bfs, locked_dot, ticket_lock,
    bucket_locks, max_and_lists, hand_over, haxpy, machine, carved, ptx_inside, vectors,
]  # fmt: skip

FAULTS: list[tuple[Callable[[int], None], int, type[EmulatorError]]] = [
    (reduce_old, 0, Race),
    (reduce_loop, 0, Race),
    (reduce_volta, 1, Race),
    (reduce_volta, 2, Race),
    (sum_and_max, 3, (Race, Uninitialised)),
    (sum_and_max, 4, Uninitialised),
    (sum_last_block, 5, Race),
    (sum_last_block, 6, (Race, Uninitialised)),
    (hillis_steele, 1, (Race, Uninitialised)),
    (scan_in_place, 2, Race),
    (blelloch, 3, Uninitialised),
    (blelloch, 4, Race),
    (blelloch, 5, (Race, Uninitialised)),
    (look_back, 6, (Race, Uninitialised)),
    (bitonic_shared, 1, (Race, Uninitialised)),
    (bitonic_steps, 2, Race),
    (odd_even, 3, Race),
    (radix_pass, 4, Uninitialised),
    (merge_path, 5, OutOfBounds),
    (transpose, 1, (Race, Uninitialised)),
    (transpose, 2, (OutOfBounds, Uninitialised)),
    (sgemm_shared, 3, Race),
    (sgemm_2d, 4, Race),
    (sgemm_warptiled, 5, Race),
    (sgemm_warptiled, 6, (Race, Uninitialised)),
    (spmv_vector, 7, Race),
    (stencil_1d, 1, Uninitialised),
    (stencil_1d, 2, (Race, Uninitialised)),
    (heat3d, 3, Race),
    (blur, 4, OutOfBounds),
    (nbody, 1, Uninitialised),
    (nbody, 2, Race),
    (layernorm, 3, (Race, Uninitialised)),
    (attention, 4, Race),
    (histo_global, 1, Race),
    (histo_private, 2, (Race, Uninitialised)),
    (histo_private, 3, Race),
    (bfs, 4, Race),
    (locked_dot, 5, Race),
    (bucket_locks, 6, EndlessLoop),
    (carved, 1, (OutOfBounds, Uninitialised)),
]


@pytest.mark.parametrize("program", CORRECT, ids=lambda program: program.__name__)
def test_right_answer_and_no_alarm(program: Callable[[int], None]) -> None:
    program(0)


@pytest.mark.parametrize(("program", "fault", "error"), FAULTS, ids=lambda each: getattr(each, "__name__", None))
def test_planted_fault_is_found(program: Callable[[int], None], fault: int, error: type[EmulatorError]) -> None:
    with pytest.raises(error) as raised:
        program(fault)
    where = raised.value.where
    assert where.line and where.text and where.block is not None


def test_a_function_by_address_is_refused_with_its_line() -> None:
    with pytest.raises(UnsupportedInstruction) as raised:
        Foreign("language").go("by_pointer", 1, 32, floats(32), 32)
    assert "table[i & 1]" in raised.value.where.text
    assert "calls through pointers" in raised.value.what


def _wavefronts(addresses: np.ndarray, width: int) -> int:
    """Of one load by a warp, lane by lane, as documented: a bank gives one word at a time, to parts of the warp."""
    lanes = {4: 32, 8: 16, 16: 8}[width]
    total = 0
    for part in addresses.reshape(-1, lanes):
        wanted = {int(address) // 4 + word for address in part for word in range(width // 4)}
        total += max(sum(word % 32 == bank for word in wanted) for bank in range(32))
    return total


@pytest.mark.parametrize(("kind", "width"), [("float", 4), ("float2", 8), ("float4", 16)])
def test_gathers_cost_what_a_count_lane_by_lane_says(kind: str, width: int) -> None:
    device = Foreign("gather", names=(f"gather<{kind}>",))
    index = integers(0, 200, 256)
    table, near, far = np.zeros(200 * width, np.uint8), np.zeros(256 * width, np.uint8), np.zeros(256 * width, np.uint8)
    counters = device.go(f"gather<{kind}>", 2, 128, index, table, near, far)
    addresses = index.reshape(-1, 32).astype(np.int64) * width
    sectors = sum(len(set((warp // 32).tolist())) for warp in addresses)
    shared = sum(_wavefronts(warp, width) for warp in addresses)
    lines = {(one.text, one.kind): one for one in counters.lines}
    from_shared = lines["near[t] = held[k];", "shared load"]
    from_global = lines["far[t] = table[k];", "global load"]
    assert (from_shared.requests, from_shared.lanes, from_shared.wavefronts) == (8, 256, shared)
    assert (from_global.requests, from_global.lanes) == (8, 256)
    assert from_global.width == width and from_global.sectors == sectors


def test_recursion_is_refused_with_its_line() -> None:
    with pytest.raises(UnsupportedInstruction) as raised:
        Foreign("language").go("fib", 1, 32, np.zeros(32, np.int32))
    assert "fibonacci" in raised.value.where.text
