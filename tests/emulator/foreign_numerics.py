"""Foreign programs: matrices, stencils and numerical methods.

Each function launches a program, with the fault of that number planted (0: none), and checks its answer.
"""

from __future__ import annotations

import numpy as np
from foreign_harness import RNG, Foreign, floats, integers, values

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
