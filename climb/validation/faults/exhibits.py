"""Published mistakes as faults, for the emulator and compute-sanitizer to find like the planted ones.

The kernels are those of ``kernels/<chapter>/exhibits``, without those that only compute a wrong result or are slow.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from climb import paths
from climb.emulator import EmulatorError, Misaligned, OutOfBounds, Race, Uninitialised, WarpMismatch
from climb.validation.faults import Fault, Fresh, Pair

KERNELS = paths.KERNELS


def _exhibit(
    name: str,
    place: str,
    wrong: str,
    mended: str,
    error: type[EmulatorError],
    says: str,
    args: list[Any],
    **launch: Any,
) -> Fault:
    """Make the fault of an exhibit's kernel, in whose text `wrong` or `mended` replaces `place`.

    `place` is "" if the launch is at fault. Raises ValueError if the text lacks `place`.
    """
    chapter, _, short = name.partition("_")
    text = (KERNELS / chapter / "exhibits" / f"{short}.cu").read_text(encoding="utf-8").replace('extern "C" ', "")
    (kernel,) = re.findall(r"__global__ void (\w+)\(", text)
    if place not in text:
        raise ValueError(f"{name}.cu has no such place: {place}")
    body = (text.replace(place, "@@") if place else text).replace(f"{kernel}(", "k(")
    return Fault(f"exhibit {name}", body, wrong, mended, error, says, None, None, None, args=args, **launch)


def _random(*shape: int) -> np.ndarray:
    return np.random.default_rng(1).random(shape, dtype=np.float32)


def _zeros(*shape: int) -> np.ndarray:
    return np.zeros(shape, np.float32)


_WEIGHTS = np.arange(64 * 40, dtype=np.int32).reshape(64, 40) % 7
EXHIBITS = (
    _exhibit("conv1d_padding", "kRowLength];", "kRowLength];", "kRowLength * 33 / 32];", OutOfBounds,
             "right after the end of the 16384 bytes of shared memory", [_random(4096), _zeros(4096)], threads=128),
    _exhibit("conv1d_full_mask", "", "", "", WarpMismatch, "lane 16, which takes no part", [_random(64), _zeros(2)],
             grid=2, threads=Pair(2, 32)),
    _exhibit("conv1d_bias", "", "", "", Uninitialised, "an atomic reads byte 0 of fresh in global memory",
             [_random(3, 2), _random(3), Pair(Fresh(12), _zeros(3))], grid=3, threads=64),
    _exhibit("classifier_sum", "output[neuron] += sum;", "output[neuron] += sum;", "atomicAdd(&output[neuron], sum);",
             Race, "race in global memory: this write of byte 0 of argument 2",
             [np.arange(64, dtype=np.int32), _WEIGHTS, np.zeros(40, np.int32), 64, 40], grid=(2, 4)),
    _exhibit("conv2d_halo", "kTile / kBlock;", "kTile / kBlock;", "(kTile + kBlock - 1) / kBlock;", Uninitialised,
             "a load reads byte 128 of tile in shared memory", [_random(70, 50), _random(3, 3), _zeros(70, 50), 70, 50],
             grid=(2, 3), threads=(32, 32)),
    _exhibit("conv3d_float4", "#ifndef UNGUARDED", "#if 0", "#ifndef UNGUARDED", Misaligned,
             "16-byte load .* byte 28 of argument 1", [_random(20, 20), _random(7, 7), _zeros(20, 20), 20, 7],
             grid=(1, 20)),
)  # fmt: skip
