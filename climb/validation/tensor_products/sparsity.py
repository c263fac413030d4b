"""Metadata of sparse products in the registers of a warp, as the PTX ISA draws them.

Written apart from the emulator's `runtime.tensor_cores.sparsity`.
"""

from __future__ import annotations

import numpy as np

from climb.validation.tensor_products.forms import BITS, Form


def choose(rng: np.random.Generator, form: Form, count: int) -> np.ndarray:
    """The k of each stored element of A: int64 (count, m, k / 2), two of four neighbours, of tf32 one of two.

    Where the form is not `ordered`, a third of the pairs are in descending order.
    """
    if form.a == "tf32":
        return np.arange(0, form.k, 2) + rng.integers(0, 2, (count, form.m, form.k // 2))
    low, high = np.triu_indices(4, 1)
    pair = rng.integers(0, 6, (count, form.m, form.k // 4))
    pair = np.where(rng.random((count, 1, 1)) < 0.3, pair % 2 * 5, pair)  # the first two or the last two
    first, second = low[pair], high[pair]
    turned = (rng.random(pair.shape) < 0.33) & (not form.ordered)
    both = np.stack([np.where(turned, second, first), np.where(turned, first, second)], axis=-1)
    return (both + 4 * np.arange(form.k // 4)[:, None]).reshape(count, form.m, -1)


def stored(a: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    """The elements of A that are stored."""
    return np.take_along_axis(a, chosen, 2)


def metadata(rng: np.random.Generator, form: Form, chosen: np.ndarray) -> np.ndarray:
    """The registers: uint32 (products, threads), random in the lanes that the selector does not choose."""
    count = len(chosen)
    if form.a == "tf32":
        nibbles = np.where(chosen % 2 == 1, 0b1110, 0b0100).astype(np.uint32)
    else:
        pair = (chosen % 4).astype(np.uint32)
        nibbles = pair[:, :, ::2] | pair[:, :, 1::2] << np.uint32(2)
    per = 8 if BITS[form.a] == 8 else 4  # nibbles of a row in a lane: 32 bits of one row, or 16 of each of two
    parts = nibbles.reshape(count, form.m, -1, per) << np.arange(0, 4 * per, 4, dtype=np.uint32)
    words = np.bitwise_or.reduce(parts, axis=3)  # (count, m, words of a row)
    words = words.reshape(count, form.m // 16, 2, 8, -1)  # (count, warp, upper or lower row, group, word)
    if per == 4:
        lanes = (words[:, :, 0] | words[:, :, 1] << np.uint32(16)).reshape(count, form.m // 16, 8, -1)
    else:
        lanes = words.transpose(0, 1, 3, 4, 2).reshape(count, form.m // 16, 8, -1)  # a word's rows g and g + 8
    out = rng.integers(0, 1 << 32, (count, form.m // 16, 8, 4), dtype=np.uint32)
    first = form.selector * lanes.shape[3]
    out[..., first : first + lanes.shape[3]] = lanes
    return out.reshape(count, -1)
