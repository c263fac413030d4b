"""Attention: flash-attention and vLLM."""

from __future__ import annotations

import numpy as np

from climb.emulator import OutOfBounds, Race, Uninitialised

from .language_models import softmax
from .program import WRONG, Project, Steps, close, empty, exact, floats, integers, launch

Random = np.random.Generator
flash = Project("Dao-AILab/flash-attention", "flash")
vllm = Project("vllm-project/vllm", "flash")


@Project("tspeterkim/flash-attention-minimal", "flash")("flash.cu", {1: (Race, Uninitialised), 2: WRONG})
def flash_forward(rng: Random) -> Steps:
    q, k, v = floats(rng, 2, 45, 8), floats(rng, 2, 45, 8), floats(rng, 2, 45, 8)
    out, lse = empty(2, 45, 8), empty(2, 45)
    scores = 0.25 * q.astype(np.float64) @ k.transpose(0, 2, 1)
    return Steps(
        [launch("flash_forward", 2, 16, q, k, v, out, lse, 45, 3, 0.25)],
        [close(out, softmax(scores) @ v, 1e-4), close(lse, np.log(np.exp(scores).sum(-1)), 1e-4)],
    )


@flash("csrc/flash_attn/src/flash_fwd_kernel.h")
def combine_splits(rng: Random) -> Steps:
    part, lse, out = floats(rng, 3, 9, 32), floats(rng, 3, 9), empty(9, 32)
    weight = softmax(lse.T).T[..., None]
    return Steps([launch("combine_splits", 9, 32, part, lse, out, 3, 9, 32)], [close(out, (weight * part).sum(0))])


@flash("csrc/flash_attn/src/flash_bwd_preprocess_kernel.h")
def attention_delta(rng: Random) -> Steps:
    dout, out, delta = floats(rng, 21, 20), floats(rng, 21, 20), empty(21)
    return Steps(
        [launch("attention_delta", 3, 64, dout, out, delta, 21, 20)], [close(delta, (dout * out).sum(1), 1e-4)]
    )


@vllm("csrc/cache_kernels.cu", {3: OutOfBounds})
def reshape_and_cache(rng: Random) -> Steps:
    key, cache, slot = floats(rng, 6, 40), floats(rng, 3, 40, 8), np.array([3, -1, 23, 8, 0, 15], np.int32)
    expected = cache.copy()
    for row, s in zip(key, slot, strict=True):
        if s >= 0:
            expected[s // 8, :, s % 8] = row
    return Steps([launch("reshape_and_cache", 6, 32, key, cache, slot, 40, 8)], [exact(cache, expected)])


@vllm("csrc/attention/attention_kernels.cuh", {4: (Race, Uninitialised)})
def paged_attention(rng: Random) -> Steps:
    q, keys, vals, out = floats(rng, 3, 32), floats(rng, 9, 32, 8), floats(rng, 9, 32, 8), empty(3, 32)
    table, lens = rng.permutation(9).astype(np.int32).reshape(3, 3), np.array([19, 8, 23], np.int32)
    expected = []
    for s, n in enumerate(lens):
        k, v = (pages[table[s]].transpose(0, 2, 1).reshape(24, 32)[:n] for pages in (keys, vals))
        expected.append(softmax(0.2 * k @ q[s]) @ v)
    args = (q, keys, vals, table, lens, out, 8, 3, 0.2)
    return Steps([launch("paged_attention", 3, 128, *args, shared=96)], [close(out, np.array(expected), 1e-4)])


@vllm("csrc/moe/moe_align_sum_kernels.cu", {5: Uninitialised})
def moe_align(rng: Random) -> Steps:
    expert = integers(rng, 0, 5, 37)
    rows, ends = [], []
    for e in range(5):
        found = np.flatnonzero(expert == e).tolist()
        rows += found + [37] * (-len(found) % 4)
        ends.append(len(rows))
    ordered, end = empty(len(rows), dtype=np.int32), empty(5, dtype=np.int32)
    return Steps(
        [launch("moe_align", 1, 64, expert, ordered, end, 37, 5, 4, shared=24)],
        [exact(ordered, np.array(rows)), exact(end, np.array(ends))],
    )
