"""The convolution layer on tensor cores, factors rounded to float16: the rungs of ``convlayer_tensor``, one product.

Its errors are those of cuDNN in float16 or TF32, both of which round factors to 11 bits.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from climb import load_ladder
from climb.bench.ladder import Ladder
from climb.bench.problem import Rung
from kernels.conv_layers.convlayer_tensor import fused, in_block, launches, runs, shares

OF_FLOATS = load_ladder("convlayer_tensor")
FOLDER = "../convlayer_tensor"

problem = replace(
    OF_FLOATS.problem,
    name="convlayer_f16",
    precision="fp16",
    title="Convolution layer, float32 rounded to float16, on tensor cores",
    operations=lambda size: {"tensor": {"f16": OF_FLOATS.problem.flops(size)}},
    # Both factors are rounded to 11 bits, by at most 2^-12 of each; of many products the errors average out.
    tolerance=lambda size: 2.0**-10,
    headline=OF_FLOATS.problem.headline[:2],
)


def _rung(name: str, number: int, change: dict) -> Rung:
    return replace(OF_FLOATS[name].rung, source=f"{FOLDER}/{number:02d}_{name}.cu", **change)


ladder = Ladder(
    problem,
    Path(__file__).parent,
    rungs=(
        _rung("mma", 1, {"launches": launches.mma(1)}),
        _rung("wgmma", 2, {"launches": launches.wgmma(1)}),
        _rung("halves", 3, {"launches": launches.halves(1), "workspace": launches.halves_workspace(1)}),
        _rung("fused", 4, {"launches": fused.launches(1), "workspace": fused.workspace(1)}),
        _rung("whole_steps", 5, {"launches": fused.launches(1, "whole_steps"), "workspace": fused.workspace(1)}),
        _rung("in_block", 6, {"launches": in_block.launches(1)}),
        _rung("early_release", 7, {"launches": fused.launches(1, "early_release"), "workspace": fused.workspace(1)}),
        _rung("runs", 8, {"launches": runs.launches(1), "workspace": runs.workspace(1)}),
        _rung("shares", 9, {"launches": shares.launches(1)}),
        _rung("overlapped", 10, {"launches": fused.launches(1, "overlapped"), "workspace": fused.workspace(1)}),
    ),
    peers=tuple(peer for peer in OF_FLOATS.peers if "fp32" not in peer.name),
)
