"""Run products on a GPU, and compare every bit with the emulator's arithmetic."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from climb.emulator.runtime.tensor_cores.arithmetic import (
    Types,
    quad_product,
    tile_product,
    warp_product,
    warpgroup_product,
)  # fmt: skip
from climb.emulator.runtime.tensor_cores.sparsity import sparse_product
from climb.validation.tensor_products import sparsity
from climb.validation.tensor_products.forms import BITS, FORMS, Form
from climb.validation.tensor_products.fragments import pack, unpack
from climb.validation.tensor_products.operands import FIELDS, matrices, values_of

#: The number of sums in the saved samples of each form, by whether the elements are floats.
SAMPLES = {True: 37, False: 8}
_MULTIPLY = {"warp": warp_product, "quad": quad_product, "tile": tile_product, "warpgroup": warpgroup_product}
_HOW = ("xor", "and", "rz", "rm", "rp")
Launch = Callable[[str, int, int, list[np.ndarray], int], np.ndarray]


@dataclass(frozen=True)
class Products:
    """Codes of products of one form: of A, B and C, and of D as a GPU or an emulated kernel has computed it.

    Of a sparse form, `a` has the stored elements, and `chosen`, int64 with the same shape, the k of each.
    """

    form: Form
    a: np.ndarray
    b: np.ndarray
    c: np.ndarray
    d: np.ndarray
    chosen: np.ndarray | None = None

    def modelled(self) -> np.ndarray:
        """Return D by the emulator's arithmetic."""
        return modelled(self.form, self.a, self.b, self.c, self.chosen)

    def different(self) -> np.ndarray:
        """Return which elements of D get other bits from the emulator's arithmetic; the bits of a float64 NaN may
        differ."""
        mine = self.modelled()
        bad = mine != self.d
        if self.form.d == "f64":
            bad &= ~(np.isnan(mine.view(np.float64)) & np.isnan(self.d.view(np.float64)))
        return bad


def modelled(
    form: Form, a: np.ndarray, b: np.ndarray, c: np.ndarray, chosen: np.ndarray | None = None
) -> np.ndarray:  # fmt: skip
    """Return D of a form by the emulator's arithmetic, from codes in the smallest unsigned types."""
    parts = form.opcode.split(".")
    how = next((each for each in _HOW if each in parts), "")
    types = Types(form.a, form.b, form.c, form.d, "satfinite" in parts, how)
    if form.negated:
        a = a ^ a.dtype.type(1 << BITS[form.a] - 1)
    if form.fresh:
        c = np.zeros_like(c)
    with np.errstate(all="ignore"):
        if chosen is not None:
            return sparse_product(_MULTIPLY[form.by], a, b, c, chosen, types)
        return _MULTIPLY[form.by](a, b, c, types)


def smallest(codes: np.ndarray, kind: str) -> np.ndarray:
    """Return codes in the smallest unsigned type that holds them."""
    return codes.astype(f"u{max(8, BITS[kind]) // 8}")


def run(form: Form, launch: Launch, count: int, rng: np.random.Generator) -> Products:
    """Compute `count` products (a multiple of 4) with a launcher. It takes the kernel's name, grid, block, the
    arguments, all of them arrays, the last for the results, and the number of products or warps."""
    chosen = sparsity.choose(rng, form, count) if form.sparse else None
    codes = dict(zip("abc", matrices(rng, form, count, chosen), strict=True))
    extra = []
    if chosen is not None:
        codes["a"] = sparsity.stored(codes["a"], chosen)
        extra = [sparsity.metadata(rng, form, chosen)]
    small = {matrix: smallest(each, getattr(form, matrix)) for matrix, each in codes.items()}
    word = "u8" if form.d == "f64" else "u4"
    if form.by == "tile":
        arguments = [np.ascontiguousarray(small[matrix]) for matrix in "abc"]
        d = smallest(np.zeros((count, form.m, form.n)), form.d)
        d = launch(form.name, count // 4, 128, [*arguments, d], count)
        return Products(form, *small.values(), d)
    if form.by == "warpgroup":
        rows = np.ascontiguousarray(small["a"]), np.ascontiguousarray(small["b"].swapaxes(1, 2))
        c = pack(codes["c"], "c", form)
        out = launch(form.name, count, 128, [*(each.view(np.uint32) for each in rows), c, *extra, np.zeros_like(c)],
                     count)  # fmt: skip
        return Products(form, *small.values(), unpack(out, "d", form), chosen)
    words = [pack(codes[matrix], matrix, form) for matrix in "abc"]
    warps = len(words[0])
    shape = pack(np.zeros((count, form.m, form.n), np.uint64), "d", form).shape
    out = launch(form.name, -(-warps // 4), 128, [*words, *extra, np.zeros(shape, word)], warps)
    return Products(form, *small.values(), unpack(out, "d", form), chosen)


def samples(products: Products, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Return a few sums of a form, by array name: a third with subnormal numbers, a third that one rounding of the
    exact value does not give, and others."""
    form, count = products.form, SAMPLES[products.form.floating]
    where = [rng.permutation(np.argwhere(np.ones(products.d.shape, np.bool_)))]
    if form.floating and form.d in ("f32", "f16"):
        with np.errstate(all="ignore"):
            left = values_of(products.a, form.a)
            if products.chosen is not None:
                left = spread(left, products.chosen, form.k)
            exact = np.matmul(left, values_of(products.b, form.b))
            exact = exact + values_of(products.c, form.c)
            near = exact.astype(np.float32 if form.d == "f32" else np.float16).view(products.d.dtype)
        odd = (near != products.d) & ~np.isnan(exact)
        small = odd & (
            subnormal(products.d, form.d) | subnormal(products.a, form.a).any(axis=2)[:, :, None]
            | subnormal(products.b, form.b).any(axis=1)[:, None]
        )  # fmt: skip
        where = [rng.permutation(np.argwhere(each))[: count // 3] for each in (small, odd)] + where
    product, row, column = np.concatenate(where)[:count].T
    parts = {
        "a": products.a[product, row], "b": products.b[product, :, column], "c": products.c[product, row, column],
        "d": products.d[product, row, column],
    }  # fmt: skip
    if products.chosen is not None:
        parts["chosen"] = products.chosen[product, row].astype(np.uint8)
    return {
        f"{form.name}/{name}": np.packbits(each, axis=-1) if form.a == "b1" and name in "ab" else each
        for name, each in parts.items()
    }


def spread(stored: np.ndarray, chosen: np.ndarray, k: int) -> np.ndarray:
    """Return A with zeros, (products, rows, k), from its stored elements."""
    out = np.zeros((*stored.shape[:2], k), stored.dtype)
    np.put_along_axis(out, chosen, stored, 2)
    return out


def subnormal(codes: np.ndarray, kind: str) -> np.ndarray:
    """Return which codes are subnormal numbers: bool."""
    exponent_bits, fraction_bits = FIELDS[kind]
    codes = codes.astype(np.uint64)
    field = codes >> np.uint64(fraction_bits) & np.uint64((1 << exponent_bits) - 1)
    return (field == 0) & (codes & np.uint64((1 << fraction_bits) - 1) != 0)


def load_samples(path: Path) -> Iterator[Products]:
    """Load the saved sums, as products of one row and one column."""
    with np.load(path) as saved:
        for form in FORMS.values():
            if f"{form.name}/d" not in saved:
                continue
            a, b, c, d = (saved[f"{form.name}/{matrix}"] for matrix in "abcd")
            if form.a == "b1":
                a, b = (np.unpackbits(each, axis=-1, count=form.k) for each in (a, b))
            chosen = saved[f"{form.name}/chosen"][:, None, :].astype(np.int64) if form.sparse else None
            yield Products(form, a[:, None, :], b[:, :, None], c[:, None, None], d[:, None, None], chosen)
