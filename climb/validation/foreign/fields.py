"""Lattices, grids, particles and rays."""

from __future__ import annotations

import numpy as np

from climb.emulator import OutOfBounds, Race, Uninitialised

from .program import WRONG, Project, Steps, close, empty, exact, floats, launch

Random = np.random.Generator
samples = Project("NVIDIA/cuda-samples", "fields")


@Project("sailfish-team/sailfish", "fields")("sailfish/templates/single_fluid.mako", {1: (OutOfBounds, WRONG)})
def lbm_d2q9(rng: Random) -> Steps:
    f, g = (1 + 0.1 * rng.random((9, 7, 40))).astype(np.float32), empty(9, 7, 40)
    c = np.array([(0, 0), (1, 0), (0, 1), (-1, 0), (0, -1), (1, 1), (-1, 1), (-1, -1), (1, -1)])
    w = np.array([4 / 9] + [1 / 9] * 4 + [1 / 36] * 4)[:, None, None]
    v = np.stack([np.roll(f[k].astype(np.float64), (c[k, 1], c[k, 0]), (0, 1)) for k in range(9)])
    rho, u = v.sum(0), np.tensordot(c.T, v, 1) / v.sum(0)
    cu = 3 * np.tensordot(c, u, 1)
    eq = w * rho * (1 + cu + cu**2 / 2 - 1.5 * (u**2).sum(0))
    return Steps([launch("lbm_d2q9", (1, 7), 64, f, g, 40, 7, 0.8)], [close(g, v + 0.8 * (eq - v))])


@Project("gprMax/gprMax", "fields")("gprMax/fields_updates_gpu.py", {2: (OutOfBounds, WRONG)})
def yee(rng: Random) -> Steps:
    ez, hx, hy = floats(rng, 9, 20), floats(rng, 9, 20), floats(rng, 9, 20)
    e, x, y = (each.astype(np.float64) for each in (ez, hx, hy))
    for _ in range(3):
        x[:-1] -= 0.5 * (e[1:] - e[:-1])
        y[:, :-1] += 0.5 * (e[:, 1:] - e[:, :-1])
        curl = y[1:-1, 1:-1] - y[1:-1, :-2] - x[1:-1, 1:-1] + x[:-2, 1:-1]
        e[1:-1, 1:-1] += 0.5 * curl
    step = [
        launch("yee_h", (1, 9), 32, ez, hx, hy, 20, 9, 0.5),
        launch("yee_e", (1, 9), 32, ez, hx, hy, 20, 9, 0.5),
    ]
    return Steps(step * 3, [close(ez, e, 1e-4), close(hx, x, 1e-4), close(hy, y, 1e-4)])


@Project("kyleniemeyer/laplace_gpu", "fields")("laplace_gpu.cu", {3: Race})
def red_black(rng: Random) -> Steps:
    u, b = floats(rng, 10, 30), floats(rng, 10, 30)
    expected, colour = u.astype(np.float64), np.indices((10, 30)).sum(0)[1:-1, 1:-1] % 2
    for k in (0, 1, 0, 1):
        e = expected
        s = e[1:-1, :-2] + e[1:-1, 2:] + e[:-2, 1:-1] + e[2:, 1:-1] - b[1:-1, 1:-1]
        new = e[1:-1, 1:-1] + 1.5 * (s / 4 - e[1:-1, 1:-1])
        e[1:-1, 1:-1] = np.where(colour == k, new, e[1:-1, 1:-1])
    steps = [launch("red_black", (1, 8), 32, u, b, 30, 10, k, 1.5) for k in (0, 1, 0, 1)]
    return Steps(steps, [close(u, expected, 1e-4)])


@Project("pmneila/jsexp", "fields")("grayscott/index.html")
def gray_scott(rng: Random) -> Steps:
    u, v = (rng.random((8, 40)).astype(np.float32) for _ in range(2))
    nu, nv = empty(8, 40), empty(8, 40)
    laplace = [sum(np.roll(q, s, a) for s in (1, -1) for a in (0, 1)) - 4 * q for q in (u, v)]
    uvv = u * v * v
    return Steps(
        [launch("gray_scott", (1, 8), 64, u, v, nu, nv, 40, 8, 0.03, 0.06)],
        [
            close(nu, u + 0.16 * laplace[0] - uvv + 0.03 * (1 - u)),
            close(nv, v + 0.08 * laplace[1] + uvv - 0.09 * v),
        ],
    )


@samples("5_Domain_Specific/fluidsGL/fluidsGL_kernels.cu")
def advect(rng: Random) -> Steps:
    v, q, out = floats(rng, 9, 40, 2), floats(rng, 9, 40), empty(9, 40)
    r, c = np.indices((9, 40))
    x, y = np.clip(c - 2.0 * v[..., 0], 0, 38.999), np.clip(r - 2.0 * v[..., 1], 0, 7.999)
    i, j = x.astype(int), y.astype(int)
    fx, fy = x - i, y - j
    top, bottom = q[j, i] * (1 - fx) + q[j, i + 1] * fx, q[j + 1, i] * (1 - fx) + q[j + 1, i + 1] * fx
    # Weights in float32 of coordinates up to 40 have errors up to 4e-6.
    return Steps(
        [launch("advect", (1, 9), 64, v, q, out, 40, 9, 2.0)], [close(out, top * (1 - fy) + bottom * fy, 1e-4)]
    )


@Project("cudpp/cudpp", "fields")("src/cudpp/kernel/tridiagonal_kernel.cuh", {4: Race})
def cyclic_reduction(rng: Random) -> Steps:
    a, c, d, x = floats(rng, 3, 64), floats(rng, 3, 64), floats(rng, 3, 64), empty(3, 64)
    b = (np.abs(a) + np.abs(c) + 1).astype(np.float32)
    rows = np.arange(64)
    m = np.zeros((3, 64, 64))
    m[:, rows, rows], m[:, rows[1:], rows[:-1]], m[:, rows[:-1], rows[1:]] = b, a[:, 1:], c[:, :-1]
    return Steps(
        [launch("cyclic_reduction", 3, 64, a, b, c, d, x, 64)],
        [close(x, np.linalg.solve(m, d[..., None])[..., 0], 1e-4)],
    )


@Project("glotzerlab/hoomd-blue", "fields")("hoomd/md/PotentialPairGPU.cuh", {5: OutOfBounds})
def cell_forces(rng: Random) -> Steps:
    grid = np.stack(np.meshgrid(np.arange(24) * 0.33, np.arange(4) * 0.31, indexing="ij"), -1).reshape(-1, 2)
    pos = (grid + 0.05 * rng.random(grid.shape) + 0.02).astype(np.float32)
    pos = pos[np.argsort(pos[:, 0].astype(int), kind="stable")]
    start = np.searchsorted(pos[:, 0].astype(int), np.arange(9)).astype(np.int32)
    force, away = empty(96, 2), pos[:, None].astype(np.float64) - pos
    r2 = (away**2).sum(2) + 9 * np.eye(96)
    s6 = (0.04 / r2) ** 3
    k = np.where(r2 < 0.64, 24 * s6 * (2 * s6 - 1) / r2, 0)
    return Steps(
        [launch("cell_forces", 2, 64, pos, start, force, 96, 8, 0.64)],
        [close(force, (k[..., None] * away).sum(1), 1e-2, 1e-3)],
    )


@Project("DualSPHysics/DualSPHysics", "fields")("src/source/JSphGpu_ker.cu", {6: Race})
def sph_density(rng: Random) -> Steps:
    p, rho = rng.random((150, 4)).astype(np.float32), empty(150)
    d = 0.1 - ((p[:, None, :3].astype(np.float64) - p[:, :3]) ** 2).sum(2)
    expected = (p[:, 3] * np.maximum(d, 0) ** 3).sum(1)
    return Steps([launch("sph_density", 3, 64, p, rho, 150, 0.1)], [close(rho, expected)])


@Project("NVIDIA/ising-gpu", "fields")("basic_cuda/main.cu")
def ising(rng: Random) -> Steps:
    spin, draws = rng.choice(np.array([-1, 1], np.int8), (8, 40)), rng.random((8, 40)).astype(np.float32)
    expected, colour = spin.astype(int), np.indices((8, 40)).sum(0) % 2
    for k in (0, 1):
        near = sum(np.roll(expected, s, a) for s in (1, -1) for a in (0, 1))
        flip = (draws < np.exp(-0.8 * expected * near)) & (colour == k)
        expected = np.where(flip, -expected, expected)
    return Steps([launch("ising", (1, 8), 64, spin, draws, 40, 8, k, 0.4) for k in (0, 1)], [exact(spin, expected)])


@Project("RayTracing/raytracing.github.io", "fields")("src/InOneWeekend/sphere.h", {7: (Race, Uninitialised)})
def trace_spheres(rng: Random) -> Steps:
    sphere = np.column_stack([rng.uniform(-2, 2, (12, 2)), rng.uniform(4, 8, 12), rng.uniform(0.3, 0.9, 12)])
    sphere, hit, depth = sphere.astype(np.float32), empty(9, 50, dtype=np.int32), empty(9, 50)
    y, x = np.meshgrid((np.arange(9) + 0.5) / 9 - 0.5, (np.arange(50) + 0.5) / 50 - 0.5, indexing="ij")
    way = np.stack([x, y, np.ones_like(x)], -1)
    way /= np.linalg.norm(way, axis=-1, keepdims=True)
    b = way @ sphere[:, :3].T.astype(np.float64)
    q = b**2 - (sphere[:, :3].astype(np.float64) ** 2).sum(1) + sphere[:, 3].astype(np.float64) ** 2
    t = np.where(q > 0, b - np.sqrt(np.maximum(q, 0)), 1e30)
    return Steps(
        [launch("trace_spheres", (1, 9), 64, sphere, 12, hit, depth, 50, 9)],
        [exact(hit, np.where(t.min(-1) < 1e30, t.argmin(-1), -1)), close(depth, t.min(-1), 1e-2)],
    )


@Project("lighttransport/nanort", "fields")("nanort.h")
def triangles_hit(rng: Random) -> Steps:
    tri, ray, out = floats(rng, 10, 3, 3), floats(rng, 60, 2, 3), empty(60)
    a, e, f = (each[None].astype(np.float64) for each in (tri[:, 0], tri[:, 1] - tri[:, 0], tri[:, 2] - tri[:, 0]))
    d, s = ray[:, None, 1].astype(np.float64), ray[:, None, 0] - a
    p, q = np.cross(d, f), np.cross(s, e)
    inv = 1 / (e * p).sum(-1)
    u, v, t = inv * (s * p).sum(-1), inv * (d * q).sum(-1), inv * (f * q).sum(-1)
    t = np.where((u >= 0) & (v >= 0) & (u + v <= 1) & (t > 0), t, 1e30)
    return Steps([launch("triangles_hit", 2, 32, tri, ray, out, 60, 10)], [close(out, t.min(1), 1e-4, 1e-3)])


def code_of(points: np.ndarray) -> np.ndarray:
    cell = (np.clip(points * np.float32(1024), 0, 1023)).astype(np.uint32)
    bits = cell[:, :, None] >> np.arange(10, dtype=np.uint32) & 1
    return (bits << (3 * np.arange(10) + np.array([2, 1, 0])[:, None]).astype(np.uint32)).sum((1, 2)).astype(np.uint32)


@Project("ToruNiina/lbvh", "fields")("lbvh/morton_code.cuh")
def morton(rng: Random) -> Steps:
    points, code = rng.random((90, 3)).astype(np.float32), empty(90, dtype=np.uint32)
    return Steps([launch("morton", 3, 32, points, code, 90)], [exact(code, code_of(points))])


@Project("ToruNiina/lbvh", "fields")("lbvh/bvh.cuh", {8: OutOfBounds})
def karras_ranges(rng: Random) -> Steps:
    code, ranges = np.sort(code_of(rng.random((90, 3)).astype(np.float32))), empty(89, 2, dtype=np.int32)
    code[40:43] = code[40]
    text = [f"{c:032b}{i:032b}" for i, c in enumerate(code.tolist())]

    def common(i: int, j: int) -> int:
        if not 0 <= j < 90:
            return -1
        return next(k for k in range(64) if text[i][k] != text[j][k])

    expected = []
    for i in range(89):
        d = 1 if common(i, i + 1) > common(i, i - 1) else -1
        end = i
        while common(i, end + d) > common(i, i - d):
            end += d
        expected.append(sorted((i, end)))
    return Steps([launch("karras_ranges", 3, 32, code, ranges, 90)], [exact(ranges, np.array(expected))])
