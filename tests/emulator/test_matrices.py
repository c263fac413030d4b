"""Matrix instructions: fragments by the formulas of the PTX ISA, accesses of ldmatrix and wmma, partial warps.

The arithmetic itself is compared with an H200 in `test_tensor_products`.
"""

from __future__ import annotations

import numpy as np
import pytest
from harness import Device
from tools.thorough import thorough

from climb.emulator import UnsupportedInstruction, WarpMismatch
from climb.emulator.isa.half import narrow, widen
from climb.emulator.runtime.tensor_cores.arithmetic import Types, tile_product, warp_product

WARPS = 4  # two blocks of two warps, each with matrices of its own


def bits(values: np.ndarray, kind: str) -> np.ndarray:
    """The bits of values in a type."""
    if kind in ("f32", "tf32"):
        return values.astype(np.float32).view(np.uint32)
    return narrow(values, kind)


def codes(array: np.ndarray) -> np.ndarray:
    """The bits of an array, as the emulator's arithmetic takes them."""
    return np.ascontiguousarray(array).view(f"u{array.itemsize}")


MULTIPLY = r"""
typedef unsigned u; typedef unsigned short h;
extern "C" __global__ void k(const IN* a, const IN* b, const OUT* c, OUT* d) {
    int w = (blockIdx.x * blockDim.x + threadIdx.x) / 32, g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    a += w * 16 * K; b += w * K * 8; c += w * 128; d += w * 128;
    u A[NA], B[NB]; CTYPE C[NC], D[NC];
#if WIDE
    for (int i = 0; i < NA; ++i) A[i] = a[(g + (i % 2) * 8) * K + t + (i / 2) * 4];
    for (int i = 0; i < NB; ++i) B[i] = b[(t + i * 4) * 8 + g];
#else
    for (int i = 0; i < NA; ++i) { int p = (g + (i % 2) * 8) * K + 2 * t + (i / 2) * 8; A[i] = a[p] | a[p + 1] << 16; }
    for (int i = 0; i < NB; ++i) { int p = 2 * t + i * 8; B[i] = b[p * 8 + g] | b[(p + 1) * 8 + g] << 16; }
#endif
#if NC == 4
    for (int i = 0; i < 4; ++i) C[i] = c[(g + i / 2 * 8) * 8 + 2 * t + i % 2];
#else
    for (int i = 0; i < 2; ++i) { int p = (g + i * 8) * 8 + 2 * t; C[i] = c[p] | c[p + 1] << 16; }
#endif
    ASM
#if NC == 4
    for (int i = 0; i < 4; ++i) d[(g + i / 2 * 8) * 8 + 2 * t + i % 2] = D[i];
#else
    for (int i = 0; i < 2; ++i) { int p = (g + i * 8) * 8 + 2 * t; d[p] = (h)D[i]; d[p + 1] = (h)(D[i] >> 16); }
#endif
}
"""


def multiply(depth: int, kind: str, added: str) -> Device:
    """A kernel for one form of mma.sync."""
    na, nb = (depth // 2, depth // 4) if kind == "tf32" else (depth // 4, depth // 8)
    nc, letter = (4, "f") if added == "f32" else (2, "r")
    places, at = [], 0
    for n in (nc, na, nb, nc):
        places.append("{" + ", ".join(f"%{at + i}" for i in range(n)) + "}")
        at += n
    outs = ", ".join(f'"={letter}"(D[{i}])' for i in range(nc))
    ins = [f'"r"({m}[{i}])' for m, n in (("A", na), ("B", nb)) for i in range(n)]
    ins += [f'"{letter}"(C[{i}])' for i in range(nc)]
    opcode = f"mma.sync.aligned.m16n8k{depth}.row.col.{added}.{kind}.{kind}.{added}"
    asm = f'asm volatile("{opcode} {", ".join(places)};" : {outs} : {", ".join(ins)});'
    source = MULTIPLY.replace("ASM", asm).replace("IN", "u" if kind == "tf32" else "h")
    source = source.replace("OUT", "float" if added == "f32" else "h")
    source = source.replace("CTYPE", "float" if added == "f32" else "u")
    return Device(source, options=[f"-DK={depth}", f"-DNA={na}", f"-DNB={nb}", f"-DNC={nc}",
                                   f"-DWIDE={int(kind == 'tf32')}"])  # fmt: skip


FORMS = [(8, "f16", "f16"), (8, "f16", "f32"), (16, "f16", "f16"), (16, "f16", "f32"), (8, "bf16", "f32"),
         (16, "bf16", "f32"), (4, "tf32", "f32"), (8, "tf32", "f32")]  # fmt: skip


@pytest.mark.parametrize("depth,kind,added", FORMS)
def test_matrix_products_have_the_bits_of_a_tensor_core(depth, kind, added):
    rng = np.random.default_rng(depth)
    device = multiply(depth, kind, added)
    a, b, c = (
        bits(rng.normal(size=(WARPS, *s)), k) for s, k in (((16, depth), kind), ((depth, 8), kind), ((16, 8), added))
    )
    d = np.zeros((WARPS, 16, 8), c.dtype)
    device.launch("k", 2, 64, a, b, c, d)
    want = warp_product(*map(codes, (a, b, c)), Types(kind, kind, added, added))
    assert (codes(d) == want).all()
    exact = (
        np.matmul(*(widen(each, kind) for each in (a, b)))
        if kind != "tf32"
        else np.matmul(*((each & np.uint32(0xFFFFE000)).view(np.float32).astype(np.float64) for each in (a, b)))
    )
    found, plus = (
        (each.view(np.float32) if added == "f32" else each.view(np.float16)).astype(np.float64) for each in (d, c)
    )
    exact += plus
    assert (np.abs(found - exact) <= np.abs(exact) * 2.0 ** (-10 if added == "f16" else -19)).mean() > 0.99


def test_only_the_upper_bits_of_tf32_are_read():
    device = multiply(8, "tf32", "f32")
    a = np.full((WARPS, 16, 8), np.float32(1).view(np.uint32) | 0x1FFF, np.uint32)
    b, c = bits(np.ones((WARPS, 8, 8)), "tf32"), np.zeros((WARPS, 16, 8), np.float32)
    d = np.zeros_like(c)
    device.launch("k", 2, 64, a, b, c, d)
    assert (d == 8).all()


def test_infinities_nan_and_overflow_follow_ieee():
    device = multiply(8, "f16", "f16")
    a, b, c = np.zeros((WARPS, 16, 8)), np.zeros((WARPS, 8, 8)), np.zeros((WARPS, 16, 8))
    a[:, 0, 0], a[:, 1, 1], a[:, 2, 2], b[:, :3] = np.inf, np.inf, 60000, 2
    c[:, 1] = -np.inf
    c[:, 3] = 2.0**-24
    a, b, c = (bits(each, "f16") for each in (a, b, c))
    d = np.zeros((WARPS, 16, 8), np.uint16)
    device.launch("k", 2, 64, a, b, c, d)
    assert d[:, :4, 0].tolist() == [[0x7C00, 0x7FFF, 0x7C00, 1]] * WARPS


LDMATRIX = r"""
extern "C" __global__ void k(const unsigned* in, unsigned* out, const int* row) {
    __shared__ __align__(16) unsigned s[BYTES / 4];
    for (int i = threadIdx.x; i < BYTES / 4; i += blockDim.x) s[i] = in[i];
    __syncthreads();
    unsigned r[4] = {0, 0, 0, 0}, from = (unsigned)__cvta_generic_to_shared(s) + row[threadIdx.x];
    asm volatile("ldmatrix.sync.aligned.m8n8.x" "N" "TRANS.shared.b16 REGS, [%N];" : OUTS : "r"(from));
    for (int i = 0; i < 4; ++i) out[threadIdx.x * 4 + i] = r[i];
}
"""


@pytest.mark.parametrize("turn", [False, True])
@pytest.mark.parametrize("count", [1, 2, 4])
@pytest.mark.parametrize("pitch,conflict", [(16, 1), (128, 8), (144, 1)])
def test_ldmatrix_distributes_rows_and_counts_wavefronts(count, turn, pitch, conflict):
    source = LDMATRIX.replace('"N"', str(count)).replace('x" ' + str(count) + ' "', f"x{count}")
    source = source.replace("REGS", "{" + ", ".join(f"%{i}" for i in range(count)) + "}").replace("%N", f"%{count}")
    source = source.replace("OUTS", ", ".join(f'"=r"(r[{i}])' for i in range(count)))
    source = source.replace("TRANS", ".trans" if turn else "").replace("BYTES", str(32 * pitch))
    halves = np.random.default_rng(1).integers(0, 2**16, 16 * pitch).astype(np.uint16)
    order = np.random.default_rng(2).permutation(32)
    if pitch == 16:
        order = np.arange(32)
    rows = np.where(np.arange(32) < 8 * count, order * pitch, -(1 << 20) + 1)  # others' addresses do not matter
    out = np.zeros((64, 4), np.uint32)
    found = Device(source).launch("k", 1, 64, halves.view(np.uint32), out, np.tile(rows, 2).astype(np.int32))
    for lane in range(64):
        for m in range(4):
            want = 0
            if m < count:
                matrix = [halves[rows[8 * m + i] // 2 :][:8] for i in range(8)]
                g, t = lane % 32 // 4, lane % 4
                pair = [matrix[2 * t][g], matrix[2 * t + 1][g]] if turn else matrix[g][2 * t : 2 * t + 2]
                want = int(pair[0]) | int(pair[1]) << 16
            assert out[lane, m] == want, (lane, m)
    (line,) = (each for each in found.lines if "ldmatrix" in each.text)
    assert (line.kind, line.width, line.requests, line.lanes) == ("shared load", 16, 2, 16 * count)
    if conflict == 8 or pitch == 16:
        assert (line.wavefronts, line.ideal_wavefronts) == (2 * count * conflict, 2 * count)


TILE = r"""
typedef unsigned u;
extern "C" __global__ void k(const unsigned short* a, const unsigned short* b, const CT* c, DT* d) {
#if SHARED
    __shared__ __align__(32) unsigned short sa[16 * LD], sb[16 * LD]; __shared__ __align__(32) CT sc[16 * LD];
    __shared__ __align__(32) DT sd[16 * LD];
    for (int i = threadIdx.x; i < 16 * LD; i += 32) {
        sa[i] = a[blockIdx.x * 16 * LD + i]; sb[i] = b[blockIdx.x * 16 * LD + i]; sc[i] = c[blockIdx.x * 16 * LD + i];
        sd[i] = d[blockIdx.x * 16 * LD + i]; }
    __syncwarp();
    u pa = (u)__cvta_generic_to_shared(sa), pb = (u)__cvta_generic_to_shared(sb), pc = (u)__cvta_generic_to_shared(sc),
      pd = (u)__cvta_generic_to_shared(sd);
#else
    const void *pa = a + blockIdx.x * 16 * LD, *pb = b + blockIdx.x * 16 * LD, *pc = c + blockIdx.x * 16 * LD;
    void* pd = d + blockIdx.x * 16 * LD;
#endif
    u A[8], B[8]; CR C[NC]; DR D[ND];
    LOADA
    LOADB
    LOADC
    MULTIPLY
    STORED
#if SHARED
    __syncwarp();
    for (int i = threadIdx.x; i < 16 * LD; i += 32) d[blockIdx.x * 16 * LD + i] = sd[i];
#endif
}
"""


def tiles(space: str, la: str, lb: str, lc: str, added: str, result: str, pitch: int) -> Device:
    """A kernel of wmma instructions, as <mma.h> emits them."""
    register = {"f16": "r", "f32": "f"}
    nc, nd = (8 if each == "f32" else 4 for each in (added, result))
    dotted, pointer = (f".{space}" if space else ""), ("r" if space == "shared" else "l")

    def vector(start: int, count: int) -> str:
        return "{" + ", ".join(f"%{start + i}" for i in range(count)) + "}"

    def load(name: str, layout: str, kind: str, count: int, which: str, of: str) -> str:
        outs = ", ".join(f'"={which}"({name.upper()}[{i}])' for i in range(count))
        opcode = f"wmma.load.{name}.sync.aligned.{layout}.m16n16k16{dotted}.{kind}"
        text = f"{opcode} {vector(0, count)}, [%{count}], %{count + 1};"
        return f'asm volatile("{text}" : {outs} : "{pointer}"({of}), "r"(LD));'

    def ins(name: str, count: int, which: str) -> str:
        return ", ".join(f'"{which}"({name}[{i}])' for i in range(count))

    outs = ", ".join(f'"={register[result]}"(D[{i}])' for i in range(nd))
    opcode = f"wmma.mma.sync.aligned.{la}.{lb}.m16n16k16.{result}.{added}"
    parts = ", ".join((vector(0, nd), vector(nd, 8), vector(nd + 8, 8), vector(nd + 16, nc)))
    values_in = f"{ins('A', 8, 'r')}, {ins('B', 8, 'r')}, {ins('C', nc, register[added])}"
    product = f'asm volatile("{opcode} {parts};" : {outs} : {values_in});'
    opcode = f"wmma.store.d.sync.aligned.{lc}.m16n16k16{dotted}.{result} [%0], {vector(2, nd)}, %1;"
    registers = ins("D", nd, register[result])
    store = f'asm volatile("{opcode}" :: "{pointer}"(pd), "r"(LD), {registers} : "memory");'
    source = TILE.replace("LOADA", load("a", la, "f16", 8, "r", "pa")).replace(
        "LOADB", load("b", lb, "f16", 8, "r", "pb")
    )
    source = source.replace("LOADC", load("c", lc, added, nc, register[added], "pc"))
    source = source.replace("MULTIPLY", product).replace("STORED", store)
    kinds = {"f16": ("unsigned short", "u"), "f32": ("float", "float")}
    names = {"CT": kinds[added][0], "CR": kinds[added][1], "DT": kinds[result][0], "DR": kinds[result][1]}
    options = [f"-DLD={pitch}", f"-DNC={nc}", f"-DND={nd}", f"-DSHARED={int(space == 'shared')}"]
    for name, kind in names.items():
        source = source.replace(f"{name} ", f"{kind} ").replace(f"{name}*", f"{kind}*")
    return Device(source, options=options)


# The accesses that ptxas makes for each load and store on sm_90: (requests, bytes per lane) for each warp.
ACCESSES = {
    ("load", "a", "global"): {"row": (4, 4), "col": (4, 4)}, ("load", "a", "shared"): {"row": (1, 16), "col": (1, 16)},
    ("f32",): {"row": (4, 8), "col": (8, 4)}, ("f16",): {"row": (4, 4), "col": (4, 4)},
}  # fmt: skip


@pytest.mark.parametrize("space", ["global", "shared", ""])
@pytest.mark.parametrize("added,result", [("f32", "f32"), ("f16", "f16"), ("f16", "f32"), ("f32", "f16")])
@pytest.mark.parametrize(
    "la,lb,lc", [("row", "col", "row"), thorough("col", "row", "col"), thorough("row", "row", "col")]
)
def test_wmma_tiles_are_loaded_multiplied_and_stored(space, added, result, la, lb, lc):
    rng, pitch, count = np.random.default_rng(4), 24, 3
    device = tiles(space, la, lb, lc, added, result, pitch)
    tile = {name: rng.normal(size=(count, 16, pitch)) for name in "abc"}
    raw = {name: bits(tile[name], kind) for name, kind in (("a", "f16"), ("b", "f16"), ("c", added))}
    d = np.full((count, 16, pitch), 7, bits(np.zeros(1), result).dtype)
    found = device.launch("k", count, 32, raw["a"], raw["b"], raw["c"], d)

    def logical(each: np.ndarray, layout: str) -> np.ndarray:
        whole = codes(each)[:, :, :16]
        return np.ascontiguousarray(whole if layout == "row" else whole.swapaxes(1, 2))

    parts = (logical(raw[name], layout) for name, layout in (("a", la), ("b", lb), ("c", lc)))
    assert (logical(d, lc) == tile_product(*parts, Types("f16", "f16", added, result))).all()
    assert (d[:, :, 16:] == 7).all()
    for each in found.lines:
        if "wmma." not in each.text:
            continue
        name = each.text.split("wmma.")[1].split(".")[1]
        layout = each.text.split("aligned.")[1].split(".")[0]
        kind = added if name == "c" else result
        table = ACCESSES["load", "a", space or "global"] if name in "ab" else ACCESSES[(kind,)]
        assert (each.requests, each.width) == (count * table[layout][0], table[layout][1])


def test_wmma_loads_cost_the_expected_sectors_and_wavefronts():
    """A row-major tile of halves, 16 per row: each 4-byte load takes eight rows of 16 bytes from 8 sectors."""
    found = tiles("global", "row", "col", "row", "f32", "f32", 16).launch(
        "k", 1, 32, *(np.zeros(256, np.uint16) for _ in "ab"), np.zeros(256, np.float32), np.zeros(256, np.float32)
    )
    sectors = {line.text.split("wmma.")[1][:7]: line.sectors for line in found.lines}
    # a and b: 4 loads x 8 rows; c and d: 4 x 8 rows of 32 bytes.
    assert sectors == {"load.a.": 32, "load.b.": 32, "load.c.": 32, "store.d": 32}


@pytest.mark.parametrize(
    ("matrix", "layout", "requests"), [("a", "row", 2), ("a", "col", 8), ("b", "row", 8), ("b", "col", 2)]
)
def test_bytes_of_a_tile_are_loaded_four_at_a_time_where_they_are_neighbours_along_k(matrix, layout, requests):
    opcode = f"wmma.load.{matrix}.sync.aligned.{layout}.m16n16k16.global.s8"
    source = (
        'extern "C" __global__ void k(const char* p, int* o) { int x, y;\n'
        f'asm volatile("{opcode} {{%0, %1}}, [%2], 16;" : "=r"(x), "=r"(y) : "l"(p));\n'
        "o[2 * threadIdx.x] = x; o[2 * threadIdx.x + 1] = y; }"
    )
    found = Device(source).launch("k", 1, 32, np.zeros(256, np.int8), np.zeros(64, np.int32))
    assert [line.requests for line in found.lines if "wmma" in line.text] == [requests]


@pytest.mark.parametrize("before,threads", [("if (threadIdx.x > 40) return;", 64), ("", 48)])
def test_a_matrix_instruction_without_all_lanes_is_refused(before, threads):
    source = (
        'extern "C" __global__ void k(unsigned* o) { __shared__ __align__(16) unsigned s[1024];\n'
        "for (int i = threadIdx.x; i < 1024; i += blockDim.x) s[i] = i;\n__syncthreads();" + before + "\nunsigned r;\n"
        'asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];" : "=r"(r) :'
        ' "r"((unsigned)__cvta_generic_to_shared(s) + threadIdx.x * 16)); o[threadIdx.x] = r; }'
    )
    with pytest.raises(WarpMismatch) as caught:
        Device(source).launch("k", 1, threads, np.zeros(64, np.uint32))
    assert caught.value.where.line == 5 and caught.value.where.thread[0] >= 32


def test_unsupported_matrix_instructions_are_refused_by_name():
    source = (
        'extern "C" __global__ void k(int* o) {\nasm volatile("mma.sp.sync.aligned.m16n8k128.row.col.s32.s4.s4.s32'
        ' {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9,%10,%11}, {%0,%1,%2,%3}, %4, 0x0;" : "+r"(o[0]), "+r"(o[1]), "+r"(o[2]),'
        ' "+r"(o[3]) : "r"(0), "r"(0), "r"(0), "r"(0), "r"(0), "r"(0), "r"(0), "r"(0)); }'
    )
    with pytest.raises(UnsupportedInstruction, match=r"mma\.sp\.sync\S*k128\S* is not supported") as caught:
        Device(source).kernel("k")
    assert caught.value.where.line == 2
