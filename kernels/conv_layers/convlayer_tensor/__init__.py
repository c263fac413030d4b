"""The convolution layer on tensor cores: float32 in and out, three products of halves for each of floats.

The layouts are those of the ladder ``convlayer_batch``. Factors are taken as they are, without a scale: magnitudes from
2^-14 to 65504 keep 22 bits, smaller ones an error of at most 2^-36, and larger ones overflow to NaN.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

from climb import load_ladder
from climb.bench.ladder import Ladder
from climb.bench.problem import Rung
from kernels.conv_layers.convlayer.layer import CONV1, CONV2, vgg
from kernels.conv_layers.convlayer_tensor import fused, in_block, launches, runs, shares

of_batches = load_ladder("convlayer_batch")
ONE, TWO, MANY = {**CONV1, "batch": 1}, {**CONV2, "batch": 1}, {**CONV1, "batch": 64}

problem = replace(
    of_batches.problem,
    name="convlayer_tensor",
    title="Convolution layer, float32, on tensor cores",
    # High parts with high, high with low and low with high.
    operations=lambda size: {"tensor": {"f16": 3 * of_batches.problem.flops(size)}},
    # Two halves have 22 bits of a float, and the product of the low ones is left out. Sums round as in float32.
    tolerance=lambda size: 3 * 2.0**-22 + of_batches.problem.tolerance(size),
    headline=(ONE, TWO, MANY),
    sweep=tuple({**size, "batch": 1} for size in vgg() if size not in (CONV1, CONV2)),
    check=(
        {"n": 0, "c_in": 4, "c_out": 3, "k": 3, "batch": 1},
        {"n": 5, "c_in": 0, "c_out": 2, "k": 3, "batch": 1},
        {"n": 5, "c_in": 4, "c_out": 2, "k": 3, "batch": 0},
        {"n": 1, "c_in": 1, "c_out": 1, "k": 3, "batch": 1},
        {"n": 3, "c_in": 4, "c_out": 2, "k": 1, "batch": 1},
        {"n": 20, "c_in": 20, "c_out": 65, "k": 3, "batch": 1},
        {"n": 9, "c_in": 7, "c_out": 3, "k": 3, "batch": 1},
        {"n": 6, "c_in": 4, "c_out": 3, "k": 3, "batch": 2},
        {"n": 4, "c_in": 4, "c_out": 3, "k": 3, "batch": 2},
    ),
)

#: A rung of warpgroups and the copy engine.
HopperRung = partial(Rung, capability="9.0", arch="sm_90a")

ladder = Ladder(
    problem,
    Path(__file__).parent,
    rungs=(
        Rung(
            "mma",
            "an implicit matrix product, three products of halves",
            launches.mma(2),
            requires=launches.requires,
            capability="8.0",
        ),
        HopperRung(
            "wgmma",
            "shifting a descriptor selects a tap: wgmma reads the same halves nine times",
            launches.wgmma(2),
            requires=launches.tensor_maps_fit,
            alignment={"input": 16, "weights": 16, "output": 8},
        ),
        HopperRung(
            "halves",
            "a first launch makes all halves, wgmma reads both factors from shared memory",
            launches.halves(2),
            requires=launches.extents_fit,
            alignment={"weights": 16, "output": 16},
            workspace=launches.halves_workspace(2),
        ),
        HopperRung(
            "fused",
            "blocks convert the pixels they multiply, only weights become halves beforehand",
            fused.launches(2),
            requires=fused.fits,
            alignment={"input": 16, "weights": 16, "output": 8},
            workspace=fused.workspace(2),
        ),
        HopperRung(
            "whole_steps",
            "a box of pixels holds a whole step",
            fused.launches(2, "whole_steps"),
            requires=fused.fits,
            alignment={"input": 16, "weights": 16, "output": 8},
            workspace=fused.workspace(2),
        ),
        HopperRung(
            "in_block",
            "blocks convert their weights too, and divide the input maps",
            in_block.launches(2),
            requires=launches.tensor_maps_fit,
            alignment={"input": 16, "weights": 16, "output": 8},
            workspace=in_block.workspace,
        ),
        HopperRung(
            "early_release",
            "a slot is released as soon as it has been read",
            fused.launches(2, "early_release"),
            requires=fused.fits,
            alignment={"input": 16, "weights": 16, "output": 8},
            workspace=fused.workspace(2),
        ),
        HopperRung(
            "runs",
            "weights stay floats until a warp multiplies, a tile is a run of any length",
            runs.launches(2),
            requires=runs.fits,
            alignment={"weights": 16},
            workspace=runs.workspace(2),
        ),
        HopperRung(
            "shares",
            "one launch: all blocks of a tile add up its parts, each a share of the outputs",
            shares.launches(2),
            requires=shares.fits,
            alignment={"input": 16, "weights": 16},
            workspace=shares.workspace,
        ),
        HopperRung(
            "overlapped",
            "a tile's sums are stored while the next tile's products run",
            fused.launches(2, "overlapped"),
            requires=fused.fits,
            alignment={"input": 16, "weights": 16, "output": 8},
            workspace=fused.workspace(2),
        ),
    ),
    peers=of_batches.peers,
)
