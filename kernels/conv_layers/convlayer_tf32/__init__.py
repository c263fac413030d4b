"""The convolution layer on tensor cores in plain TF32: the rung ``halves`` of ``convlayer_tensor`` with floats.

Factors are rounded to 11 bits, as those of ``convlayer_f16`` are, and keep the exponents of float32. So they take twice
the bytes of halves, and twice the time of the tensor cores.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from climb import load_ladder
from climb.bench.ladder import Ladder
from climb.bench.problem import Launch, Size, ceil_div
from kernels.conv_layers.convlayer_tensor import launches as of_halves
from kernels.conv_layers.convlayer_tensor.launches import HALVES_THREADS, OUTS

OF_FLOATS, OF_ONE_PRODUCT = load_ladder("convlayer_tensor"), load_ladder("convlayer_f16")
#: The kernel's kStepMaps.
STEP_MAPS = 8


def _in_halves(size: Size) -> Size:
    """The layer of halves whose factors have as many bytes."""
    return {**size, "c_in": 2 * size["c_in"]}


def _launches(size: Size) -> tuple[Launch, ...]:
    """A launch that rounds all floats, then those of ``halves``."""
    steps, blocks = ceil_div(size["c_in"], STEP_MAPS), ceil_div(size["n"] ** 2, HALVES_THREADS)
    tap_blocks = ceil_div(ceil_div(size["c_out"], OUTS) * OUTS // 8 * steps, HALVES_THREADS // 32)
    extents = (np.int32(size[key]) for key in ("n", "c_in", "c_out"))
    first = Launch(
        f"convlayer_to_fours<{HALVES_THREADS}, {1 if size['c_in'] % 4 else 4}>",
        (tap_blocks + blocks * steps * size["batch"],),
        (HALVES_THREADS,),
        ("input", "weights", "pixels", "taps", *extents, np.int32(tap_blocks)),
    )
    _, *others = of_halves.halves(1)(_in_halves(size))
    return (first, *others)


problem = replace(
    OF_ONE_PRODUCT.problem,
    name="convlayer_tf32",
    precision="TF32",
    title="Convolution layer, TF32, on tensor cores",
    operations=lambda size: {"tensor": {"tf32": OF_FLOATS.problem.flops(size)}},
)

ladder = Ladder(
    problem,
    Path(__file__).parent,
    rungs=(
        replace(
            OF_FLOATS["halves"].rung,
            name="fours",
            idea="four floats of TF32 in place of eight halves",
            launches=_launches,
            workspace=lambda size: of_halves.halves_workspace(1)(_in_halves(size)),
        ),
    ),
    peers=OF_ONE_PRODUCT.peers,
)
