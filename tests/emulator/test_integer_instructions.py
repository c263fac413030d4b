"""Integer instructions: compare with Python integers, one thread at a time."""

from __future__ import annotations

import operator

import numpy as np
import pytest
from harness import Device, run_ptx
from reference import limits, remainder, truncated_division, wrap
from values import cases

SIGNED, UNSIGNED = ("s16", "s32", "s64"), ("u16", "u32", "u64")
ALL = SIGNED + UNSIGNED


def check(opcode: str, kinds: tuple[str, ...], result: str, expected, extra: int = 300) -> None:
    """Compare `opcode` with `expected`, a function of the operands, on the edge cases."""
    rows = cases(kinds, extra=extra)
    columns = list(zip(*rows, strict=True))
    operands = ", ".join(f"%q{n}" if k == "pred" else f"%i{n}" for n, k in enumerate(kinds))
    target = f"%q{len(kinds)}" if result == "pred" else "%o0"
    (got,) = run_ptx(f"{opcode} {target}, {operands};", list(zip(kinds, columns, strict=True)), [result])
    want = [int(expected(*row)) for row in rows]
    wrong = [(row, int(g), w) for row, g, w in zip(rows, got, want, strict=True) if int(g) != w]
    assert not wrong, f"{opcode}: {len(wrong)} wrong, first {wrong[0]} (operands, got, expected)"


BINARY = {
    "add": operator.add,
    "sub": operator.sub,
    "mul.lo": operator.mul,
    "min": min,
    "max": max,
}


@pytest.mark.parametrize("kind", ALL)
@pytest.mark.parametrize("name", BINARY)
def test_instructions_with_two_operands_match_python(name, kind):
    check(f"{name}.{kind}", (kind, kind), kind, lambda a, b: wrap(BINARY[name](a, b), kind))


@pytest.mark.parametrize("kind", ALL)
def test_division_and_remainder_match_python(kind):
    check(f"div.{kind}", (kind, kind), kind, lambda a, b: truncated_division(a, b, kind))
    check(f"rem.{kind}", (kind, kind), kind, lambda a, b: remainder(a, b, kind))


@pytest.mark.parametrize("kind", ALL)
def test_multiply_add_and_high_half_match_python(kind):
    bits = int(kind[1:])
    check(f"mad.lo.{kind}", (kind,) * 3, kind, lambda a, b, c: wrap(a * b + c, kind))
    check(f"mul.hi.{kind}", (kind, kind), kind, lambda a, b: wrap((a * b) >> bits, kind))
    check(f"mad.hi.{kind}", (kind,) * 3, kind, lambda a, b, c: wrap(((a * b) >> bits) + c, kind))
    check(f"sad.{kind}", (kind,) * 3, kind, lambda a, b, c: wrap(abs(a - b) + c, kind))


@pytest.mark.parametrize("second", ["s32", "u32"])
@pytest.mark.parametrize("first", ["s32", "u32"])
def test_dot_products_of_bytes_match_python(first, second):
    result = "u32" if (first, second) == ("u32", "u32") else "s32"

    def parts(word: int, bits: int, kind: str) -> list[int]:
        raw = (word & 0xFFFFFFFF).to_bytes(4, "little")
        step = bits // 8
        return [int.from_bytes(raw[i : i + step], "little", signed=kind == "s32") for i in range(0, 4, step)]

    def dp4a(a: int, b: int, c: int) -> int:
        pairs = zip(parts(a, 8, first), parts(b, 8, second), strict=True)
        return wrap(c + sum(x * y for x, y in pairs), result)

    def dp2a(a: int, b: int, c: int, start: int) -> int:
        x, y = parts(a, 16, first), parts(b, 8, second)[start:]
        return wrap(c + x[0] * y[0] + x[1] * y[1], result)

    kinds = (first, second, result)
    check(f"dp4a.{first}.{second}", kinds, result, dp4a)
    check(f"dp2a.lo.{first}.{second}", kinds, result, lambda a, b, c: dp2a(a, b, c, 0))
    check(f"dp2a.hi.{first}.{second}", kinds, result, lambda a, b, c: dp2a(a, b, c, 2))


@pytest.mark.parametrize("kind", ["s16", "s32", "u16", "u32"])
def test_wide_products_match_python(kind):
    wide = kind[0] + str(2 * int(kind[1:]))
    check(f"mul.wide.{kind}", (kind, kind), wide, lambda a, b: wrap(a * b, wide))
    check(f"mad.wide.{kind}", (kind, kind, wide), wide, lambda a, b, c: wrap(a * b + c, wide))


@pytest.mark.parametrize("kind", ["s32", "u32"])
def test_24_bit_products_match_python(kind):
    low = f"{kind[0]}24"
    check(f"mul24.lo.{kind}", (kind, kind), kind, lambda a, b: wrap(wrap(a, low) * wrap(b, low), kind))
    check(f"mad24.lo.{kind}", (kind,) * 3, kind, lambda a, b, c: wrap(wrap(a, low) * wrap(b, low) + c, kind))


@pytest.mark.parametrize("kind", SIGNED)
def test_negation_and_absolute_value_wrap(kind):
    check(f"neg.{kind}", (kind,), kind, lambda a: wrap(-a, kind))
    check(f"abs.{kind}", (kind,), kind, lambda a: wrap(abs(a), kind))


def test_saturating_sums_clamp():
    low, high = limits("s32")
    check("add.sat.s32", ("s32", "s32"), "s32", lambda a, b: min(max(a + b, low), high))
    check("sub.sat.s32", ("s32", "s32"), "s32", lambda a, b: min(max(a - b, low), high))


@pytest.mark.parametrize("bits", [16, 32, 64])
def test_logic_matches_python(bits):
    kind = f"u{bits}"
    for name, function in {"and": operator.and_, "or": operator.or_, "xor": operator.xor}.items():
        check(f"{name}.b{bits}", (kind, kind), kind, function)
    check(f"not.b{bits}", (kind,), kind, lambda a: wrap(~a, kind))
    check(f"cnot.b{bits}", (kind,), kind, lambda a: a == 0)


@pytest.mark.parametrize("bits", [16, 32, 64])
def test_shifts_clamp_at_the_width(bits):
    unsigned, signed = f"u{bits}", f"s{bits}"
    check(f"shl.b{bits}", (unsigned, "u32"), unsigned, lambda a, n: wrap(a << n, unsigned) if n < bits else 0)
    check(f"shr.u{bits}", (unsigned, "u32"), unsigned, lambda a, n: a >> n)
    check(f"shr.b{bits}", (unsigned, "u32"), unsigned, lambda a, n: a >> n)
    check(f"shr.s{bits}", (signed, "u32"), signed, lambda a, n: a >> min(n, bits))


@pytest.mark.parametrize("amount", [0, 1, 31, 32, 33, 64, 200])
def test_shifts_by_a_literal(amount):
    for opcode, kind in (("shl.b32", "u32"), ("shr.u32", "u32"), ("shr.s32", "s32"), ("shl.b64", "u64")):
        values = [row[0] for row in cases((kind,))]
        (got,) = run_ptx(f"{opcode} %o0, %i0, {amount};", [(kind, values)], [kind])
        bits = int(kind[1:])
        for value, found in zip(values, got, strict=True):
            want = value >> amount if opcode.startswith("shr") else (value << amount if amount < bits else 0)
            assert int(found) == wrap(want, kind), (opcode, value)


@pytest.mark.parametrize("bits", [32, 64])
def test_bit_counts_match_python(bits):
    kind, signed = f"u{bits}", f"s{bits}"
    none = 0xFFFFFFFF

    def highest(a: int) -> int:
        a = ~a if a < 0 else a
        return a.bit_length() - 1 if a else none

    check(f"popc.b{bits}", (kind,), "u32", lambda a: a.bit_count())
    check(f"clz.b{bits}", (kind,), "u32", lambda a: bits - a.bit_length())
    check(f"brev.b{bits}", (kind,), kind, lambda a: int(f"{a:0{bits}b}"[::-1], 2))
    for one in (kind, signed):
        check(f"bfind.{one}", (one,), "u32", highest)
        check(f"bfind.shiftamt.{one}", (one,), "u32", lambda a: none if highest(a) == none else bits - 1 - highest(a))


@pytest.mark.parametrize("kind", ["u32", "s32", "u64", "s64"])
def test_bit_fields_match_python(kind):
    bits = int(kind[1:])

    def extract(a: int, position: int, length: int) -> int:
        position, length = position & 255, length & 255
        raw = a & ((1 << bits) - 1)
        if kind[0] == "u" or length == 0:
            sign = 0
        else:
            sign = raw >> min(position + length - 1, bits - 1) & 1
        return wrap(
            sum((raw >> (position + i) & 1 if i < length and position + i < bits else sign) << i for i in range(bits)),
            kind,
        )

    check(f"bfe.{kind}", (kind, "u32", "u32"), kind, extract)

    def insert(a: int, b: int, position: int, length: int) -> int:
        position, length = position & 255, length & 255
        for i in range(length):
            if position + i < bits and i < bits:
                b = b & ~(1 << (position + i)) | (a >> i & 1) << (position + i)
        return b

    if kind[0] == "u":
        check(f"bfi.b{bits}", (kind, kind, "u32", "u32"), kind, insert)


def test_small_bit_fields_match_python_at_all_positions():
    """Random operands rarely combine small positions with small lengths."""
    rows = [(0xDEADBEEF, p, n) for p in range(40) for n in range(40)]
    a, p, n = zip(*rows, strict=True)
    (got,) = run_ptx("bfe.u32 %o0, %i0, %i1, %i2;", [("u32", a), ("u32", p), ("u32", n)], ["u32"])
    assert got.tolist() == [(0xDEADBEEF >> p) & ((1 << n) - 1) for _, p, n in rows]


@pytest.mark.parametrize("table", [0x00, 0x80, 0x96, 0xE8, 0x1B, 0xFF, 0xCA])
def test_lop3_follows_its_truth_table(table):
    kinds = ("u32",) * 3
    rows = cases(kinds)
    inputs = [(k, c) for k, c in zip(kinds, zip(*rows, strict=True), strict=True)]
    (got,) = run_ptx(f"lop3.b32 %o0, %i0, %i1, %i2, {table};", inputs, ["u32"])

    def look(a: int, b: int, c: int) -> int:
        return sum((table >> ((a >> i & 1) << 2 | (b >> i & 1) << 1 | c >> i & 1) & 1) << i for i in range(32))

    assert got.tolist() == [look(*row) for row in rows]


@pytest.mark.parametrize("side", ["l", "r"])
@pytest.mark.parametrize("mode", ["wrap", "clamp"])
def test_funnel_shifts_match_python(side, mode):
    def shift(a: int, b: int, n: int) -> int:
        n = n & 31 if mode == "wrap" else min(n, 32)
        both = b << 32 | a
        return (both << n >> 32 if side == "l" else both >> n) & 0xFFFFFFFF

    check(f"shf.{side}.{mode}.b32", ("u32",) * 3, "u32", shift)


def test_prmt_selects_bytes():
    def permute(a: int, b: int, control: int) -> int:
        both, out = (b << 32 | a).to_bytes(8, "little"), []
        for i in range(4):
            nibble = control >> 4 * i & 15
            byte = both[nibble & 7]
            out.append((0xFF if byte & 0x80 else 0) if nibble & 8 else byte)
        return int.from_bytes(bytes(out), "little")

    check("prmt.b32", ("u32",) * 3, "u32", permute)


COMPARE = {
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
}


@pytest.mark.parametrize("kind", ALL)
@pytest.mark.parametrize("name", COMPARE)
def test_setp_matches_python(name, kind):
    check(f"setp.{name}.{kind}", (kind, kind), "pred", COMPARE[name])


@pytest.mark.parametrize("name,same", [("lo", "lt"), ("ls", "le"), ("hi", "gt"), ("hs", "ge")])
def test_setp_with_unsigned_names_matches_python(name, same):
    check(f"setp.{name}.u32", ("u32", "u32"), "pred", COMPARE[same])


@pytest.mark.parametrize("boolean", ["and", "or", "xor"])
def test_setp_combines_a_predicate_and_writes_two_results(boolean):
    combine = {"and": operator.and_, "or": operator.or_, "xor": operator.xor}[boolean]
    kinds = ("s32", "s32", "pred")
    rows = cases(kinds)
    inputs = [(k, c) for k, c in zip(kinds, zip(*rows, strict=True), strict=True)]
    for negate in ("", "!"):
        first, second = run_ptx(f"setp.lt.{boolean}.s32 %q3|%q4, %i0, %i1, {negate}%q2;", inputs, ["pred", "pred"])
        for (a, b, c), one, two in zip(rows, first, second, strict=True):
            other = bool(c) != bool(negate)
            assert (bool(one), bool(two)) == (combine(a < b, other), combine(not a < b, other))


def test_selp_and_slct_select():
    check("selp.s32", ("s32", "s32", "pred"), "s32", lambda a, b, p: a if p else b)
    check("selp.b64", ("u64", "u64", "pred"), "u64", lambda a, b, p: a if p else b)
    check("slct.s32.s32", ("s32", "s32", "s32"), "s32", lambda a, b, c: a if c >= 0 else b)
    check("set.lt.u32.s32", ("s32", "s32"), "u32", lambda a, b: 0xFFFFFFFF if a < b else 0)


@pytest.mark.parametrize("of", ["u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64"])
def test_integer_conversions_match_python(of):
    for to in ("u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64"):
        check(f"cvt.{to}.{of}", (of,), to, lambda a, to=to: wrap(a, to))
        low, high = limits(to)
        check(f"cvt.sat.{to}.{of}", (of,), to, lambda a, low=low, high=high: min(max(a, low), high))


def test_a_narrow_result_is_extended_in_a_wider_register():
    values = list(range(-130, 130))
    got = run_ptx("cvt.s8.s32 %o0, %i0; cvt.u8.s32 %o1, %i0;", [("s32", values)], ["s32", "s32"])
    assert got[0].tolist() == [wrap(v, "s8") for v in values]
    assert got[1].tolist() == [wrap(v, "u8") for v in values]


def test_carry_chains_make_wide_arithmetic():
    rows = cases(("u64",) * 4, extra=500)
    columns = [("u64", c) for c in zip(*rows, strict=True)]
    low, high = run_ptx("add.cc.u64 %o0, %i0, %i2; addc.u64 %o1, %i1, %i3;", columns, ["u64", "u64"])
    less, more = run_ptx("sub.cc.u64 %o0, %i0, %i2; subc.u64 %o1, %i1, %i3;", columns, ["u64", "u64"])
    mask = (1 << 128) - 1
    for (a, b, c, d), *got in zip(rows, low, high, less, more, strict=True):
        x, y = b << 64 | a, d << 64 | c
        assert int(got[1]) << 64 | int(got[0]) == (x + y) & mask
        assert int(got[3]) << 64 | int(got[2]) == (x - y) & mask


def test_a_carry_passes_through_three_words():
    rows = [(a, b) for a in (0, 1, 2**32 - 1, 2**31) for b in (0, 1, 2**32 - 1)]
    a, b = zip(*rows, strict=True)
    got = run_ptx(
        "add.cc.u32 %o0, %i0, %i1; addc.cc.u32 %o1, %i0, %i1; addc.u32 %o2, %i0, %i1;",
        [("u32", a), ("u32", b)],
        ["u32"] * 3,
    )
    for (x, y), *words in zip(rows, *got, strict=True):
        wide = sum(x << 32 * i for i in range(3)) + sum(y << 32 * i for i in range(3))
        assert sum(int(w) << 32 * i for i, w in enumerate(words)) == wide & ((1 << 96) - 1)


def test_multiply_add_with_carry_matches_python():
    rows = cases(("u32",) * 4, extra=500)
    columns = [("u32", c) for c in zip(*rows, strict=True)]
    low, high = run_ptx("mad.lo.cc.u32 %o0, %i0, %i1, %i2; madc.hi.u32 %o1, %i0, %i1, %i3;", columns, ["u32", "u32"])
    for (a, b, c, d), lo, hi in zip(rows, low, high, strict=True):
        assert int(hi) << 32 | int(lo) == (a * b + (d << 32 | c)) & ((1 << 64) - 1)


def test_mov_packs_and_unpacks_vectors():
    rows = cases(("u32", "u32"))
    columns = [("u32", c) for c in zip(*rows, strict=True)]
    (wide,) = run_ptx("mov.b64 %o0, {%i0, %i1};", columns, ["u64"])
    assert wide.tolist() == [b << 32 | a for a, b in rows]
    low, high = run_ptx("mov.b64 {%o0, %o1}, %i0;", [("u64", wide)], ["u32", "u32"])
    assert list(zip(low.tolist(), high.tolist(), strict=True)) == rows


def test_immediates_wrap():
    (got,) = run_ptx("add.s32 %o0, %i0, -1; add.u32 %o0, %o0, 4294967295;", [("s32", [5])], ["s32"])
    assert got.tolist() == [3]
    (got,) = run_ptx("mov.b32 %o0, 0f3F800000;", [("u32", [0])], ["f32"], "")
    assert got.tolist() == [1.0] and got.dtype == np.float32


def test_warp_size_is_a_constant():
    assert run_ptx("mov.u32 %o0, WARP_SZ;", [("u32", [0])], ["u32"])[0][0] == 32
    assert run_ptx("add.u32 %o0, %i0, WARP_SZ;", [("u32", [7])], ["u32"])[0][0] == 39


def test_warp_size_is_32_in_cuda():
    device = Device("__global__ void lanes(int* o) { o[threadIdx.x] = threadIdx.x % warpSize + warpSize; }", ["lanes"])
    out = np.zeros(40, np.int32)
    device.launch("lanes", 1, 40, out)
    assert (out == np.arange(40) % 32 + 32).all()


@pytest.mark.parametrize("mode", ["clamp", "wrap"])
def test_bmsk_makes_a_run_of_ones(mode):
    """bmsk sets a number of bits from a position on; bits past 31 are lost."""

    def mask(start, length):
        start, length = (min(v, 32) if mode == "clamp" else v & 31 for v in (start & 0xFFFFFFFF, length & 0xFFFFFFFF))
        return (((1 << length) - 1) << start) & 0xFFFFFFFF

    check(f"bmsk.{mode}.b32", ("u32", "u32"), "u32", mask)
