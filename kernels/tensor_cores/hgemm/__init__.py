"""Matrix product C = A B of halves with sums in float32, row-major: tensor cores, from one instruction to cuBLAS."""

from __future__ import annotations

from pathlib import Path

from climb.bench.ladder import Ladder
from climb.bench.problem import Rung
from kernels.common.matrix_product import flops, product_problem
from kernels.tensor_cores import peers
from kernels.tensor_cores.hgemm.launches import PLANS, any_size, whole_pieces

problem = product_problem(
    "hgemm",
    "Matrix product, float16 with sums in float32",
    factors="float16",
    precision="fp16",
    # Products of halves are exact in float32. An instruction adds 16 of them to a sum and truncates, by less than 2^-23
    # of it; truncation has one direction, so errors add up in proportion to the number of instructions.
    tolerance=lambda size: 2.0**-23 * (4 + size["k"] / 16),
    operations=lambda size: {"tensor": {"f16": flops(size)}},
    sweep=(
        *({"m": edge, "n": edge, "k": edge} for edge in (1024, 2048, 8192)),
        {"m": 512, "n": 11008, "k": 4096},
        {"m": 16384, "n": 768, "k": 768},
    ),
    check=(
        {"m": 0, "n": 8, "k": 8},
        {"m": 5, "n": 3, "k": 0},
        {"m": 1, "n": 1, "k": 1},
        {"m": 1, "n": 8, "k": 8},
        {"m": 136, "n": 72, "k": 456},
        {"m": 33, "n": 31, "k": 17},
        {"m": 264, "n": 264, "k": 8},
    ),
)

#: Rungs that are recorded at the sizes of the sweep too.
SWEPT = (
    "pipelined",
    "two_consumers",
    "multicast",
    "persistent",
    "fast_cu",
    "overlapped",
    "small_tiles",
    "balanced",
    "split_k",
    "two_widths",
    "pingpong",
)


def _warps(name: str, idea: str) -> Rung:
    """A rung of mma.sync, which takes any size."""
    return Rung(name, idea, PLANS[name], requires=any_size, capability="8.0", alignment=_ALIGNED, swept=name in SWEPT)


def _warpgroups(name: str, idea: str) -> Rung:
    """A rung of wgmma and tensor maps."""
    return Rung(
        name,
        idea,
        PLANS[name],
        requires=whole_pieces,
        capability="9.0",
        arch="sm_90a",
        alignment=_ALIGNED,
        swept=name in SWEPT,
    )


_ALIGNED = {"A": 16, "B": 16, "C": 16}

ladder = Ladder(
    problem,
    Path(__file__).parent,
    rungs=(
        _warps("fragments", "mma.sync on fragments from global memory"),
        _warps("ldmatrix", "tiles in shared memory, fragments by ldmatrix"),
        _warps("pipelined", "a ring of asynchronous copies, 64 x 64 sums a warp"),
        _warpgroups("wgmma", "the copy engine, and products of a warpgroup"),
        _warpgroups("specialised", "a producer beside a consumer, barriers between"),
        _warpgroups("two_consumers", "blocks of 128 x 256, registers handed over"),
        _warpgroups("multicast", "clusters of two blocks share copies of B"),
        _warpgroups("persistent", "blocks that take tile after tile"),
        _warpgroups("fast_cu", "fast.cu rebuilt: Hilbert's curve, stores by the copy engine"),
        _warpgroups("overlapped", "half of the stores while the next tile is multiplied"),
        _warpgroups("small_tiles", "smaller tiles for products that would leave SMs idle"),
        _warpgroups("balanced", "no more blocks than the rounds of tiles need"),
        _warpgroups("split_k", "pairs of blocks split k, and exchange halves of their sums"),
        _warpgroups("two_widths", "tiles of 128 x 192 where these fill the rounds better"),
        _warpgroups("pingpong", "consumers take turns: one multiplies, the other stores"),
    ),
    peers=peers.of_halves(),
)
