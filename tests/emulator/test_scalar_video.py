"""Scalar video instructions, parts of registers, and the bit instructions that CUDA C++ reaches only through PTX.

Every expected value is computed with Python's integers, as the pseudo-code of the PTX ISA has it.
"""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from harness import run_ptx
from reference import wrap

from climb.emulator import UnsupportedInstruction

RNG = random.Random(14)
EDGES = [0, 1, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0x80FF7F01, 0x7F8000FF, 0x12345678]
A = EDGES + [RNG.getrandbits(32) for _ in range(56)]
B = EDGES[3:] + EDGES[:3] + [RNG.choice([RNG.getrandbits(32), RNG.getrandbits(6)]) for _ in range(56)]
C = EDGES[5:] + EDGES[:5] + [RNG.getrandbits(32) for _ in range(56)]
PARTS = {"": (0, 32), "b0": (0, 8), "b1": (8, 8), "b2": (16, 8), "b3": (24, 8), "h0": (0, 16), "h1": (16, 16)}


def part(word: int, selector: str, sign: str) -> int:
    start, bits = PARTS[selector]
    return wrap(word >> start, f"{sign}{bits}")


def clamp(value: int, sign: str, bits: int) -> int:
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if sign == "s" else (0, (1 << bits) - 1)
    return min(max(value, low), high)


def finish(value: int, c: int, sign: str, sat: bool, second: str) -> int:
    value = clamp(value, sign, 32) if sat else value
    if second:
        other = wrap(c, f"{sign}32")
        value = {"add": value + other, "min": min(value, other), "max": max(value, other)}[second]
    return value & 0xFFFFFFFF


def check(instruction: str, expected: Callable[[int, int, int], int]) -> None:
    (got,) = run_ptx(instruction, [("b32", each) for each in (A, B, C)], ["b32"])
    for a, b, c, found in zip(A, B, C, got.tolist(), strict=True):
        assert found == expected(a, b, c), (instruction, hex(a), hex(b), hex(c))


PLAIN = {
    "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "absdiff": lambda a, b: abs(a - b), "min": min, "max": max,
}  # fmt: skip


@pytest.mark.parametrize("name", PLAIN)
def test_arithmetic_on_parts_matches_python(name: str) -> None:
    forms = [
        ("", "", "", ""),
        ("b3", "h0", ".sat", ""),
        ("h1", "b0", "", ".add"),
    ]
    if name not in ("add", "sub"):
        forms += [("", "", ".sat", ".max"), ("b1", "", "", ".min")]
    for signs in ("uuu", "sss", "sus"):
        d, a, b = signs
        for left, right, sat, second in forms:
            selected = [f"%{each}{'.' * bool(s)}{s}" for each, s in (("o0", ""), ("i0", left), ("i1", right))]
            third = ", %i2" if second else ""
            check(
                f"v{name}.{d}32.{a}32.{b}32{sat}{second} {', '.join(selected)}{third};",
                lambda x, y, z: finish(PLAIN[name](part(x, left, a), part(y, right, b)), z, d, bool(sat),  # noqa: B023
                                       second[1:]),  # noqa: B023
            )  # fmt: skip


@pytest.mark.parametrize("mode", ["clamp", "wrap"])
def test_shifts_of_parts_match_python(mode: str) -> None:
    for a in "us":
        amount = lambda y, s: part(y, s, "u") & 31 if mode == "wrap" else min(part(y, s, "u"), 32)  # noqa: E731
        check(f"vshl.u32.{a}32.u32.{mode} %o0, %i0.h1, %i1.b0;",
              lambda x, y, z: part(x, "h1", a) << amount(y, "b0") & 0xFFFFFFFF)  # noqa: B023  # fmt: skip
        check(f"vshr.s32.{a}32.u32.sat.{mode}.add %o0, %i0, %i1, %i2;",
              lambda x, y, z: finish(part(x, "", a) >> amount(y, ""), z, "s", True, "add"))  # noqa: B023  # fmt: skip


def test_comparisons_of_parts_match_python() -> None:
    check("vset.s32.u32.lt %o0, %i0, %i1;", lambda x, y, z: int(part(x, "", "s") < y))
    check("vset.u32.u32.ge.add %o0, %i0.b1, %i1.b2, %i2;",
          lambda x, y, z: (z + (part(x, "b1", "u") >= part(y, "b2", "u"))) & 0xFFFFFFFF)  # fmt: skip


def test_multiply_add_matches_python() -> None:
    check("vmad.u32.u32.u32 %o0, %i0, %i1, %i2;", lambda x, y, z: (x * y + z) & 0xFFFFFFFF)
    check("vmad.s32.s32.u32 %o0, %i0.h1, %i1.b2, %i2;",
          lambda x, y, z: (part(x, "h1", "s") * part(y, "b2", "u") + z) & 0xFFFFFFFF)  # fmt: skip


@pytest.mark.parametrize(
    "instruction",
    [
        "vadd.u32.u32.u32 %o0.h1, %i0.h0, %i1, %i2;", "vmin.s32.s32.s32.sat %o0.b2, %i0, %i1.b1, %i2;",
        "vset.u32.s32.ne %o0.h1, %i0, %i1.h0, %i2;", "vsub.u32.u32.u32.sat.max %o0, %i0, %i1, %i2;",
        "vadd.s32.s32.s32.min %o0, %i0.b1, %i1, %i2;", "vmad.s32.s32.u32.shr15 %o0, %i0, %i1, -%i2;",
        "vmad.u32.u32.u32.po.sat %o0, %i0, %i1.b2, %i2;", "vmad.s32.u32.u32.sat.shr7 %o0, -%i0.h1, %i1, %i2;",
        "vadd.u32.u32.u32.sat %o0, %i0, %i1.b2;", "vsub.u32.u32.s32.sat %o0, %i0, %i1;",
        "vabsdiff.u32.s32.u32.sat.max %o0, %i0.h1, %i1, %i2;", "vshl.s32.u32.u32.sat.clamp %o0, %i0.h1, %i1.b0;",
        "vshl.u32.s32.u32.wrap.min %o0, %i0, %i1, %i2;", "vshr.u32.s32.u32.clamp.max %o0, %i0, %i1, %i2;",
        "vmin.u32.u32.s32.max %o0, %i0, %i1, %i2;", "vmax.u32.s32.s32.min %o0, %i0.h1, %i1.b2, %i2;",
        "vset.s32.u32.eq.min %o0, %i0.h1, %i1, %i2;",
    ],
)  # fmt: skip
def test_forms_that_a_gpu_computes_otherwise_are_refused(instruction: str) -> None:
    with pytest.raises(UnsupportedInstruction, match="a GPU does not compute this form as the PTX ISA says"):
        check(instruction, lambda x, y, z: 0)


@pytest.mark.parametrize("number", [2, 4])
def test_simd_selections_and_masks_match_python(number: int) -> None:
    bits = 32 // number
    mask, left, right = ("h1", "h20", "h13") if number == 2 else ("b20", "b7310", "b0426")
    chosen = [[int(digit) for digit in reversed(each[1:])] for each in (left, right)]

    def expected(x: int, y: int, z: int, add: bool) -> int:
        both = [wrap(word >> at, f"s{bits}") for word in (x, y) for at in range(0, 32, bits)]
        each = [clamp(both[p] - both[q], "s", bits) for p, q in zip(*chosen, strict=True)]
        named = [int(digit) for digit in mask[1:]]
        if add:
            return (sum(each[n] for n in named) + z) & 0xFFFFFFFF
        for n in named:
            ones = (1 << bits) - 1
            z = z & ~(ones << bits * n) | (each[n] & ones) << bits * n
        return z

    for add in ("", ".add"):
        code = f"vsub{number}.s32.s32.s32.sat{add} %o0.{mask}, %i0.{left}, %i1.{right}, %i2;"
        check(code, lambda x, y, z: expected(x, y, z, bool(add)))  # noqa: B023
    check(
        f"vset{number}.u32.u32.gt %o0, %i0, %i1, %i2;",
        lambda x, y, z: sum((wrap(x >> at, f"u{bits}") > wrap(y >> at, f"u{bits}")) << at for at in range(0, 32, bits)),
    )


def nth_set(mask: int, base: int, offset: int) -> int:
    if offset == 0:
        return base if mask >> base & 1 else 0xFFFFFFFF
    positions = range(base, 32) if offset > 0 else range(base, -1, -1)
    found = [at for at in positions if mask >> at & 1]
    return found[abs(offset) - 1] if abs(offset) <= len(found) else 0xFFFFFFFF


def test_fns_finds_the_nth_set_bit() -> None:
    check("and.b32 %o0, %i1, 31; and.b32 %i2, %i2, 15; sub.s32 %i2, %i2, 7; fns.b32 %o0, %i0, %o0, %i2;",
          lambda x, y, z: nth_set(x, y & 31, (z & 15) - 7))  # fmt: skip


@pytest.mark.parametrize("mode", ["clamp", "wrap"])
def test_szext_extends_from_any_width(mode: str) -> None:
    for sign in "us":
        check(f"szext.{mode}.{sign}32 %o0, %i0, %i1;",
              lambda x, y, z: 0 if not (n := y & 31 if mode == "wrap" else min(y, 32))
              else wrap(x, f"{sign}{n}") & 0xFFFFFFFF)  # noqa: B023  # fmt: skip


def test_prmt_modes_pick_the_bytes_of_the_table() -> None:
    def pick(x: int, y: int, at: list[int]) -> int:
        both = (x | y << 32).to_bytes(8, "little")
        return int.from_bytes(bytes(both[n] for n in at), "little")

    rules = {
        "f4e": lambda s: [s, s + 1, s + 2, s + 3], "b4e": lambda s: [s, (s + 7) % 8, (s + 6) % 8, (s + 5) % 8],
        "rc8": lambda s: [s] * 4, "ecl": lambda s: [max(n, s) for n in range(4)],
        "ecr": lambda s: [min(n, s) for n in range(4)], "rc16": lambda s: [2 * (s & 1), 2 * (s & 1) + 1] * 2,
    }  # fmt: skip
    for mode, rule in rules.items():
        check(f"prmt.b32.{mode} %o0, %i0, %i1, %i2;", lambda x, y, z: pick(x, y, rule(z & 3)))  # noqa: B023


def test_products_of_24_bits_and_saturating_sums_match_python() -> None:
    signed = lambda x: wrap(x, "s24")  # noqa: E731
    check("mul24.hi.u32 %o0, %i0, %i1;", lambda x, y, z: (x & 0xFFFFFF) * (y & 0xFFFFFF) >> 16 & 0xFFFFFFFF)
    check("mad24.hi.s32 %o0, %i0, %i1, %i2;", lambda x, y, z: (signed(x) * signed(y) >> 16) + z & 0xFFFFFFFF)
    low = lambda value: clamp(value, "s", 32) & 0xFFFFFFFF  # noqa: E731
    check(
        "mad24.hi.sat.s32 %o0, %i0, %i1, %i2;",
        lambda x, y, z: low(wrap(signed(x) * signed(y) >> 16, "s32") + wrap(z, "s32")),
    )
    check(
        "mad.hi.sat.s32 %o0, %i0, %i1, %i2;",
        lambda x, y, z: low((wrap(x, "s32") * wrap(y, "s32") >> 32) + wrap(z, "s32")),
    )


def test_cvt_pack_saturates_two_integers() -> None:
    word = lambda x: wrap(x, "s32")  # noqa: E731
    check("cvt.pack.sat.s16.s32 %o0, %i0, %i1;",
          lambda x, y, z: (clamp(word(x), "s", 16) & 0xFFFF) << 16 | clamp(word(y), "s", 16) & 0xFFFF)  # fmt: skip
    check("cvt.pack.sat.u8.s32.b32 %o0, %i0, %i1, %i2;",
          lambda x, y, z: (z << 16 | clamp(word(x), "u", 8) << 8 | clamp(word(y), "u", 8)) & 0xFFFFFFFF)  # fmt: skip


def test_lop3_tells_whether_its_result_is_zero() -> None:
    for boolean, join in (("or", lambda p, q: p or q), ("and", lambda p, q: p and q)):
        code = (
            f"setp.lt.u32 %p1, %i0, %i1; lop3.{boolean}.b32 %o0|%p2, %i0, %i1, %i2, 0x80, %p1; selp.u32 %o0, 1, 0, %p2;"
        )
        check(code, lambda x, y, z: int(join((x & y & z) != 0, x < y)))  # noqa: B023


def test_parts_of_a_register_are_refused_elsewhere() -> None:
    with pytest.raises(UnsupportedInstruction, match="parts of a register are operands of video instructions only"):
        run_ptx("add.u32 %o0, %i0.b1, %i0;", [("u32", [1])], ["u32"])
