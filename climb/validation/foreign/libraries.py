"""Libraries: PyTorch, sparse matrices, moderngpu, Faiss, bitsandbytes, XGBoost."""

from __future__ import annotations

import numpy as np

from climb.emulator import OutOfBounds, Race, Uninitialised

from .program import WRONG, Project, Steps, close, empty, exact, floats, integers, launch

Random = np.random.Generator
cusp = Project("cusplibrary/cusplibrary", "libraries")
pytorch = Project("pytorch/pytorch", "libraries")
moderngpu = Project("moderngpu/moderngpu", "libraries")
faiss = Project("facebookresearch/faiss", "libraries")


def sparse(rng: Random, rows: int, cols: int) -> np.ndarray:
    return np.where(rng.random((rows, cols)) < 0.15, floats(rng, rows, cols), 0).astype(np.float32)


@cusp("cusp/system/cuda/detail/multiply/ell_spmv.h", {1: OutOfBounds})
def spmv_ell(rng: Random) -> Steps:
    dense, x, y = sparse(rng, 70, 50), floats(rng, 50), empty(70)
    width = int((dense != 0).sum(1).max())
    col, val = np.full((width, 80), -1, np.int32), np.zeros((width, 80), np.float32)
    for r, row in enumerate(dense):
        at = np.flatnonzero(row)
        col[: len(at), r], val[: len(at), r] = at, row[at]
    args = (col, val, x, y, 70, width, 80)
    return Steps([launch("spmv_ell", 3, 32, *args)], [close(y, dense.astype(np.float64) @ x)])


@cusp("cusp/system/cuda/detail/multiply/dia_spmv.h", {2: (Race, Uninitialised)})
def spmv_dia(rng: Random) -> Steps:
    offset, val, x, y = np.array([-40, -1, 0, 3, 9], np.int32), floats(rng, 5, 70), floats(rng, 60), empty(70)
    dense, r = np.zeros((70, 60)), np.arange(70)
    for k, off in enumerate(offset):
        inside = (r + off >= 0) & (r + off < 60)
        dense[r[inside], r[inside] + off] = val[k, inside]
    return Steps([launch("spmv_dia", 2, 64, offset, val, x, y, 70, 60, 5)], [close(y, dense @ x)])


@Project("ginkgo-project/ginkgo", "libraries")("common/cuda_hip/matrix/coo_kernels.cpp", {3: Race})
def spmv_coo(rng: Random) -> Steps:
    dense, x, y = sparse(rng, 20, 60), floats(rng, 60), floats(rng, 20)
    row, col = (each.astype(np.int32) for each in np.nonzero(dense))
    expected = y + dense.astype(np.float64) @ x
    args = (row, col, dense[row, col], x, y, len(row))
    return Steps([launch("spmv_coo", -(-len(row) // 64), 64, *args)], [close(y, expected)])


@Project("ginkgo-project/ginkgo", "libraries")("common/cuda_hip/solver/common_trs_kernels.hpp", {4: Race})
def solve_lower(rng: Random) -> Steps:
    dense, b, x, ready = (
        np.tril(sparse(rng, 90, 90), -1),
        floats(rng, 90),
        np.zeros(90, np.float32),
        np.zeros(90, np.int32),
    )
    dense += 4 * np.eye(90, dtype=np.float32)
    row, col = (each.astype(np.int32) for each in np.nonzero(dense))
    first = np.searchsorted(row, np.arange(91)).astype(np.int32)
    args = (first, col, dense[row, col], b, x, ready, 90)
    return Steps([launch("solve_lower", 3, 32, *args)], [close(x, np.linalg.solve(dense.astype(np.float64), b))])


@pytorch("aten/src/ATen/native/cuda/EmbeddingBag.cu", {5: OutOfBounds})
def embedding_bag(rng: Random) -> Steps:
    table, index, out = floats(rng, 30, 20), integers(rng, 0, 30, 40), empty(6, 20)
    offset = np.array([0, 3, 3, 19, 20, 33], np.int32)
    bags = np.split(index, offset[1:])
    expected = np.stack([table[bag].sum(0) / max(len(bag), 1) for bag in bags])
    return Steps([launch("embedding_bag", 6, 32, table, index, offset, out, 6, 40, 20)], [close(out, expected)])


@pytorch("aten/src/ATen/native/cuda/Normalization.cuh", {6: (Race, Uninitialised)})
def batch_norm_stats(rng: Random) -> Steps:
    x, mean, var = floats(rng, 3, 4, 90) + 5, empty(4), empty(4)
    return Steps(
        [launch("batch_norm_stats", 4, 128, x, mean, var, 3, 4, 90)],
        [close(mean, x.mean((0, 2))), close(var, x.var((0, 2)))],
    )


@pytorch("aten/src/ATen/native/cuda/DilatedMaxPool2d.cu", {7: (OutOfBounds, WRONG)})
def max_pool(rng: Random) -> Steps:
    x, y, where = floats(rng, 11, 13), empty(6, 7), empty(6, 7, dtype=np.int32)
    padded = np.pad(x, 1, constant_values=-np.inf)
    best = np.lib.stride_tricks.sliding_window_view(padded, (3, 3))[::2, ::2].max((2, 3))
    at = np.array([np.flatnonzero(x == v)[0] for v in best.flat]).reshape(6, 7)
    args = (x, y, where, 13, 11, 7, 6, 3, 2, 1)
    return Steps([launch("max_pool", 2, 32, *args)], [exact(y, best), exact(where, at)])


@Project("pytorch/vision", "libraries")("torchvision/csrc/ops/cuda/nms_kernel.cu", {8: (Race, Uninitialised)})
def nms_mask(rng: Random) -> Steps:
    corner, size = rng.random((90, 2)), 0.1 + 0.3 * rng.random((90, 2))
    box, mask = np.concatenate([corner, corner + size], 1).astype(np.float32), empty(90, 2, dtype=np.uint64)
    low, high = np.maximum(box[:, None, :2], box[:, :2]), np.minimum(box[:, None, 2:], box[:, 2:])
    both, area = np.maximum(high - low, 0).prod(2), (box[:, 2:] - box[:, :2]).prod(1)
    over = np.triu(both > np.float32(0.3) * (area[:, None] + area - both), 1)
    bits = np.pad(over, ((0, 0), (0, 38))).reshape(90, 2, 64)
    expected = np.packbits(bits, 2, bitorder="little").view(np.uint64)
    return Steps([launch("nms_mask", (2, 2), 64, box, mask, 90, 0.3)], [exact(mask, expected)])


@moderngpu("src/moderngpu/kernel_intervalmove.hxx", {9: OutOfBounds})
def interval_expand(rng: Random) -> Steps:
    counts = integers(rng, 0, 6, 40)
    start, total = (np.cumsum(counts) - counts).astype(np.int32), int(counts.sum())
    out = empty(total, dtype=np.int32)
    return Steps(
        [launch("interval_expand", -(-total // 64), 64, start, out, 40, total)],
        [exact(out, np.repeat(np.arange(40), counts))],
    )


@moderngpu("src/moderngpu/kernel_segreduce.hxx", {10: (Race, Uninitialised)})
def run_heads(rng: Random) -> Steps:
    key = np.repeat(np.arange(50), integers(rng, 1, 8, 50))[:200].astype(np.int32)
    expected = np.flatnonzero(np.diff(key, prepend=-1))
    head, runs = empty(len(expected), dtype=np.int32), empty(1, dtype=np.int32)
    return Steps(
        [launch("run_heads", 1, 256, key, head, runs, len(key))],
        [exact(head, expected), exact(runs, np.array([len(expected)]))],
    )


@faiss("faiss/gpu/impl/Distance.cu", {11: Race})
def l2_distance(rng: Random) -> Steps:
    q, c, out = floats(rng, 20, 40), floats(rng, 25, 40), empty(20, 25)
    expected = ((q[:, None] - c.astype(np.float64)) ** 2).sum(2)
    return Steps([launch("l2_distance", (2, 2), (16, 16), q, c, out, 20, 25, 40)], [close(out, expected, 1e-4)])


@faiss("faiss/gpu/utils/WarpSelectKernel.cuh", {12: Race})
def warp_select(rng: Random) -> Steps:
    x, best, where = floats(rng, 4, 100), empty(4, 7), empty(4, 7, dtype=np.int32)
    x[1, 50:60] = -5
    at = np.argsort(x, 1, kind="stable")[:, :7]
    return Steps(
        [launch("warp_select", 4, 32, x, best, where, 100, 7)],
        [exact(best, np.take_along_axis(x, at, 1)), exact(where, at)],
    )


@Project("bitsandbytes-foundation/bitsandbytes", "libraries")("csrc/kernels.cu", {13: (Race, OutOfBounds)})
def quantize_nf4(rng: Random) -> Steps:
    x, level = floats(rng, 250), np.sort(rng.uniform(-1, 1, 16)).astype(np.float32)
    most = np.abs(np.pad(x, (0, 6)).reshape(4, 64)).max(1)
    half = np.float32(0.5) * (level[1:] + level[:-1])
    q = (x / np.repeat(most, 64)[:250])[:, None] > half
    nibble = q.sum(1)
    absmax, out = empty(4), empty(125, dtype=np.uint8)
    return Steps(
        [launch("quantize_nf4", 4, 64, x, level, absmax, out, 250)],
        [exact(absmax, most), exact(out, nibble[::2] | nibble[1::2] << 4)],
    )


@Project("dmlc/xgboost", "libraries")("src/tree/gpu_hist/histogram.cu", {14: Uninitialised})
def gradient_histogram(rng: Random) -> Steps:
    bins, grad, hist = integers(rng, 0, 64, 300, 3, dtype=np.uint8), floats(rng, 300, 2), empty(3, 64, 2)
    expected = [[np.bincount(b, grad[:, k].astype(np.float64), 64) for k in (0, 1)] for b in bins.T]
    return Steps(
        [launch("gradient_histogram", 3, 128, bins, grad, hist, 300, 3)],
        [close(hist, np.transpose(expected, (0, 2, 1)), 1e-5)],
    )
