"""The operations of machine instructions, in NumPy: an allow-list.

NVIDIA lists the opcodes (CUDA Binary Utilities) without saying what they compute. Their meanings here were derived from
the PTX that they come from, and tests compare the results of kernels bit by bit with the PTX's. An opcode that is in no
table is refused by name.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np

from climb.emulator.isa.floating import flush as flush_denormal
from climb.emulator.isa.rounding import fma32
from climb.validation.sass_interpreter.operands import Operand, UnsupportedSass

Values = np.ndarray
LOW = np.uint64(0xFFFFFFFF)
HALF = np.uint64(32)


class Lanes(Protocol):
    """The lanes that execute an instruction (for uniform ones, the warps), with access to their registers."""

    def words(self, operand: Operand, part: int = 0) -> Values:
        """Return a register as uint32; `part` 1 is the register after the one named."""

    def holds(self, operand: Operand) -> Values:
        """Return a predicate as bool."""

    def set_words(self, operand: Operand, values: Values, part: int = 0) -> None: ...

    def set_holds(self, operand: Operand, values: Values) -> None: ...


Operation = Callable[[Lanes, tuple[str, ...], tuple[Operand, ...]], None]
#: Operations by opcode without modifiers; the modifiers are an argument of the operation.
OPERATIONS: dict[str, Operation] = {}


def operation(*names: str) -> Callable[[Operation], Operation]:
    def register(function: Operation) -> Operation:
        OPERATIONS.update(dict.fromkeys(names, function))
        return function

    return register


def only(modifiers: tuple[str, ...], *known: str) -> None:
    """Raise UnsupportedSass for a modifier that is not in `known`, since it changes the result."""
    for one in modifiers:
        if one not in known:
            raise UnsupportedSass(f"the modifier .{one}")


def integer(lanes: Lanes, operand: Operand, part: int = 0) -> Values:
    """Return an integer operand as uint64 in [0, 2^32], so that sums carry as in an adder.

    ``~`` gives the complement, a minus gives 2^32 less the number.
    """
    words = lanes.words(operand, part).astype(np.uint64)
    if operand.kind == "number":
        return words
    if operand.inverted:
        return words ^ LOW
    return (words ^ LOW) + np.uint64(1) if operand.negative else words


def number(lanes: Lanes, operand: Operand, flush: bool) -> Values:
    """Return a float32 operand with its sign; denormals become zero with `flush`."""
    if operand.kind == "number":
        text = operand.value
        value = np.float32(text.replace("QNAN", "nan").replace("INF", "inf")) if "0x" not in text else None
        if value is None:
            return np.array([int(text, 16)], np.uint32).view(np.float32)
        return np.array([value], np.float32)
    bits = lanes.words(operand)
    if operand.absolute:
        bits = bits & np.uint32(0x7FFFFFFF)
    if operand.negative:
        bits = bits ^ np.uint32(0x80000000)
    return flush_denormal(bits.view(np.float32)) if flush else bits.view(np.float32)


def wide(lanes: Lanes, operand: Operand) -> Values:
    """Return a pair of registers as uint64."""
    if operand.kind == "number":
        return np.array([int(operand.value, 0) & (2**64 - 1)], np.uint64)
    return lanes.words(operand).astype(np.uint64) | lanes.words(operand, 1).astype(np.uint64) << HALF


def set_wide(lanes: Lanes, operand: Operand, values: Values) -> None:
    lanes.set_words(operand, (values & LOW).astype(np.uint32))
    lanes.set_words(operand, (values >> HALF).astype(np.uint32), 1)


def low(values: Values) -> Values:
    return (values & LOW).astype(np.uint32)


def is_predicate(operand: Operand) -> bool:
    return operand.kind in ("P", "UP")


# Floating point -------------------------------------------------------------------------------------------------------


def _arithmetic(name: str) -> Operation:
    def run(lanes: Lanes, modifiers: tuple[str, ...], operands: tuple[Operand, ...]) -> None:
        only(modifiers, "FTZ")
        flush = "FTZ" in modifiers
        sources = [number(lanes, one, flush) for one in operands[1:]]
        with np.errstate(all="ignore"):
            if name == "FADD":
                out = sources[0] + sources[1]
            elif name == "FMUL":
                out = sources[0] * sources[1]
            else:
                out = fma32(*np.broadcast_arrays(*sources), flush)
        out = np.asarray(out, np.float32)
        lanes.set_words(operands[0], (flush_denormal(out) if flush else out).view(np.uint32))

    return run


OPERATIONS.update({name: _arithmetic(name) for name in ("FADD", "FMUL", "FFMA")})


@operation("FMNMX")
def _minimum(lanes: Lanes, modifiers: tuple[str, ...], operands: tuple[Operand, ...]) -> None:
    only(modifiers, "FTZ")
    a, b = (number(lanes, one, "FTZ" in modifiers) for one in operands[1:3])
    out = np.where(lanes.holds(operands[3]), np.fmin(a, b), np.fmax(a, b)).astype(np.float32)
    lanes.set_words(operands[0], out.view(np.uint32))


@operation("HFMA2")
def _half_constant(lanes: Lanes, modifiers: tuple[str, ...], operands: tuple[Operand, ...]) -> None:
    """Load a constant: supported only as -0 * 0 + two constants."""
    only(modifiers, "MMA")
    if not all(one.kind == "R" and one.index == -1 for one in operands[1:3]):
        raise UnsupportedSass("arithmetic of halves")
    high, last = (np.float16(one.value).view(np.uint16) for one in operands[3:5])
    lanes.set_words(operands[0], np.array([int(high) << 16 | int(last)], np.uint32))


_ORDERED = {
    "LT": np.less, "LE": np.less_equal, "GT": np.greater, "GE": np.greater_equal, "EQ": np.equal, "NE": np.not_equal,
}  # fmt: skip


def _combined(lanes: Lanes, how: str, result: Values, operands: tuple[Operand, ...], other: Operand) -> None:
    """Set two predicates: the comparison and its opposite, each combined with a third predicate."""
    combine = {"AND": np.logical_and, "OR": np.logical_or, "XOR": np.logical_xor}[how]
    extra = lanes.holds(other)
    lanes.set_holds(operands[0], combine(result, extra))
    lanes.set_holds(operands[1], combine(~result, extra))


@operation("FSETP")
def _compare_floats(lanes: Lanes, modifiers: tuple[str, ...], operands: tuple[Operand, ...]) -> None:
    comparison, *rest = modifiers
    only(tuple(rest), "FTZ", "AND", "OR", "XOR")
    a, b = (number(lanes, one, "FTZ" in rest) for one in operands[2:4])
    unordered = np.isnan(a) | np.isnan(b)
    with np.errstate(invalid="ignore"):
        if comparison in ("NUM", "NAN"):
            result = unordered if comparison == "NAN" else ~unordered
        elif comparison.endswith("U") and comparison[:-1] in _ORDERED:
            result = _ORDERED[comparison[:-1]](a, b) | unordered
        elif comparison in _ORDERED:
            result = _ORDERED[comparison](a, b) & ~unordered
        else:
            raise UnsupportedSass(f"the comparison {comparison}")
    _combined(lanes, rest[-1], result, operands, operands[4])


# Integers -------------------------------------------------------------------------------------------------------------


@operation("ISETP")
def _compare_integers(lanes: Lanes, modifiers: tuple[str, ...], operands: tuple[Operand, ...]) -> None:
    """Compare integers. With .EX these are the high words of two numbers; the last predicate compared the low words."""
    comparison, *rest = modifiers
    only(tuple(rest), "U32", "AND", "OR", "XOR", "EX")
    if comparison not in _ORDERED:
        raise UnsupportedSass(f"the comparison {comparison}")
    a, b = (low(integer(lanes, one)) for one in operands[2:4])
    if "U32" not in rest:
        a, b = a.view(np.int32), b.view(np.int32)
    if "EX" not in rest:
        result = _ORDERED[comparison](a, b)
    else:
        lower = lanes.holds(operands[5])
        if comparison == "NE":
            result = (a != b) | lower
        elif comparison == "EQ":
            result = (a == b) & lower
        else:
            result = {"L": np.less, "G": np.greater}[comparison[0]](a, b) | (a == b) & lower
    _combined(lanes, next(one for one in rest if one in ("AND", "OR", "XOR")), result, operands, operands[4])


def _parts(operands: tuple[Operand, ...]) -> tuple[tuple[Operand, ...], tuple[Operand, ...], tuple[Operand, ...]]:
    """Split the operands after the result of an addition into (carries out, sources, carries in)."""
    first = 1
    while is_predicate(operands[first]):
        first += 1
    last = len(operands)
    while is_predicate(operands[last - 1]):
        last -= 1
    return operands[1:first], operands[first:last], operands[last:]


@operation("IADD3", "VIADD")
def _add(lanes: Lanes, modifiers: tuple[str, ...], operands: tuple[Operand, ...]) -> None:
    only(modifiers, "X")
    out, sources, into = _parts(operands)
    total = sum((integer(lanes, one) for one in sources), np.zeros(1, np.uint64))
    if "X" in modifiers:
        total = total + sum((lanes.holds(one).astype(np.uint64) for one in into), np.zeros(1, np.uint64))
    lanes.set_words(operands[0], low(total))
    for least, one in enumerate(out, 1):
        lanes.set_holds(one, (total >> HALF) >= np.uint64(least))


@operation("IMAD")
def _multiply(lanes: Lanes, modifiers: tuple[str, ...], operands: tuple[Operand, ...]) -> None:
    only(modifiers, "WIDE", "U32", "MOV", "IADD", "SHL", "X")
    out, (a, b, c), into = _parts(operands)
    if "WIDE" in modifiers:
        if out or into:
            raise UnsupportedSass("carries of a wide product")
        x, y = (low(integer(lanes, one)) for one in (a, b))
        if "U32" in modifiers:
            product = x.astype(np.uint64) * y.astype(np.uint64)
        else:
            product = (x.view(np.int32).astype(np.int64) * y.view(np.int32).astype(np.int64)).view(np.uint64)
        set_wide(lanes, operands[0], product + wide(lanes, c))
        return
    if out:
        raise UnsupportedSass("carries of a product")
    total = integer(lanes, a) * integer(lanes, b) + integer(lanes, c)
    if "X" in modifiers:
        total = total + sum(lanes.holds(one).astype(np.uint64) for one in into)
    lanes.set_words(operands[0], low(total))


@operation("LEA")
def _scaled(lanes: Lanes, modifiers: tuple[str, ...], operands: tuple[Operand, ...]) -> None:
    """Shift a number and add another. .HI gives the high word of the sum; .X adds the carry of the low word."""
    only(modifiers, "HI", "X", "SX32")
    out, sources, into = _parts(operands)
    amount = np.uint64(int(sources[-1].value, 0))
    if "HI" in modifiers:
        pair = integer(lanes, sources[0]) & LOW
        if "SX32" in modifiers:
            pair = pair.astype(np.uint32).view(np.int32).astype(np.int64).view(np.uint64)
        else:
            pair = pair | (integer(lanes, sources[2]) & LOW) << HALF
        total = (pair << amount >> HALF) + integer(lanes, sources[1])
    else:
        total = (integer(lanes, sources[0]) << amount & LOW) + integer(lanes, sources[1])
    if "X" in modifiers:
        total = total + sum(lanes.holds(one).astype(np.uint64) for one in into)
    lanes.set_words(operands[0], low(total))
    for one in out:
        lanes.set_holds(one, total >> HALF != 0)


@operation("SHF")
def _shift(lanes: Lanes, modifiers: tuple[str, ...], operands: tuple[Operand, ...]) -> None:
    way, kind, *rest = modifiers
    only(tuple(rest), "HI")
    first, amount, last = operands[1:4]
    by = np.minimum(integer(lanes, amount) & LOW, np.uint64(63))
    pair = (integer(lanes, first) & LOW) | (integer(lanes, last) & LOW) << HALF
    match way, kind, bool(rest):
        case "L", "U32", False:
            out = (pair & LOW) << np.minimum(by, HALF)
        case "L", "U64", True:
            out = pair << by >> HALF
        case "R", "U32", True:
            out = pair >> HALF >> np.minimum(by, HALF)
        case "R", "S32", True:
            high = low(pair >> HALF).view(np.int32)
            out = (high >> np.minimum(by, np.uint64(31)).astype(np.int32)).view(np.uint32).astype(np.uint64)
        case "R", "U64", False:
            out = pair >> by
        case _:
            raise UnsupportedSass("a shift of two words")
    lanes.set_words(operands[0], low(out))


@operation("LOP3")
def _logic(lanes: Lanes, modifiers: tuple[str, ...], operands: tuple[Operand, ...]) -> None:
    """Combine three operands bit by bit: the table gives the result for each of the eight cases."""
    only(modifiers, "LUT")
    out, rest = (operands[0], operands[1:]) if is_predicate(operands[0]) else (None, operands)
    table = int(rest[4].value, 0)
    words = [low(integer(lanes, one)) for one in rest[1:4]]
    total = np.zeros(1, np.uint32)
    for case in range(8):
        if table >> case & 1:
            bits = [word if case >> place & 1 else ~word for word, place in zip(words, (2, 1, 0), strict=True)]
            total = total | bits[0] & bits[1] & bits[2]
    lanes.set_words(rest[0], total)
    if out is not None:
        lanes.set_holds(out, total != 0)


@operation("PLOP3")
def _predicates(lanes: Lanes, modifiers: tuple[str, ...], operands: tuple[Operand, ...]) -> None:
    only(modifiers, "LUT")
    tables = [int(one.value, 0) for one in operands[5:7]]
    a, b, c = (lanes.holds(one) for one in operands[2:5])
    which = 4 * a.astype(np.int64) + 2 * b.astype(np.int64) + c.astype(np.int64)
    for target, table in zip(operands[:2], tables, strict=True):
        lanes.set_holds(target, (table >> which & 1).astype(bool))


@operation("SEL", "FSEL")
def _select(lanes: Lanes, modifiers: tuple[str, ...], operands: tuple[Operand, ...]) -> None:
    only(modifiers)
    a, b = (low(integer(lanes, one)) for one in operands[1:3])
    lanes.set_words(operands[0], np.where(lanes.holds(operands[3]), a, b).astype(np.uint32))


@operation("MOV")
def _move(lanes: Lanes, modifiers: tuple[str, ...], operands: tuple[Operand, ...]) -> None:
    only(modifiers)
    lanes.set_words(operands[0], low(integer(lanes, operands[1])))


@operation("POPC")
def _population(lanes: Lanes, modifiers: tuple[str, ...], operands: tuple[Operand, ...]) -> None:
    only(modifiers)
    lanes.set_words(operands[0], np.bitwise_count(low(integer(lanes, operands[1]))).astype(np.uint32))
