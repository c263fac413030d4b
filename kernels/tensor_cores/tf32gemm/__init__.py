"""Matrix product C = A B of float32 through TF32, row-major."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from climb.bench.ladder import Ladder
from climb.bench.problem import Rung, Size
from kernels.common.matrix_product import flops, product_problem
from kernels.tensor_cores import peers
from kernels.tensor_cores.tf32gemm.launches import PLANS, any_size, whole_pieces

problem = product_problem(
    "tf32gemm",
    "Matrix product, float32 through TF32",
    precision="TF32",
    # TF32 has 11 significant bits: a factor that is cut off loses less than 2^-10 of its value, two of them 2^-9.
    tolerance=lambda size: 2.0**-9,
    operations=lambda size: {"tensor": {"tf32": flops(size)}},
    sweep=tuple({"m": edge, "n": edge, "k": edge} for edge in (1024, 2048, 8192)),
    check=(
        {"m": 0, "n": 8, "k": 8},
        {"m": 5, "n": 3, "k": 0},
        {"m": 1, "n": 1, "k": 1},
        {"m": 1, "n": 4, "k": 4},
        {"m": 136, "n": 8, "k": 164},
        {"m": 33, "n": 31, "k": 17},
        {"m": 264, "n": 264, "k": 4},
    ),
)

_ALIGNED = {"A": 16, "B": 16, "C": 16}


def _warpgroups(name: str, idea: str, workspace: Callable[[Size], Mapping] = lambda size: {}) -> Rung:
    """A rung of wgmma and tensor maps."""
    return Rung(
        name,
        idea,
        PLANS[name],
        requires=whole_pieces,
        capability="9.0",
        arch="sm_90a",
        alignment=_ALIGNED,
        workspace=workspace,
        swept=True,
    )


ladder = Ladder(
    problem,
    Path(__file__).parent,
    rungs=(
        Rung(
            "pipelined",
            "mma.sync, a ring of asynchronous copies",
            PLANS["pipelined"],
            requires=any_size,
            capability="8.0",
            alignment=_ALIGNED,
            swept=True,
        ),
        _warpgroups(
            "transposed",
            "a pass that transposes B, then wgmma on tiles along k",
            lambda size: {"transpose": ((size["n"], size["k"]), "float32")},
        ),
        _warpgroups("registers", "the transposed product, B's fragments from registers"),
        _warpgroups("overlapped", "stores while the next tile is multiplied"),
    ),
    peers=peers.of_tf32(),
)
