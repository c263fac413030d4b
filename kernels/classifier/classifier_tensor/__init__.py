"""The classifier on tensor cores, for batches: float32 weights and input, three products for each of float32.

The layouts are those of the ladder ``classifier``, with samples enough for a tensor core. All three products are TF32,
except those with a low part: ``bf16_corrections``, ``tickets`` and ``shares`` take bfloat16 for both, ``clusters`` for
one. Any finite float32 number is taken: TF32 has its exponents. An infinite weight or input gives NaN, because an
infinite number has no parts; so does one from 2^128 - 2^119 on where parts are of bfloat16, which rounds it to
infinity. Blocks of ``tickets`` and ``shares`` take work as they find time, so their results differ by rounding from
launch to launch.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

from climb.bench.ladder import Ladder
from climb.bench.problem import Rung, Size
from climb.bench.work import Work
from kernels.classifier.classifier import ladder as on_cores
from kernels.classifier.classifier.problem import CLASS1, CLASS2
from kernels.classifier.classifier.problem import problem as any_batch
from kernels.classifier.classifier_tensor import launches

BATCH = {**CLASS1, "batch": 32}

problem = replace(
    any_batch,
    name="classifier_tensor",
    title="Fully connected layer, float32, batch of 32, on tensor cores",
    # A low part is below 2^-10 of its float, and tensor cores cut it at 2^-10 of that; the product of low parts is left
    # out. Sums round as those of float32 do.
    tolerance=lambda size: 3 * 2.0**-20 + any_batch.tolerance(size),
    # High parts with high, high with low and low with high.
    operations=lambda size: {"tensor": {"tf32": 3 * any_batch.flops(size)}},
    headline=(BATCH,),
    sweep=({**CLASS1, "batch": 8}, {**CLASS1, "batch": 64}, {**CLASS2, "batch": 32}),
    check=(
        {"inputs": 0, "outputs": 3, "batch": 1},
        {"inputs": 5, "outputs": 0, "batch": 2},
        {"inputs": 5, "outputs": 2, "batch": 0},
        {"inputs": 1, "outputs": 1, "batch": 1},
        {"inputs": 4, "outputs": 5, "batch": 1},
        {"inputs": 1032, "outputs": 5, "batch": 2},
        {"inputs": 68, "outputs": 130, "batch": 33},
        {"inputs": 37, "outputs": 65, "batch": 9},
        {"inputs": 132, "outputs": 65, "batch": 3},
    ),
)


def _corrected(size: Size) -> Work:
    """The least work where two of the three products are of bfloat16."""
    flops = int(any_batch.flops(size))
    return replace(problem.work(size), tensor={"tf32": flops, "bf16": 2 * flops})


#: A rung of warpgroups and the copy engine.
HopperRung = partial(Rung, capability="9.0", arch="sm_90a")

ladder = Ladder(
    problem,
    Path(__file__).parent,
    rungs=(
        Rung(
            "mma",
            "three TF32 products of split floats",
            launches.mma,
            alignment={"weights": 16, "input": 16},
            requires=launches.extents_fit,
            workspace=launches.sums(launches.mma_plan),
            capability="8.0",
        ),
        HopperRung(
            "wgmma",
            "a ring of the copy engine, four warpgroups",
            launches.wgmma,
            alignment={"weights": 16, "input": 16},
            requires=launches.tensor_maps_fit,
            workspace=launches.sums(launches.wgmma_plan),
        ),
        HopperRung(
            "slabs",
            "longer runs of DRAM",
            launches.slabs,
            alignment={"weights": 16, "input": 16},
            requires=launches.tensor_maps_fit,
            workspace=launches.sums(launches.slabs_plan),
        ),
        HopperRung(
            "bf16_corrections",
            "products with low parts in bfloat16",
            launches.bf16_corrections,
            alignment={"weights": 16, "input": 16},
            requires=launches.tensor_maps_fit,
            workspace=launches.sums(launches.slabs_plan),
            work=_corrected,
        ),
        HopperRung(
            "clusters",
            "a cluster adds up its pieces, in one launch",
            launches.clusters,
            alignment={"weights": 16, "input": 16, "output": 16},
            requires=launches.tensor_maps_fit,
            work=_corrected,
        ),
        HopperRung(
            "tickets",
            "blocks draw tickets, for work and for the end",
            launches.tickets,
            alignment={"weights": 16, "input": 16},
            requires=launches.tensor_maps_fit,
            workspace=launches.tickets_sums,
            work=_corrected,
        ),
        HopperRung(
            "shares",
            "all blocks of a tile add up its pieces",
            launches.shares,
            alignment={"weights": 16, "input": 16},
            requires=launches.tensor_maps_fit,
            workspace=launches.shares_sums,
            work=_corrected,
        ),
    ),
    peers=tuple(peer for peer in on_cores.peers if not peer.name.startswith("cuBLASLt fp32")),
)
