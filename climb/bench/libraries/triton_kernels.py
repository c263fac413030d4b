"""Matrix products and matrix-vector products in Triton, autotuned: the speed that a few dozen lines of Python reach.

Triton comes with PyTorch. The kernels follow its tutorials' structure (blocks of the result, grouped so that those that
run together share their inputs in the L2 cache); configurations are tried when a peer is prepared, and the fastest is
the peer. This module is read by Triton, so it is imported only when a peer is prepared.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import triton
import triton.language as tl

from climb.bench.libraries.choosing import Prepared, fastest

#: Blocks of rows whose tiles run together.
GROUP = 8
#: (rows, columns, depth of a tile, warps, stages) of products.
TILES = (
    (128, 256, 32, 8, 3), (128, 128, 32, 8, 3), (128, 128, 32, 4, 3), (128, 64, 32, 4, 4), (64, 128, 32, 4, 4),
    (64, 64, 32, 4, 4), (128, 128, 16, 8, 4), (64, 256, 32, 8, 3), (128, 256, 16, 8, 4),
)  # fmt: skip
#: Those for factors of float16, whose rows are half as long.
HALF_TILES = (
    (128, 256, 64, 8, 3), (128, 256, 64, 8, 4), (256, 128, 64, 8, 3), (128, 128, 64, 8, 4), (128, 128, 64, 4, 3),
    (128, 64, 64, 4, 4), (64, 128, 64, 4, 4), (64, 64, 64, 4, 5), (64, 256, 64, 8, 3), (128, 128, 128, 8, 3),
)  # fmt: skip
#: Those for a batch of few rows: tiles are thin, and the depth is cut so that all multiprocessors have work.
THIN_TILES = ((16, 64, 64, 4, 4), (16, 128, 64, 4, 4), (32, 64, 64, 4, 4), (32, 128, 64, 8, 3), (32, 32, 128, 4, 4))
CUTS = (1, 2, 4, 8)
#: (rows, columns of a step, warps) of matrix-vector products.
STRIPS = ((1, 1024, 4), (1, 2048, 8), (2, 1024, 4), (4, 512, 4), (4, 1024, 8), (8, 512, 8), (1, 4096, 8))

#: (values of a step, warps, programs per multiprocessor) of histograms.
STEPS = ((1024, 4, 8), (2048, 4, 4), (2048, 8, 4), (4096, 8, 2), (4096, 8, 4), (8192, 16, 2))


@triton.jit
def product_kernel(
    a, b, c, m, n, k, a_row, a_col, b_row, b_col, c_row,
    ROWS: tl.constexpr, COLS: tl.constexpr, DEPTH: tl.constexpr, GROUPED: tl.constexpr, CUT: tl.constexpr,
    PRECISION: tl.constexpr,
):  # fmt: skip
    """c[i, j] = sum over k of a[i, k] b[k, j], by strides in elements; with CUT > 1, added to c by atomics."""
    program, part = tl.program_id(0), tl.program_id(1)
    tall, wide = tl.cdiv(m, ROWS), tl.cdiv(n, COLS)
    first = program // (GROUPED * wide) * GROUPED
    height = min(tall - first, GROUPED)
    row = first + program % (GROUPED * wide) % height
    col = program % (GROUPED * wide) // height
    rows = row * ROWS + tl.arange(0, ROWS)
    cols = col * COLS + tl.arange(0, COLS)
    sums = tl.zeros((ROWS, COLS), dtype=tl.float32)
    for step in range(part, tl.cdiv(k, DEPTH), CUT):
        depth = step * DEPTH + tl.arange(0, DEPTH)
        left = tl.load(
            a + rows[:, None].to(tl.int64) * a_row + depth[None, :] * a_col,
            mask=(rows[:, None] < m) & (depth[None, :] < k), other=0.0,
        )  # fmt: skip
        right = tl.load(
            b + depth[:, None].to(tl.int64) * b_row + cols[None, :].to(tl.int64) * b_col,
            mask=(depth[:, None] < k) & (cols[None, :] < n), other=0.0,
        )  # fmt: skip
        sums = tl.dot(left, right, sums, input_precision=PRECISION)
    to = c + rows[:, None].to(tl.int64) * c_row + cols[None, :]
    inside = (rows[:, None] < m) & (cols[None, :] < n)
    if CUT == 1:
        tl.store(to, sums, mask=inside)
    else:
        tl.atomic_add(to, sums, mask=inside)


@triton.jit
def vector_kernel(weights, given, out, n, k, ROWS: tl.constexpr, STEP: tl.constexpr, KIND: tl.constexpr):
    """out[i] = sum over k of weights[i, k] given[k], a block for ROWS rows; KIND is the type of the sums."""
    rows = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    sums = tl.zeros((ROWS, STEP), dtype=KIND)
    for start in range(0, k, STEP):
        at = start + tl.arange(0, STEP)
        x = tl.load(given + at, mask=at < k, other=0)
        inside = (rows[:, None] < n) & (at[None, :] < k)
        w = tl.load(weights + rows[:, None] * k + at[None, :], mask=inside, other=0, eviction_policy="evict_first")
        sums += w * x[None, :]
    tl.store(out + rows, tl.sum(sums, axis=1), mask=rows < n)


@triton.jit
def histogram_kernel(values, counts, n, BINS: tl.constexpr, STEP: tl.constexpr):
    """Add to counts how often each of 0 ... BINS - 1 occurs among n values; sums stay in a program's registers."""
    bins = tl.arange(0, BINS)
    sums = tl.zeros((BINS,), dtype=tl.int32)
    for start in range(tl.program_id(0) * STEP, n, tl.num_programs(0) * STEP):
        at = start + tl.arange(0, STEP)
        inside = at < n
        x = tl.load(values + at, mask=inside, other=0).to(tl.int32)
        sums += tl.histogram(x, BINS, mask=inside)
    tl.atomic_add(counts + bins, sums)


def product(a: Any, b: Any, c: Any, precision: str = "ieee") -> Prepared:
    """Return a launch of c = a b, tensors of two dimensions, c row-major float32, a and b by any strides, float32 or
    float16.

    ``precision`` is Triton's ``input_precision``: ``"ieee"`` (fp32 FMAs), ``"tf32"``, or ``"tf32x3"``, three TF32
    products whose sum is nearly as accurate as fp32.
    """
    m, n, k = a.shape[0], b.shape[1], a.shape[1]
    thin = m <= 32
    thick = HALF_TILES if a.element_size() == 2 else TILES
    shapes = [(*tile, cut) for tile in (THIN_TILES if thin else thick) for cut in (CUTS if thin else CUTS[:1])]

    def candidate(rows: int, cols: int, depth: int, warps: int, stages: int, cut: int) -> Prepared:
        grid = (triton.cdiv(m, rows) * triton.cdiv(n, cols), cut)
        strides = (a.stride(0), a.stride(1), b.stride(0), b.stride(1), c.stride(0))

        def enqueue() -> None:
            if cut > 1:
                c.zero_()
            product_kernel[grid](
                a, b, c, m, n, k, *strides, ROWS=rows, COLS=cols, DEPTH=depth, GROUPED=GROUP, CUT=cut,
                PRECISION=precision, num_warps=warps, num_stages=stages,
            )  # fmt: skip

        said = f"tile {rows} x {cols} x {depth}, {warps} warps, {stages} stages" + (f", k in {cut}" if cut > 1 else "")
        return Prepared(enqueue, {"choice": said})

    return fastest(lambda shape=shape: candidate(*shape) for shape in shapes)


def vector_product(weights: Any, given: Any, out: Any, strips: Iterable[tuple[int, int, int]] = STRIPS) -> Prepared:
    """Return a launch of out = weights given: weights (n, k), given (k), out (n), all float32 or all int32 tensors."""
    import torch

    n, k = weights.shape
    kind = tl.int32 if weights.dtype == torch.int32 else tl.float32

    def candidate(rows: int, step: int, warps: int) -> Prepared:
        def enqueue() -> None:
            vector_kernel[(triton.cdiv(n, rows),)](
                weights, given, out, n, k, ROWS=rows, STEP=step, KIND=kind, num_warps=warps
            )

        return Prepared(enqueue, {"choice": f"{rows} rows a block, {step} columns a step, {warps} warps"})

    return fastest(lambda strip=strip: candidate(*strip) for strip in strips)


def histogram(values: Any, counts: Any) -> Prepared:
    """Return a launch that counts each of 0 ... bins - 1 among integer ``values``; ``counts`` has a power of two of
    bins."""
    import torch

    n, bins = values.numel(), counts.numel()
    processors = torch.cuda.get_device_properties(values.device).multi_processor_count

    def candidate(step: int, warps: int, programs: int) -> Prepared:
        def enqueue() -> None:
            counts.zero_()
            histogram_kernel[(processors * programs,)](values, counts, n, BINS=bins, STEP=step, num_warps=warps)

        return Prepared(enqueue, {"choice": f"{step} values a step, {warps} warps, {programs} programs per SM"})

    return fastest(lambda shape=shape: candidate(*shape) for shape in STEPS)
