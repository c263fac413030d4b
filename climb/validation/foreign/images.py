"""Images: OpenCV and cuda-samples."""

from __future__ import annotations

import numpy as np

from climb.emulator import OutOfBounds, Race, Uninitialised

from .program import WRONG, Project, Steps, close, empty, exact, floats, integers, launch

Random = np.random.Generator
opencv = Project("opencv/opencv_contrib", "images")
samples = Project("NVIDIA/cuda-samples", "images")
u8 = np.uint8


def windows(x: np.ndarray, radius: int, **pad: object) -> np.ndarray:
    """Return the windows around each pixel; edges are repeated unless ``pad`` says otherwise."""
    return np.lib.stride_tricks.sliding_window_view(
        np.pad(x, radius, **(pad or {"mode": "edge"})), (2 * radius + 1, 2 * radius + 1)
    )


@samples("2_Concepts_and_Techniques/SobelFilter/SobelFilter_kernels.cu", {1: (Race, Uninitialised)})
def sobel(rng: Random) -> Steps:
    x, y = integers(rng, 0, 256, 13, 45, dtype=u8), empty(13, 45, dtype=u8)
    k = np.array([[-1, 0, 1], [-2, 0, 2], [-1, 0, 1]])
    w = windows(x.astype(int), 1)
    expected = np.minimum(np.abs((w * k).sum((2, 3))) + np.abs((w * k.T).sum((2, 3))), 255)
    return Steps([launch("sobel", (2, 2), (32, 8), x, y, 45, 13)], [exact(y, expected)])


@opencv("modules/cudafilters/src/cuda/median_filter.cu")
def median3(rng: Random) -> Steps:
    x, y = integers(rng, 0, 256, 13, 45, dtype=u8), empty(13, 45, dtype=u8)
    return Steps([launch("median3", 5, 128, x, y, 45, 13)], [exact(y, np.median(windows(x, 1), (2, 3)))])


@opencv("modules/cudaimgproc/src/cuda/hist.cu", {2: Race})
def equalise(rng: Random) -> Steps:
    x = (rng.random(800) ** 2 * 200 + 20).astype(u8)
    hist, table, y = np.bincount(x, minlength=256).astype(np.int32), empty(256, dtype=u8), empty(800, dtype=u8)
    total = np.cumsum(hist)
    base = hist[hist > 0][0]
    expected = (np.maximum(0, total - base) * 255 // (800 - base)).astype(u8)
    return Steps(
        [launch("equalise_table", 1, 256, hist, table, 800), launch("apply_table", 2, 128, x, table, y, 200)],
        [exact(table, expected), exact(y, expected[x])],
    )


@opencv("modules/cudev/include/opencv2/cudev/grid/detail/integral.hpp", {3: WRONG})
def integral(rng: Random) -> Steps:
    x, y = integers(rng, 0, 256, 13, 75, dtype=u8), empty(13, 75, dtype=np.int32)
    return Steps(
        [launch("integral_rows", 13, 32, x, y, 75), launch("integral_columns", 2, 64, y, 75, 13)],
        [exact(y, x.astype(int).cumsum(0).cumsum(1))],
    )


@opencv("modules/cudaimgproc/src/cuda/bilateral_filter.cu", {4: (OutOfBounds, WRONG)})
def bilateral(rng: Random) -> Steps:
    x, y = floats(rng, 12, 20), empty(12, 20)
    w, d = windows(x.astype(np.float64), 2, constant_values=np.nan), np.arange(-2, 3) ** 2
    weight = np.exp(-0.1 * (d + d[:, None]) - 0.5 * (w - x[..., None, None]) ** 2)
    expected = np.nansum(weight * w, (2, 3)) / np.nansum(weight, (2, 3))
    return Steps([launch("bilateral", (2, 2), (16, 8), x, y, 20, 12, 2, -0.1, -0.5)], [close(y, expected)])


@samples("5_Domain_Specific/imageDenoising/imageDenoising_nlm_kernel.cuh")
def non_local_means(rng: Random) -> Steps:
    x, y = floats(rng, 14, 20), np.zeros((14, 20), np.float32)
    patch, expected = windows(x, 1), np.zeros((14, 20))
    for r in range(3, 11):
        for c in range(3, 17):
            area = np.s_[r - 2 : r + 3, c - 2 : c + 3]
            weight = np.exp(-0.3 * ((patch[area] - patch[r, c]) ** 2).sum((2, 3)))
            expected[r, c] = (weight * x[area]).sum() / weight.sum()
    return Steps([launch("non_local_means", (2, 2), (16, 8), x, y, 20, 14, 0.3)], [close(y, expected)])


@opencv("modules/cudawarping/src/cuda/resize.cu")
def resize_linear(rng: Random) -> Steps:
    x, y = integers(rng, 0, 256, 9, 12, 4, dtype=u8), empty(14, 20, 4, dtype=u8)
    (r, fr), (c, fc) = (np.divmod((np.arange(m) + 0.5) * n / m - 0.5, 1) for n, m in ((9, 14), (12, 20)))
    at = [x[np.clip(r + i, 0, 8).astype(int)][:, np.clip(c + j, 0, 11).astype(int)] for i in (0, 1) for j in (0, 1)]
    fr, fc = fr[:, None, None], fc[:, None]
    top, bottom = at[0] * (1 - fc) + at[1] * fc, at[2] * (1 - fc) + at[3] * fc
    # A value halfway between two integers may go either way in float32.
    return Steps(
        [launch("resize_linear", (2, 2), (16, 8), x, y, 12, 9, 20, 14)],
        [close(y, np.rint(top * (1 - fr) + bottom * fr), atol=1, rtol=0)],
    )


@Project("orzzzjq/Parallel-Banding-Algorithm-plus", "images")("PBA/pba2D.h, with jump flooding", {5: Race})
def jump_flood(rng: Random) -> Steps:
    a, b = np.full((16, 24), -1, np.int32), empty(16, 24, dtype=np.int32)
    a.flat[[100]] = 100
    a.flat[[383]] = 383
    turns, r, c = [(a, b, 8), (b, a, 4), (a, b, 2), (b, a, 1)], *np.indices((16, 24))
    one, two = ((s // 24 - r) ** 2 + (s % 24 - c) ** 2 for s in (100, 383))
    first = launch("jump_flood", 3, 128, a, b, 24, 16, 16)
    rest = [launch("jump_flood", 3, 128, y, x, 24, 16, step) for x, y, step in turns]
    return Steps(
        [first, *rest, launch("jump_flood", 3, 128, b, a, 24, 16, 1)], [exact(a, np.where(one <= two, 100, 383))]
    )


@Project("DanBloomberg/leptonica", "images")("src/graymorph.c", {6: (Race, Uninitialised)})
def erode_rows(rng: Random) -> Steps:
    x, y = integers(rng, 0, 256, 5, 90, dtype=u8), empty(5, 90, dtype=u8)
    padded = np.pad(x, ((0, 0), (3, 3)), constant_values=255)
    expected = np.lib.stride_tricks.sliding_window_view(padded, 7, 1).min(2)
    return Steps([launch("erode_rows", 5, 32, x, y, 90, 3, shared=2 * 7 * 32)], [exact(y, expected)])
