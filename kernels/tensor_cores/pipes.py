"""Ceilings of the tensor cores, by the type of the factors: a ladder for each, whose kernel only multiplies."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from climb.bench.ladder import Ladder
from climb.bench.problem import Argument, Launch, Problem, Rung, Size, Tensor
from climb.bench.work import ceiling_of

#: Sums of a block, bytes of a row of A or B, steps after which sums start anew: as in ``pipe.cuh``.
ROWS, COLS, BYTES, CHAIN = 128, 256, 128, 64
THREADS, ALIGNMENT = 256, 1024
SMS = 132


@dataclass(frozen=True)
class Kind:
    """A type of factors.

    ``stored`` is the type of the arrays that hold them, ``tensor`` that of a tensor map. ``make`` turns normal random
    numbers into what is stored, and ``read`` that into float64. ``lost`` is what an instruction loses of a sum at most,
    relative to it, and ``sums`` the type of the sums.
    """

    name: str
    title: str
    stored: str
    tensor: str
    make: Callable[[np.ndarray], np.ndarray]
    read: Callable[[np.ndarray], np.ndarray]
    lost: float
    sums: str = "float32"

    @property
    def depth(self) -> int:
        """Elements in a row of a tile."""
        return BYTES // np.dtype(self.stored).itemsize


def _wide(array: np.ndarray) -> np.ndarray:
    return array.astype(np.float64)


def _bfloat16(values: np.ndarray) -> np.ndarray:
    """The upper halves of float32, rounded to nearest."""
    return ((values.astype(np.float32).view(np.uint32) + np.uint32(0x8000)) >> np.uint32(16)).astype(np.uint16)


def _from_bfloat16(bits: np.ndarray) -> np.ndarray:
    return (bits.astype(np.uint32) << np.uint32(16)).view(np.float32).astype(np.float64)


def _tf32(values: np.ndarray) -> np.ndarray:
    """float32 with 13 bits of zeros at the end, which the tensor cores would ignore."""
    return (values.astype(np.float32).view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32)


#: The values of E4M3 that are not negative, by their bits: 4 bits of exponent, 3 of mantissa, no infinity.
_E4M3 = np.array(
    [(bits % 8 / 8 + (bits >= 8)) * 2.0 ** (max(bits // 8, 1) - 7) for bits in range(127)],
)


def _e4m3(values: np.ndarray) -> np.ndarray:
    """The nearest E4M3 of each value."""
    middles = (_E4M3[1:] + _E4M3[:-1]) / 2
    return (np.searchsorted(middles, np.abs(values)) | np.where(values < 0, 0x80, 0)).astype(np.uint8)


def _from_e4m3(bits: np.ndarray) -> np.ndarray:
    return np.where(bits & 0x80, -1.0, 1.0) * _E4M3[bits & 0x7F]


def _int8(values: np.ndarray) -> np.ndarray:
    return np.clip(np.rint(40 * values), -128, 127).astype(np.int8)


KINDS = (
    Kind("f16", "float16", "float16", "float16", lambda x: x.astype(np.float16), _wide, 2.0**-23),
    Kind("bf16", "bfloat16", "uint16", "bfloat16", _bfloat16, _from_bfloat16, 2.0**-23),
    Kind("tf32", "TF32", "float32", "float32", _tf32, _wide, 2.0**-23),
    # Sums of 8-bit floats keep 13 bits of a mantissa, and each instruction cuts off twice: the products as well.
    Kind("fp8", "8-bit floats, E4M3", "uint8", "uint8", _e4m3, _from_e4m3, 2.0**-12),
    Kind("int8", "8-bit integers", "int8", "uint8", _int8, _wide, 0.0, "int32"),
)


def _flops(kind: Kind, size: Size) -> int:
    return 2 * ROWS * COLS * kind.depth * size["tiles"] * size["steps"]


def _problem(kind: Kind) -> Problem:
    def reference(inputs: dict[str, np.ndarray], size: Size) -> dict[str, np.ndarray]:
        product = (size["steps"] - 1) % CHAIN + 1
        result = product * (kind.read(inputs["A"]) @ kind.read(inputs["B"]).T)
        return {"C": result if kind.sums == "float32" else np.rint(result).astype(np.int64)}

    def inputs(size: Size, rng: np.random.Generator) -> dict[str, np.ndarray]:
        shapes = {"A": (ROWS * size["tiles"], kind.depth), "B": (COLS, kind.depth)}
        return {name: kind.make(rng.standard_normal(shape)) for name, shape in shapes.items()}

    return Problem(
        name=f"tensor_{kind.name}",
        title=f"Tensor cores, {kind.title}: the same products again and again",
        size_keys=("tiles", "steps"),
        arguments=(
            Argument("A", kind.stored, (lambda size: ROWS * size["tiles"], lambda size: kind.depth)),
            Argument("B", kind.stored, (lambda size: COLS, lambda size: kind.depth)),
            Argument("C", kind.sums, (lambda size: ROWS * size["tiles"], lambda size: COLS), role="output"),
        ),
        make_inputs=inputs,
        reference=reference,
        # Four instructions a step, each of which loses less than this of its sum.
        tolerance=lambda size: kind.lost * (4 + 4 * min(size["steps"], CHAIN)),
        flops=lambda size: _flops(kind, size),
        operations=lambda size: {"tensor": {kind.name: _flops(kind, size)}},
        bytes=lambda size: BYTES * (ROWS * size["tiles"] + COLS) + 4 * ROWS * COLS * size["tiles"],
        # One block on each SM, for about a millisecond, in which clocks settle.
        headline=({"tiles": SMS, "steps": 2048},),
        check=({"tiles": 2, "steps": 1}, {"tiles": 1, "steps": 2}),
        parameters=("tiles", "steps"),
    )


def _launch(kind: Kind, size: Size) -> tuple[Launch, ...]:
    maps = (
        Tensor("A", (ROWS * size["tiles"], kind.depth), (ROWS, kind.depth), kind.tensor, swizzle=128),
        Tensor("B", (COLS, kind.depth), (COLS, kind.depth), kind.tensor, swizzle=128),
    )
    shared = (ROWS + COLS) * BYTES + ALIGNMENT  # the barrier has the last piece
    return (Launch(f"tensor_{kind.name}", (size["tiles"],), (THREADS,), (*maps, "C", np.int32(size["steps"])), shared),)


def pipe(name: str) -> Ladder:
    """The ladder that measures the ceiling of a type of factors, ``"f16"`` say."""
    kind = next(each for each in KINDS if each.name == name)
    rung = Rung(
        "wgmma",
        "64 x 256 products of a warpgroup and nothing else",
        lambda size: _launch(kind, size),
        alignment={"A": 16, "B": 16},
        capability="9.0",
        arch="sm_90a",
    )
    folder = Path(__file__).parent / f"tensor_{name}"
    return Ladder(_problem(kind), folder, rungs=(rung,), ceiling=ceiling_of(f"tensor_{name}"))
