"""The classifier on tensor cores in plain TF32: a rung of ``classifier_tensor`` with one product of rounded factors."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from climb import load_ladder
from climb.bench.ladder import Ladder
from kernels.classifier.classifier_tensor import launches

OF_FLOATS = load_ladder("classifier_tensor")

problem = replace(
    OF_FLOATS.problem,
    name="classifier_tf32",
    precision="TF32",
    title="Fully connected layer, TF32, batch of 32, on tensor cores",
    operations=lambda size: {"tensor": {"tf32": OF_FLOATS.problem.flops(size)}},
    # Both factors are cut at 11 bits, by less than 2^-10 of each, always towards zero.
    tolerance=lambda size: 2.0**-9 + OF_FLOATS.problem.tolerance(size),
    sweep=(),
)

ladder = Ladder(
    problem,
    Path(__file__).parent,
    rungs=(
        replace(
            OF_FLOATS["mma"].rung,
            idea="one TF32 product",
            launches=lambda size: launches.mma(size, parts=1),
            source="../classifier_tensor/01_mma.cu",
        ),
    ),
    peers=tuple(peer for peer in OF_FLOATS.peers if peer.name.endswith(" TF32")),
)
