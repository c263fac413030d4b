"""Attention by wgmma: weights in registers, a transposed operand, and scores computed while the last are in use."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hopper_kernels import Example, emulate

from climb.emulator import EmulatorError, MissingProxyFence, PendingProduct, UnfencedProduct


def attention() -> Example:
    """128 queries, 256 keys and values, 64 dimensions."""
    rng = np.random.default_rng(4)
    q, k, v = (rng.standard_normal((rows, 64)).astype(np.float16) for rows in (128, 256, 256))
    return Example(
        "attention", 2, 128, (q, k, v, np.zeros((128, 64), np.float32)), (0, 1, 2, 3), (3,), reference,
        shared=(64 + 256 + 256) * 128,
    )  # fmt: skip


def reference(q: np.ndarray, k: np.ndarray, v: np.ndarray, _: np.ndarray) -> tuple[np.ndarray, ...]:
    """Softmax of the scaled scores, times the values, in float64."""
    scores = q.astype(np.float64) @ k.astype(np.float64).T / 8
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    return (weights @ v.astype(np.float64) / weights.sum(axis=1, keepdims=True),)


def test_attention_agrees_with_float64_and_raises_no_alarm() -> None:
    arrays, counters = emulate(attention())
    (want,) = reference(*attention().arrays)
    np.testing.assert_allclose(arrays[3], want, atol=2e-3)
    assert sum(line.flops for line in counters.product_lines) == 2 * 2 * 128 * 256 * 64


PLANTED = [
    ("        wait_group<0>();\n        for", "        wait_group<1>();\n        for", PendingProduct,
     "left the latest group open"),
    ("scale[i / 2 % 2];\n        fence();\n", "scale[i / 2 % 2];\n", UnfencedProduct,
     "between this matrix product and the write"),
    ("largest = fmaxf(largest, now[i] * 0.125f);", "largest = fmaxf(largest, next[i] * 0.125f);", PendingProduct,
     "no wgmma.wait_group has covered"),
    ('    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");\n', "", MissingProxyFence,
     "writes at attention.cu"),
]  # fmt: skip


@pytest.mark.parametrize("old,new,error,words", PLANTED)
def test_planted_mistakes_are_found(old: str, new: str, error: type[EmulatorError], words: str) -> None:
    with pytest.raises(error, match=f"(?s){words}"):
        emulate(replace(attention(), edits=((old, new),)))
