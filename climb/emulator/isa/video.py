"""Several small integers in a word: two of 16 bits, or four of 8. PTX ISA, "Half Precision..." and "SIMD Video
Instructions"; without byte selections and masks, which the compiler does not write."""

from __future__ import annotations

import numpy as np

from .. import ptx
from . import helper, simple, special


def split(word: np.ndarray, bits: int, signed: bool) -> list[np.ndarray]:
    """The parts of uint32 words as int64, the lowest first."""
    from .arithmetic import part

    return [part(word, start, bits, signed) for start in range(0, 32, bits)]


def joined(parts: list[np.ndarray], bits: int) -> np.ndarray:
    """The low bits of each part, as uint32 words."""
    out = np.zeros((1, 1), np.int64)
    for number, one in enumerate(parts):
        out = out | (one & (1 << bits) - 1) << bits * number
    return out.astype(np.uint32)


OPERATIONS = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "min": np.minimum,
    "max": np.maximum,
    "absdiff": lambda a, b: np.abs(a - b),
    "avrg": lambda a, b: (a + b + (a + b >= 0)) >> 1,
}


@helper
def pairwise(name: str, a: np.ndarray, b: np.ndarray, signed: bool, relu: bool = False) -> np.ndarray:
    """An operation on two times 16 bits; `relu` clamps to zero from below."""
    found = [OPERATIONS[name](*both) for both in zip(split(a, 16, signed), split(b, 16, signed), strict=True)]
    return joined([np.maximum(one, 0) for one in found] if relu else found, 16)


for _kind in ("u16x2", "s16x2"):
    for _name in ("add", "min", "max"):
        _call = f"pairwise('{_name}', {{0}}, {{1}}, {_kind[0] == 's'})"
        simple(f"{_name}.{_kind}", "u32", ("u32", "u32"), _call)
for _name in ("min", "max"):
    simple(f"{_name}.s16x2.relu", "u32", ("u32", "u32"), f"pairwise('{_name}', {{0}}, {{1}}, True, True)")
    simple(f"{_name}.s32.relu", "s32", ("s32", "s32"), f"np.maximum(np.{_name}imum({{0}}, {{1}}), int32(0))")


@helper
def video(
    name: str,
    bits: int,
    signed: tuple[bool, bool, bool],
    modifiers: tuple[str, ...],
    a: np.ndarray,
    b: np.ndarray,
    c: np.ndarray,
) -> np.ndarray:
    """v<name>2 or v<name>4: part by part; with "add" the sum of the parts, plus c. `signed`: of d, a and b."""
    found = [OPERATIONS[name](*both) for both in zip(split(a, bits, signed[1]), split(b, bits, signed[2]), strict=True)]
    if "sat" in modifiers:
        low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed[0] else (0, (1 << bits) - 1)
        found = [np.clip(one, low, high) for one in found]
    if "add" not in modifiers:
        return joined(found, bits)
    parts = split(joined(found, bits), bits, signed[0])
    return (sum(parts) + c.astype(np.int64)).astype(np.uint32)


@special(
    "v{name}{n}.{d}32.{a}32.{b}32{sat}{add}",
    choices={
        "name": ("add", "sub", "min", "max", "absdiff", "avrg"), "n": ("2", "4"), "d": ("u", "s"), "a": ("u", "s"),
        "b": ("u", "s"), "sat": ("", ".sat"), "add": ("", ".add"),
    },
    results=("u32",),
    operands=("u32", "u32", "u32"),
)  # fmt: skip
def _video(emitter, instruction: ptx.Instruction) -> None:
    head, d, a, b, *modifiers = instruction.opcode.split(".")
    signed = tuple(kind[0] == "s" for kind in (d, a, b))
    sources = ", ".join(emitter.sources(instruction))
    code = f"video('{head[1:-1]}', {32 // int(head[-1])}, {signed!r}, {tuple(modifiers)!r}, {sources})"
    emitter.write(instruction.operands[0], "u32", code)
