"""Small weights over the size of the volume: where the direct sum wins, and by how much, beside transforms of tiles.

The rungs are the best of the ladders ``conv3d`` and ``fft_conv3d``; the edge of the weights is 3.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from climb.bench.ladder import Ladder
from climb.bench.problem import Rung
from kernels.other_algorithms import fft_conv3d

#: Edge of the weights, and of the volumes beside the headline's.
EDGE, VOLUME, OTHERS = 3, 256, (64, 128, 192, 384, 512)

problem = replace(
    fft_conv3d.problem,
    name="fft_crossover",
    title="3D convolution with small weights over the size of the volume",
    headline=({"n": VOLUME, "k": EDGE},),
    sweep=tuple({"n": n, "k": EDGE} for n in OTHERS),
    check=({"n": 0, "k": EDGE}, {"n": 4, "k": EDGE}, {"n": 36, "k": EDGE}),
)


def _taken(name: str) -> Rung:
    bound = fft_conv3d.ladder[name]
    source = bound.path.resolve().relative_to(Path(__file__).resolve().parents[2])
    # With weights this small the transforms need more operations than the definition, not fewer.
    return replace(bound.rung, source=f"../../{source}", swept=True, shortcut=name == "karatsuba")


ladder = Ladder(
    problem,
    Path(__file__).parent,
    rungs=tuple(_taken(name) for name in ("grouped", "karatsuba", "dependent")),
    peers=tuple(peer for peer in fft_conv3d.ladder.peers if peer.name == "cuFFT"),
)
