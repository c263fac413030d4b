"""The plan of each rung for a product: its launches and scratch arrays."""

from __future__ import annotations

from dataclasses import replace

from kernels.sgemm.sgemm.product import Plan, Scratch
from kernels.tensor_cores.tgemm import few, launches
from kernels.tensor_cores.tgemm.launches import Scheme

#: Rungs that split first.
SCHEMES = {
    "tf32x3": Scheme("Tf32", 4, 2),
    "bf16x3": Scheme("Bf16", 2, 2),
    "bf16x6": Scheme("Bf16", 2, 3),
    "bf16x9": Scheme("Bf16", 2, 3),
    "f16x3": Scheme("F16", 2, 2),
    "promoted": Scheme("F16", 2, 2, chain=1),
}
#: Launches and scratch arrays of each rung.
PLANS: dict[str, tuple[Plan, Scratch]] = {
    **{name: launches.split_first(scheme) for name, scheme in SCHEMES.items()},
    "fused": (
        lambda product: (launches.row_exponents(product), *launches.two_passes(product), launches.fused(product)),
        launches.fused_scratch,
    ),
    "one_pass": (
        lambda product: (
            launches.row_exponents(product),
            *launches.one_pass(product),
            replace(launches.fused(product), pdl=True),
        ),
        launches.fused_scratch,
    ),
    "tuned": (
        lambda product: (
            launches.split_rows(product),
            *launches.one_pass(product, permuted=False),
            launches.tuned(product),
        ),
        launches.tuned_scratch,
    ),
    "held": (
        lambda product: (
            launches.row_exponents(product),
            *launches.one_pass(product),
            launches.tuned(product, held=True),
        ),
        launches.held_scratch,
    ),
    "one_launch": (lambda product: (*launches.one_launch(product), launches.tuned(product)), launches.tuned_scratch),
    "small_tiles": (launches.small_tiles, launches.small_tiles_scratch),
    "few_rows": (few.few_rows, few.copies),
    "wide_tiles": (few.wide_tiles, few.copies),
    "shares": (few.shares, few.shares_scratch),
}
