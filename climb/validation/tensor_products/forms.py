"""The types and shapes of matrix products that are compared."""

from __future__ import annotations

from dataclasses import dataclass

BITS = {
    "f16": 16, "bf16": 16, "tf32": 32, "f64": 64, "f32": 32, "s32": 32, "s8": 8, "u8": 8, "s4": 4, "u4": 4, "b1": 1,
    "e4m3": 8, "e5m2": 8,
}  # fmt: skip


@dataclass(frozen=True)
class Form:
    """One product D = A B + C of m x k and k x n matrices, and the opcode that computes it.

    `by`: "warp" (mma.sync), "quad" (m8n8k4 of halves, four products in a warp, with `layouts` of a and b), "tile"
    (wmma, between memory and memory) or "warpgroup" (wgmma). `registers`: a in registers (wgmma). `negated`: a is
    negated; `fresh`: C is not added. `sparse`: half of each row of a is stored, and metadata say which half, in the
    lanes that `selector` says; `ordered`: by ascending index.
    """

    name: str
    opcode: str
    m: int
    n: int
    k: int
    a: str
    b: str
    c: str
    d: str
    by: str = "warp"
    layouts: tuple[str, str] = ("row", "col")
    registers: bool = False
    negated: bool = False
    fresh: bool = False
    sparse: bool = False
    selector: int = 0
    ordered: bool = False

    @property
    def stored(self) -> int:
        """The elements of a row of a that are stored."""
        return self.k // 2 if self.sparse else self.k

    @property
    def floating(self) -> bool:
        """Return whether the elements of a and b are floating-point numbers."""
        return self.a not in ("s8", "u8", "s4", "u4", "b1")


def _warp(
    name: str, m: int, n: int, k: int, types: tuple[str, str, str, str], modifiers: str = "", after: str = ""
) -> Form:
    a, b, c, d = types
    opcode = f"mma.sync.aligned.m{m}n{n}k{k}.row.col{modifiers}.{d}.{a}.{b}.{c}{after}"
    return Form(f"mma_{name}", opcode, m, n, k, *types)


def _warps() -> list[Form]:
    out = []
    for k in (8, 16):
        for t, sums in (("f16", ("f16", "f32")), ("bf16", ("f32",))):
            out += [_warp(f"k{k}_{t}_{c}", 16, 8, k, (t, t, c, c)) for c in sums]
    out += [_warp(f"k{k}_tf32_f32", 16, 8, k, ("tf32", "tf32", "f32", "f32")) for k in (4, 8)]
    bytes_ = ("e4m3", "e5m2")
    for k in (16, 32):
        pairs = [(a, b) for a in bytes_ for b in bytes_ if k == 32 or a == b]
        out += [_warp(f"k{k}_{a}_{b}_{c}", 16, 8, k, (a, b, c, c)) for a, b in pairs for c in ("f32", "f16")]
    out.append(_warp("m8k4_f64", 8, 8, 4, ("f64",) * 4))
    out += [_warp(f"k{k}_f64", 16, 8, k, ("f64",) * 4) for k in (4, 8, 16)]
    for sat in ("", ".satfinite"):
        for shapes, signed, unsigned in (
            (((8, 16), (16, 16), (16, 32)), "s8", "u8"), (((8, 32), (16, 32), (16, 64)), "s4", "u4"),
        ):  # fmt: skip
            pairs = [(signed, signed), (unsigned, unsigned)] + [(signed, unsigned), (unsigned, signed)] * (not sat)
            out += [
                _warp(f"m{m}k{k}_{a}_{b}{sat[1:4]}", m, 8, k, (a, b, "s32", "s32"), sat)
                for m, k in shapes for a, b in pairs
            ]  # fmt: skip
    return out + [
        _warp(f"m{m}k{k}_b1_{how}", m, 8, k, ("b1", "b1", "s32", "s32"), after=f".{how}.popc")
        for m, k in ((8, 128), (16, 128), (16, 256)) for how in ("xor", "and")
    ]  # fmt: skip


def _quads() -> list[Form]:
    out = []
    for left, right in (("row", "col"), ("row", "row"), ("col", "row"), ("col", "col")):
        for c, d in (("f16", "f16"), ("f32", "f32"), ("f16", "f32")):
            if (left, right) == ("row", "col") or c == d:
                opcode = f"mma.sync.aligned.m8n8k4.{left}.{right}.{d}.f16.f16.{c}"
                name = f"mma_m8n8k4_{left}_{right}_{c}_{d}"
                out.append(Form(name, opcode, 8, 8, 4, "f16", "f16", c, d, "quad", (left, right)))
    return out


def _tiles() -> list[Form]:
    def tile(name: str, m: int, n: int, k: int, a: str, c: str, d: str, kinds: str) -> Form:
        return Form(f"wmma_{name}", f"wmma.mma.sync.aligned.row.row.m{m}n{n}k{k}.{kinds}", m, n, k, a, a, c, d, "tile")

    out = []
    for m, n in ((16, 16), (8, 32), (32, 8)):
        for a, c in (("f16", "f32"), ("f16", "f16"), ("bf16", "f32")):
            kinds = f"{c}.{c}" if a == "f16" else f"{c}.{a}.{a}.{c}"
            out.append(tile(f"m{m}n{n}_{a}_{c}", m, n, 16, a, c, c, kinds))
    out += [tile(f"f16_{c}_{d}", 16, 16, 16, "f16", c, d, f"{d}.{c}") for c, d in (("f16", "f32"), ("f32", "f16"))]
    out.append(tile("tf32_f32", 16, 16, 8, "tf32", "f32", "f32", "f32.tf32.tf32.f32"))
    return out + [
        tile(f"f64_{how}", 8, 8, 4, "f64", "f64", "f64", f"f64.f64.f64.f64.{how}") for how in ("rn", "rz", "rm", "rp")
    ]


def _warpgroups() -> list[Form]:
    def group(name: str, n: int, k: int, a: str, b: str, d: str, modifiers: str = "", **more: bool) -> Form:
        opcode = f"wgmma.mma_async.sync.aligned.m64n{n}k{k}{modifiers}.{d}.{a}.{b}"
        return Form(f"wgmma_{name}", opcode, 64, n, k, a, b, d, d, "warpgroup", **more)

    bytes_ = ("e4m3", "e5m2")
    return [
        group("n8_f16_f16", 8, 16, "f16", "f16", "f16"),
        group("n8_f16_f32", 8, 16, "f16", "f16", "f32"),
        group("n256_f16_f32", 256, 16, "f16", "f16", "f32"),
        group("n8_bf16_f32", 8, 16, "bf16", "bf16", "f32"),
        group("n8_tf32_f32", 8, 8, "tf32", "tf32", "f32"),
        group("n16_f16_f32_regs", 16, 16, "f16", "f16", "f32", registers=True),
        group("n8_f16_f32_negated", 8, 16, "f16", "f16", "f32", negated=True),
        group("n8_f16_f32_fresh", 8, 16, "f16", "f16", "f32", fresh=True),
        *(group(f"n8_{a}_{b}_{d}", 8, 32, a, b, d) for a in bytes_ for b in bytes_ for d in ("f32", "f16")),
        group("n256_e4m3_e4m3_f32", 256, 32, "e4m3", "e4m3", "f32"),
        group("n16_e4m3_e4m3_f32_regs", 16, 32, "e4m3", "e4m3", "f32", registers=True),
        *(group(f"n8_{a}_{b}", 8, 32, a, b, "s32") for a, b in (("s8", "s8"), ("u8", "u8"), ("s8", "u8"))),
        group("n8_s8_s8sat", 8, 32, "s8", "s8", "s32", ".satfinite"),
    ]


def _sparse_warp(
    name: str, k: int, types: tuple[str, str, str], modifiers: str = "", selector: int = 0, ordered: bool = True
) -> Form:
    a, b, c = types
    variant = "sp::ordered_metadata" if ordered else "sp"
    opcode = f"mma.{variant}.sync.aligned.m16n8k{k}.row.col{modifiers}.{c}.{a}.{b}.{c}"
    return Form(
        f"mma_sp_{name}", opcode, 16, 8, k, a, b, c, c, sparse=True, selector=selector, ordered=ordered
    )  # fmt: skip


def _sparse_warps() -> list[Form]:
    out = []
    for k in (16, 32):
        for t, c in (("f16", "f32"), ("f16", "f16"), ("bf16", "f32")):
            out.append(_sparse_warp(f"k{k}_{t}_{c}", k, (t, t, c), selector=3 if k == 16 else 1))
    out += [_sparse_warp(f"k{k}_tf32_f32", k, ("tf32", "tf32", "f32"), selector=1) for k in (8, 16)]
    out += [_sparse_warp(f"k{k}_f16_f32_any_order", k, ("f16", "f16", "f32"), ordered=False) for k in (16, 32)]
    out += [
        _sparse_warp(f"k64_{a}_{b}_f32", 64, (a, b, "f32"), ordered=a == b)
        for a in ("e4m3", "e5m2") for b in ("e4m3", "e5m2")
    ]  # fmt: skip
    for k in (32, 64):
        pairs = (("s8", "s8"), ("u8", "u8"), ("s8", "u8"), ("u8", "s8"))
        out += [_sparse_warp(f"k{k}_{a}_{b}", k, (a, b, "s32"), selector=int(k == 32)) for a, b in pairs]
        out.append(_sparse_warp(f"k{k}_s8_s8sat", k, ("s8", "s8", "s32"), ".satfinite", ordered=False))
    return out


def _sparse_warpgroups() -> list[Form]:
    def group(name: str, n: int, k: int, a: str, b: str, d: str, modifiers: str = "", **more: bool | int) -> Form:
        opcode = f"wgmma.mma_async.sp.sync.aligned.m64n{n}k{k}{modifiers}.{d}.{a}.{b}"
        return Form(f"wgmma_sp_{name}", opcode, 64, n, k, a, b, d, d, "warpgroup", sparse=True, **more)

    bytes_ = ("e4m3", "e5m2")
    return [
        group("n8_f16_f16", 8, 32, "f16", "f16", "f16", ordered=True),
        group("n8_f16_f32", 8, 32, "f16", "f16", "f32", ordered=True, selector=1),
        group("n8_f16_f32_any_order", 8, 32, "f16", "f16", "f32"),
        group("n64_f16_f32", 64, 32, "f16", "f16", "f32", ordered=True),
        group("n8_bf16_f32", 8, 32, "bf16", "bf16", "f32", ordered=True, selector=1),
        group("n8_tf32_f32", 8, 16, "tf32", "tf32", "f32", ordered=True, selector=1),
        group("n16_f16_f32_regs", 16, 32, "f16", "f16", "f32", registers=True, ordered=True),
        group("n16_tf32_f32_regs", 16, 16, "tf32", "tf32", "f32", registers=True, ordered=True),
        group("n8_f16_f32_negated", 8, 32, "f16", "f16", "f32", negated=True, ordered=True),
        group("n8_f16_f32_fresh", 8, 32, "f16", "f16", "f32", fresh=True, ordered=True),
        *(group(f"n8_{a}_{b}_{d}", 8, 64, a, b, d, ordered=True) for a in bytes_ for b in bytes_
          for d in ("f32", "f16")),
        group("n16_e4m3_e4m3_f32_regs", 16, 64, "e4m3", "e4m3", "f32", registers=True, ordered=True),
        *(group(f"n8_{a}_{b}", 8, 64, a, b, "s32", ordered=a == b)
          for a, b in (("s8", "s8"), ("u8", "u8"), ("s8", "u8"))),
        group("n8_s8_s8sat", 8, 64, "s8", "s8", "s32", ".satfinite", ordered=True),
    ]  # fmt: skip


_ALL = (_warps, _quads, _tiles, _warpgroups, _sparse_warps, _sparse_warpgroups)
FORMS: dict[str, Form] = {each.name: each for forms in _ALL for each in forms()}
