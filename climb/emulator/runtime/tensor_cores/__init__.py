"""Tensor cores: products of small matrices whose elements are spread over the lanes of warps."""

from __future__ import annotations

from collections.abc import Callable

from . import matrix_rows, products, tiles, warpgroups

RUNTIME: dict[str, Callable] = {**matrix_rows.RUNTIME, **tiles.RUNTIME, **products.RUNTIME, **warpgroups.RUNTIME}
