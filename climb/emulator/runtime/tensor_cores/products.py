"""mma.sync and wmma.mma: products of matrices in the registers of one warp."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ...simt.groups import Group
from ...simt.site import Site
from ...simt.warps import from_rows
from .arithmetic import Types, quad_product, tile_product, warp_product
from .fragments import Fragment, fragment, quad_fragment
from .sparsity import chosen, sparse_product
from .tiles import tile_fragment
from .warps import Registers, count_products, require_full_warps, rows_of

FORM = re.compile(r"m(\d+)n(\d+)k(\d+)\.(\w+)\.(\w+)\.(\w+)\.(\w+)(.*)")

REGISTERS = {"f32": np.float32, "f64": np.float64, "s32": np.int32}  # dtypes of registers; others hold several
_HOW = ("xor", "and", "rz", "rm", "rp")


class Form(NamedTuple):
    """One product: the fragments of its matrices and the function that multiplies codes."""

    a: Fragment
    b: Fragment
    c: Fragment
    d: Fragment
    types: Types
    multiply: Callable[[np.ndarray, np.ndarray, np.ndarray, Types], np.ndarray]


@functools.cache
def form_of(text: str) -> Form:
    """Return the form "mMnNkK.D.A.B.C", followed by ".wmma", by ".sp", by the layouts of a quad, and by modifiers."""
    m, n, k, d, a, b, c, rest = FORM.fullmatch(text).groups()
    rows, columns, depth = int(m), int(n), int(k)
    how = next((each for each in _HOW if f".{each}" in rest), "")
    types = Types(a, b, c, d, ".satfinite" in rest, how)
    if rest.startswith(".wmma"):
        parts = [
            tile_fragment(each, rows, columns, depth, kind) for each, kind in zip("abcd", (a, b, c, d), strict=True)
        ]
        return Form(*parts, types, tile_product)
    if rest.startswith((".row", ".col")):
        _, left, right = rest.split(".")
        parts = quad_fragment("a", a, left), quad_fragment("b", b, right), *(quad_fragment("c", t, "") for t in (c, d))
        return Form(*parts, types, quad_product)
    stored = depth // 2 if ".sp" in rest else depth
    parts = fragment("a", rows, stored, a), fragment("b", depth, columns, b)
    return Form(*parts, *(fragment("c", rows, columns, each) for each in (c, d)), types, warp_product)


def multiply(group: Group, site: Site, text: str, a: Registers, b: Registers, c: Registers) -> Registers:
    """D = A B + C for a form; see `form_of`. Returns the registers of D.

    Of registers that repeat, as those of wmma do, only the first are read.
    """
    require_full_warps(group, site)
    form = form_of(text)
    count_products(group, site, group.lanes.warps)
    rows = rows_of(group, a[: form.a.registers], b[: form.b.registers], c)
    left, right, plus = (each.gather(part) for each, part in zip((form.a, form.b, form.c), rows, strict=True))
    if left.ndim == 4:
        left, right, plus = (each.reshape(-1, *each.shape[2:]) for each in (left, right, plus))
    out = form.d.scatter(form.multiply(left, right, plus, form.types))
    kind = REGISTERS.get(form.types.d, np.uint32)
    return tuple(from_rows(group.lanes, each).view(kind) for each in out)


def multiply_sparse(
    group: Group, site: Site, text: str, a: Registers, b: Registers, c: Registers, metadata: np.ndarray, selector: int,
    ordered: bool,
) -> Registers:  # fmt: skip
    """mma.sp: D = A B + C, where A is stored as half of its elements, and the metadata say which."""
    require_full_warps(group, site)
    form = form_of(text)
    count_products(group, site, group.lanes.warps)
    *rows, (words,) = rows_of(group, a, b, c, (metadata,))
    left, right, plus = (each.gather(part) for each, part in zip((form.a, form.b, form.c), rows, strict=True))
    at = chosen(group, site, words, form.types.a, form.b.shape[0], selector, ordered)
    out = form.d.scatter(sparse_product(form.multiply, left, right, plus, at, form.types))
    kind = REGISTERS.get(form.types.d, np.uint32)
    return tuple(from_rows(group.lanes, each).view(kind) for each in out)


RUNTIME = {"matrix_multiply": multiply, "matrix_multiply_sparse": multiply_sparse}
