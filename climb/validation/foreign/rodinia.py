"""Dynamic programming, grids and machine learning as in Rodinia and HeCBench."""

from __future__ import annotations

import numpy as np

from climb.emulator import OutOfBounds, Race, Uninitialised

from .program import WRONG, Project, Steps, close, empty, exact, floats, integers, launch

Random = np.random.Generator
rodinia = Project("yuhc/gpu-rodinia", "rodinia")
hecbench = Project("zjin-lcf/HeCBench", "rodinia")


@rodinia("cuda/pathfinder/pathfinder.cu", {1: (OutOfBounds, WRONG), 2: Race})
def pathfinder(rng: Random) -> Steps:
    wall, first, out = integers(rng, 0, 10, 5, 150), integers(rng, 0, 10, 150), empty(150, dtype=np.int32)
    best = first
    for row in wall:
        padded = np.pad(best, 1, constant_values=1 << 29)
        best = np.minimum(np.minimum(padded[:-2], padded[2:]), best) + row
    return Steps([launch("pathfinder", 3, 64, wall, first, out, 150, 5)], [exact(out, best)])


@rodinia("cuda/hotspot/hotspot.cu", {3: (Race, Uninitialised)})
def hotspot(rng: Random) -> Steps:
    t, power, out = floats(rng, 20, 30), floats(rng, 20, 30), empty(20, 30)
    p = np.pad(t, 1, "edge")
    across, along = p[1:-1, :-2] + p[1:-1, 2:] - 2 * t, p[:-2, 1:-1] + p[2:, 1:-1] - 2 * t
    args = (t, power, out, 30, 20, 0.1, 0.2, 0.01)
    return Steps(
        [launch("hotspot", (2, 2), (18, 18), *args)],
        [close(out, t + power + 0.1 * across + 0.2 * along + 0.01 * (80 - t))],
    )


@rodinia("cuda/nw/needle_kernel.cu", {4: Uninitialised, 5: Race})
def needle(rng: Random) -> Steps:
    similar, score = integers(rng, -4, 9, 17, 17), np.zeros((17, 17), np.int32)
    score[0] = score[:, 0] = -3 * np.arange(17)
    expected = score.copy()
    for y in range(1, 17):
        for x in range(1, 17):
            gap = max(expected[y - 1, x], expected[y, x - 1]) - 3
            expected[y, x] = max(expected[y - 1, x - 1] + similar[y, x], gap)
    return Steps([launch("needle", 1, 16, score, similar, 17, 3)], [exact(score, expected)])


@rodinia("cuda/lud/cuda/lud_kernel.cu", {6: Race})
def lud_diagonal(rng: Random) -> Steps:
    m = floats(rng, 16, 20)
    m[:, :16] += 8 * np.eye(16, dtype=np.float32)
    expected = m.astype(np.float64)
    for i in range(16):
        expected[i + 1 :, i] /= expected[i, i]
        expected[i + 1 :, i + 1 : 16] -= np.outer(expected[i + 1 :, i], expected[i, i + 1 : 16])
    return Steps([launch("lud_diagonal", 1, 16, m, 20)], [close(m, expected, 1e-4)])


@rodinia("cuda/srad/srad_v2/srad_kernel.cu", {7: OutOfBounds})
def srad_coefficient(rng: Random) -> Steps:
    x, c = rng.uniform(1, 2, (12, 17)).astype(np.float32), empty(12, 17)
    p = np.pad(x.astype(np.float64), 1, "edge")
    n, s, w, e = (v - p[1:-1, 1:-1] for v in (p[:-2, 1:-1], p[2:, 1:-1], p[1:-1, :-2], p[1:-1, 2:]))
    g, laplace = (n * n + s * s + w * w + e * e) / x**2, (n + s + w + e) / x
    q = (0.5 * g - laplace**2 / 16) / (1 + 0.25 * laplace) ** 2
    expected = np.clip(1 / (1 + (q - 0.2) / (0.2 * 1.2)), 0, 1)
    return Steps([launch("srad_coefficient", 2, 128, x, c, 12, 17, 0.2)], [close(c, expected, 1e-4)])


@rodinia("cuda/kmeans/kmeans_cuda_kernel.cu", {8: Race})
def kmeans(rng: Random) -> Steps:
    x, centre, member = floats(rng, 4, 100), floats(rng, 5, 4), empty(100, dtype=np.int32)
    sums, count = np.zeros((5, 4), np.float32), np.zeros(5, np.int32)
    nearest = ((x.T[:, None] - centre) ** 2).sum(2).argmin(1)
    return Steps(
        [
            launch("kmeans_assign", 2, 64, x, centre, member, 100, 5, 4, shared=80),
            launch("kmeans_update", 2, 64, x, member, sums, count, 100, 4),
        ],
        [
            exact(member, nearest),
            close(sums, np.stack([x[:, nearest == k].sum(1) for k in range(5)]), 1e-4),
            exact(count, np.bincount(nearest, minlength=5)),
        ],
    )


@rodinia("cuda/gaussian/gaussian.cu")
def gaussian(rng: Random) -> Steps:
    n = 10
    a, b, m = floats(rng, n, n) + 9 * np.eye(n, dtype=np.float32), floats(rng, n), np.zeros((n, n), np.float32)
    upper, right = a.astype(np.float64), b.astype(np.float64)
    launches = []
    for k in range(n - 1):
        factor = upper[k + 1 :, k] / upper[k, k]
        upper[k + 1 :] -= np.outer(factor, upper[k])
        right[k + 1 :] -= factor * right[k]
        launches += [
            launch("gauss_factors", 1, 32, a, m, n, k),
            launch("gauss_eliminate", (2, 2), (8, 8), m, a, b, n, k),
        ]
    return Steps(launches, [close(a, upper, 1e-4), close(b, right, 1e-4)])


@rodinia("cuda/backprop/backprop_cuda_kernel.cu", {9: (Race, OutOfBounds)})
def layer_forward(rng: Random) -> Steps:
    x, w, part = floats(rng, 48), floats(rng, 48, 16), empty(3, 16)
    return Steps(
        [launch("layer_forward", 3, (16, 16), x, w, part, 16)],
        [close(part, (x[:, None] * w).reshape(3, 16, 16).sum(1), 1e-4)],
    )


@hecbench("src/lcs-cuda", {10: Race})
def lcs(rng: Random) -> Steps:
    a, b, out = integers(rng, 0, 3, 40, dtype=np.int8), integers(rng, 0, 3, 31, dtype=np.int8), empty(1, dtype=np.int32)
    table = np.zeros((41, 32), int)
    for i in range(40):
        for j in range(31):
            table[i + 1, j + 1] = table[i, j] + 1 if a[i] == b[j] else max(table[i, j + 1], table[i + 1, j])
    return Steps([launch("lcs", 1, 64, a, b, out, 40, 31, shared=12 * 41)], [exact(out, table[40, 31:])])


@Project("nahmedraja/GASAL2", "rodinia")("src/kernels/local_kernel_template.h")
def smith_waterman(rng: Random) -> Steps:
    a, b = integers(rng, 0, 4, 40, 20, dtype=np.int8), integers(rng, 0, 4, 40, 24, dtype=np.int8)
    best, h = empty(40, dtype=np.int32), np.zeros((21, 25, 40), int)
    e, f = np.full_like(h, -99), np.full_like(h, -99)
    for i in range(1, 21):
        for j in range(1, 25):
            e[i, j] = np.maximum(e[i - 1, j] - 1, h[i - 1, j] - 3)
            f[i, j] = np.maximum(f[i, j - 1] - 1, h[i, j - 1] - 3)
            match = h[i - 1, j - 1] + np.where(a[:, i - 1] == b[:, j - 1], 2, -1)
            h[i, j] = np.maximum(np.maximum(match, 0), np.maximum(e[i, j], f[i, j]))
    return Steps([launch("smith_waterman", 2, 32, a, b, best, 20, 24, 40)], [exact(best, h.max((0, 1)))])


@Project("Martinsos/edlib", "rodinia")("edlib/src/edlib.cpp")
def edit_distance(rng: Random) -> Steps:
    pattern, text = integers(rng, 0, 4, 40, 37, dtype=np.int8), integers(rng, 0, 4, 40, 30, dtype=np.int8)
    out, row = empty(40, dtype=np.int32), np.tile(np.arange(38), (40, 1))
    for j in range(30):
        new = [row[:, 0] + 1]
        for i in range(37):
            change = row[:, i] + (pattern[:, i] != text[:, j])
            new.append(np.minimum(change, np.minimum(row[:, i + 1], new[-1]) + 1))
        row = np.stack(new, 1)
    return Steps([launch("edit_distance", 2, 32, pattern, text, out, 37, 30, 40)], [exact(out, row[:, 37])])


@hecbench("src/dtw-cuda", {11: WRONG})
def time_warp(rng: Random) -> Steps:
    a, b, out = floats(rng, 3, 32), floats(rng, 3, 32), empty(3)
    table = np.full((3, 33, 33), np.inf)
    table[:, 0, 0] = 0
    for i in range(32):
        for j in range(32):
            before = np.minimum(np.minimum(table[:, i, j], table[:, i, j + 1]), table[:, i + 1, j])
            table[:, i + 1, j + 1] = np.abs(a[:, i] - b[:, j]) + before
    return Steps([launch("time_warp", 3, 32, a, b, out)], [close(out, table[:, 32, 32], 1e-4)])
