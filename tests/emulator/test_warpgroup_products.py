"""wgmma: operands by descriptor in every layout, and the faults of using shared memory and registers too early."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from harness import Device
from tools.thorough import sparse

from climb.emulator import (
    AsyncRace,
    EmulatorError,
    Misaligned,
    MissingProxyFence,
    OutOfBounds,
    PendingProduct,
    Race,
    UnfencedProduct,
    WarpMismatch,
)
from climb.emulator.checks import enabled
from climb.emulator.runtime.tensor_cores import descriptors
from climb.emulator.runtime.tensor_cores.arithmetic import Types, warpgroup_product

REGISTERS = ", ".join(f"%{n}" for n in range(64))
ACCUMULATORS = ", ".join(f'"+f"(D[{n}])' for n in range(64))
TAIL = ' : ACCUMULATORS : "l"(left + 2 * k), "l"(right + 2 * k) : "memory");'
# A 128 x 128 tile of a product, k = 64, by two warpgroups: rows of 128 bytes, swizzled by the threads that store them.
TILE = (
    r"""
typedef unsigned long long u64;
__device__ u64 describe(const void* at) {
    return (u64)(unsigned)__cvta_generic_to_shared(at) >> 4 | 1ull << 16 | (1024ull >> 4) << 32 | 1ull << 62;
}
extern "C" __global__ void tile(const uint4* a, const uint4* b, float* d) {
    __shared__ __align__(1024) uint4 sa[128 * 8], sb[128 * 8];
    int t = threadIdx.x;
    a += blockIdx.x * 128 * 8;
    for (int i = t; i < 128 * 8; i += 256) {
        int to = i / 8 * 8 + (i % 8 ^ i / 8 % 8);
        sa[to] = a[i];
        sb[to] = b[i];
    }
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    float D[64];
    for (int i = 0; i < 64; ++i) D[i] = 1.0f;
    u64 left = describe(sa + t / 128 * 64 * 8), right = describe(sb);
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
    for (int k = 0; k < 4; ++k)
        asm volatile("wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {REGISTERS}, %64, %65, 1, 1, 1, 0, 0;"TAIL
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
    float* out = d + (blockIdx.x * 128 + t / 128 * 64 + t % 128 / 32 * 16 + t % 32 / 4) * 128 + t % 4 * 2;
    for (int i = 0; i < 64; ++i) out[i / 2 % 2 * 8 * 128 + i / 4 * 8 + i % 2] = D[i];
}
"""
).replace("REGISTERS", REGISTERS).replace("TAIL", TAIL).replace("ACCUMULATORS", ACCUMULATORS)  # fmt: skip


def run(source: str, grid: int = 2) -> tuple[np.ndarray, np.ndarray, np.ndarray, Any]:
    """Launch the tile kernel on random halves. Returns A, B, D and the counters."""
    rng = np.random.default_rng(7)
    a, b = (rng.normal(size=shape).astype(np.float16) for shape in ((grid * 128, 64), (128, 64)))
    d = np.zeros((grid * 128, 128), np.float32)
    counters = Device(source, arch="sm_90a").launch("tile", grid, 256, a, b, d)
    return a, b, d, counters


def line_of(text: str, source: str = TILE) -> int:
    """The line of the source that contains a text."""
    return next(n for n, line in enumerate(source.split("\n"), 1) if text in line)


def test_a_swizzled_tile_is_multiplied_and_counted():
    a, b, d, counters = run(TILE)
    want = np.ones((4, 64, 128), np.float32).view(np.uint32)
    for k in range(0, 64, 16):
        left = a[:, k : k + 16].reshape(4, 64, 16).view(np.uint16)
        right = np.broadcast_to(np.ascontiguousarray(b[:, k : k + 16].T).view(np.uint16), (4, 16, 128))
        want = warpgroup_product(left, right, want, Types("f16", "f16", "f32", "f32"))
    assert (d.reshape(4, 64, 128).view(np.uint32) == want).all()
    np.testing.assert_allclose(d, a.astype(float) @ b.astype(float).T + 1, rtol=2e-5, atol=2e-5)
    (line,) = counters.product_lines
    assert (line.instruction, line.instructions, line.flops) == ("wgmma.m64n128k16.f32.f16.f16", 64, 2 * 256 * 128 * 64)
    assert line.line == line_of("wgmma.mma_async")
    assert "64 wgmma.m64n128k16.f32.f16.f16, 4194304 operations" in str(counters)


WAIT = '    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");\n'
COMMIT = '    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");\n'
FENCE = '    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");\n'
PROXY = '    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");\n'
FAULTS = {
    "no wait": (WAIT, "\n", PendingProduct, "D[i];\n}", r"no wgmma\.wait_group has covered its group"),
    "no commit": (COMMIT, "\n", PendingProduct, "D[i];\n}", r"no wgmma\.commit_group has closed its group"),
    "a wait that leaves one group open": (
        WAIT, WAIT.replace(" 0;", " 1;"), PendingProduct, "D[i];\n}", "left the latest group open",
    ),
    "no fence": (FENCE, "\n", UnfencedProduct, "wgmma.mma_async", "the first of its warpgroup"),
    "a fence on one path only": (
        FENCE, "    if (d[0] > 5) " + FENCE.lstrip(), UnfencedProduct, "wgmma.mma_async", "the first of its warpgroup",
    ),
    "a write after the fence": (
        FENCE, FENCE[:-1] + " D[3] *= d[0];\n", UnfencedProduct, "wgmma.mma_async", r"test\.cu:20: .*D\[3\]",
    ),
    "a write to an operand before the wait": (
        COMMIT, COMMIT + "    sb[t].x = 0;\n", AsyncRace, "sb[t].x = 0", "matrix product .* reads.*in flight",
    ),
    "a write to the first operand before the wait": (
        WAIT, "    sa[t].y = 0;\n" + WAIT, AsyncRace, "sa[t].y = 0", "matrix product .* reads.*in flight",
    ),
    "no proxy fence": (PROXY, "\n", MissingProxyFence, "wgmma.mma_async", r"writes at test\.cu:1[34]"),
    "no barrier": ("__syncthreads();", ";", Race, "wgmma.mma_async", "thread"),
    "a start inside the pattern": (
        "describe(sb)", "describe(sb + 8)", Misaligned, "wgmma.mma_async", "line 1 of the pattern of its swizzle",
    ),
    "a start behind the array": ("describe(sb)", "describe(sb + 64 * 16)", OutOfBounds, "wgmma.mma_async", "of sb"),
    "half a warpgroup": (
        FENCE, FENCE + "    if (t >= 192) return;\n", WarpMismatch, "wgmma.mma_async", "128-255; 64 are here: 128-191",
    ),
    "descriptors that differ": (
        "describe(sb)", "describe(sb) + (t & 64)", WarpMismatch, "wgmma.mma_async", "descriptor of b is not the same",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", sparse(FAULTS))
def test_planted_faults_are_named(name: str) -> None:
    old, new, error, where, message = FAULTS[name]
    assert TILE.count(old) == 1
    source = TILE.replace(old, new)
    with pytest.raises(EmulatorError, match=f"(?s){message}") as caught:
        run(source, 1)
    assert type(caught.value) is error
    last = where.split("\n")[0]
    lines = [n for n, line in enumerate(source.split("\n"), 1) if last in line]
    assert caught.value.where.line in lines


@pytest.mark.parametrize("others", [COMMIT + WAIT + COMMIT, COMMIT + COMMIT], ids=["have waited", "wait later"])
@pytest.mark.parametrize("checks", [enabled.DEFAULT, enabled.NONE], ids=["with checks", "without"])
def test_the_one_warpgroup_that_uses_its_product_early_is_named(others: str, checks: frozenset[str]) -> None:
    """The last warpgroup of the last block has closed one group before its product and none after it; the others have
    closed theirs."""
    late = "blockIdx.x == 1 && t >= 128"
    source = TILE.replace(FENCE, f"    if ({late})\n" + COMMIT + FENCE)
    use = f"    if ({late} && t % 32 == 5) d[t] = D[0];\n"
    source = source.replace(COMMIT + WAIT, f"    if (!({late})) {{\n{others}    }}\n{use}{COMMIT}{WAIT}")
    with (
        enabled.checking(checks),
        pytest.raises(
            PendingProduct, match=r"at test\.cu:\d+: .*no wgmma\.commit_group has closed its group"
        ) as caught,
    ):
        run(source)
    where, product = caught.value.where, caught.value.other
    assert (where.text, where.block, where.thread, where.lanes) == (use.strip(), (1, 0, 0), (133, 0, 0), 4)
    assert "wgmma.mma_async" in product.text
    assert (product.block, product.thread, product.lanes) == ((1, 0, 0), (128, 0, 0), 1)


def test_the_write_before_an_unfenced_product_is_named_with_its_first_thread() -> None:
    with pytest.raises(UnfencedProduct) as caught:
        run(TILE.replace(FENCE, FENCE[:-1] + " D[3] *= d[0];\n"))
    write = caught.value.other
    assert (write.line, write.block, write.thread, write.lanes) == (line_of(FENCE.strip()), (0, 0, 0), (0, 0, 0), 1)


def test_warpgroups_that_issue_together_wait_apart() -> None:
    source = TILE.replace(WAIT, "    if (t < 128) {" + WAIT + "    } else {" + WAIT + "    }\n")
    assert source.count("wait_group") == 2
    assert (run(source)[2] == run(TILE)[2]).all()


@pytest.mark.parametrize("threads,message", [(192, "the block has 192 threads"), (256, "64 are here: 128-191")])
def test_a_part_of_a_warpgroup_multiplies_nothing(threads: int, message: str) -> None:
    source = TILE if threads == 192 else TILE.replace(FENCE, FENCE + "    if (t >= 192) return;\n")
    a, b, d = np.zeros((256, 64), np.float16), np.zeros((128, 64), np.float16), np.zeros((256, 128), np.float32)
    with pytest.raises(WarpMismatch, match=message):
        Device(source, arch="sm_90a").launch("tile", 2, threads, a, b, d)


def test_operands_count_as_nsight_compute_counts_them():
    """Of four products of a warpgroup with n = 128 an H200 counts 16 requests and 192 wavefronts for 24576 bytes."""
    counters = run(TILE, 1)[3]
    found = counters.total("matrix load")
    groups = 2
    assert (found.requests, found.wavefronts, found.bytes) == (16 * groups, 192 * groups, 24576 * groups)
    assert found.bank_conflicts == 0 and counters.total("shared load").requests == 0


def test_accumulators_chain_over_products_and_loops_without_waits():
    """Two products a group, the wait one group behind, and the last wait after the loop."""
    loop = TILE.replace("for (int k = 0; k < 4; ++k)\n", "for (int k = 0; k < 4; ++k) {\n")
    loop = loop.replace(COMMIT + WAIT, COMMIT + WAIT.replace(" 0;", " 1;") + "    }\n" + WAIT)
    assert (run(loop)[2] == run(TILE)[2]).all()


SMALL = (
    'asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0, %1, %2, %3}, %4, %5, 1, 1, 1, 0, 0;" '
    ': "+f"(E[0]), "+f"(E[1]), "+f"(E[2]), "+f"(E[3]) : "l"(left + 2 * k), "l"(right + 2 * k) : "memory");\n'
)


def test_registers_of_another_product_may_be_used_while_one_is_in_flight():
    """A wait that leaves one group open covers those before it, and not that one."""
    more = "float E[4] = {0, 0, 0, 0}; int k = 0;\n" + FENCE + SMALL + COMMIT + WAIT.replace(" 0;", " 1;")
    early = TILE.replace(WAIT, more)
    assert (run(early)[2] == run(TILE)[2]).all()
    with pytest.raises(PendingProduct, match=r"(?s)test\.cu:26: .*test\.cu:28 left the latest group open"):
        run(early.replace("= D[i];\n}", "= D[i] + E[0];\n}"))


def test_a_result_may_be_used_while_the_same_instruction_computes_the_next():
    """Registers move from `E` to `last` in a loop in which one product is always in flight."""
    loop = f"""
    float last[4] = {{0, 0, 0, 0}}, sum = 0;
    #pragma unroll 1
    for (int k = 0; k < 4; ++k) {{
        float E[4] = {{0, 0, 0, 0}};
        {FENCE}{SMALL}{COMMIT}
        sum += last[0];
        {WAIT}
        for (int i = 0; i < 4; ++i) last[i] = E[i];
    }}
"""
    source = TILE.replace(WAIT, WAIT + loop).replace("= D[i];\n}", "= D[i] + sum * 0;\n}")
    assert (run(source)[2] == run(TILE)[2]).all()
    with pytest.raises(PendingProduct):
        run(source.replace("sum += last[0];", "sum += last[0] + E[1];"))


@pytest.mark.parametrize("early", [False, True])
def test_a_register_that_may_hold_either_result_is_judged_by_the_one_that_it_holds(early: bool) -> None:
    """A branch decides whether `last` keeps what the product before has computed, or takes what is in flight."""
    move = (
        'asm volatile("{ .reg .pred p; setp.gt.f32 p, %1, 0f42C80000; @!p bra OVER; bar.warp.sync -1; '
        'mov.f32 %0, %2; OVER: }" : "+f"(last) : "f"(d[0] + ' + ("200" if early else "20") + '), "f"(E[0]));'
    )
    use = 'asm volatile("add.f32 %0, %0, %1;" : "+f"(sum) : "f"(last));'
    loop = f"""
    float last = 0, sum = 0;
    #pragma unroll 1
    for (int k = 0; k < 4; ++k) {{
        float E[4] = {{0, 0, 0, 0}};
        {FENCE}{SMALL}{COMMIT}
        {move}
        {use}
        {WAIT}
        last = E[0];
    }}
"""
    source = TILE.replace(WAIT, WAIT + loop).replace("= D[i];\n}", "= D[i] + sum * 0;\n}")
    if early:
        with pytest.raises(PendingProduct, match=r"no wgmma\.wait_group has covered its group") as caught:
            run(source, 1)
        assert caught.value.where.line == line_of(use, source)
    else:
        assert (run(source, 1)[2] == run(TILE, 1)[2]).all()


# Shared memory as the host has laid it out, descriptors from the host, one product a warpgroup.
LAYOUTS = {
    "f16": ("f32", 16, "{ta}, {tb}"), "bf16": ("f32", 16, "{ta}, {tb}"), "tf32": ("f32", 8, ""),
    "e4m3": ("f16", 32, ""), "s8": ("s32", 32, ""),
}  # fmt: skip
IMAGE = 12288  # bytes of an operand's image
PREFACE = r"""
typedef unsigned long long u64;
#define HEAD(W) \
    extern __shared__ __align__(1024) unsigned s[]; \
    int t = threadIdx.x, words = 2 * IMAGE / 4; \
    for (int i = t % 128; i < words; i += 128) s[t / 128 * words + i] = image[(blockIdx.x * 2 + t / 128) * words + i]; \
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); \
    __syncthreads(); \
    u64 left = da + (u64)(t / 128 * 2 * IMAGE + (unsigned)__cvta_generic_to_shared(s)) / 16; \
    u64 right = db + (u64)(t / 128 * 2 * IMAGE + IMAGE + (unsigned)__cvta_generic_to_shared(s)) / 16; \
    W D[8] = {0, 0, 0, 0, 0, 0, 0, 0}; \
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#define TAIL \
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); \
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory"); \
    for (int i = 0; i < 8; ++i) d[((blockIdx.x * 2 + t / 128) * 8 + i) * 128 + t % 128] = D[i];
"""


def layout_kernel(kind: str, ta: int, tb: int) -> str:
    """A kernel that multiplies 64 x 32 bytes and 32 bytes x 16."""
    d, k, flags = LAYOUTS[kind]
    count, word, letter = (4, "unsigned", "r") if d == "f16" else (8, *(("float", "f") if d == "f32" else ("int", "r")))
    constants = "" if d == "s32" else ", 1, 1" + (", " + flags.format(ta=ta, tb=tb) if flags else "")
    outs = ", ".join(f'"+{letter}"(D[{n}])' for n in range(count))
    vector = "{" + ", ".join(f"%{n}" for n in range(count)) + "}"
    opcode = f"wgmma.mma_async.sync.aligned.m64n16k{k}.{d}.{kind}.{kind}"
    return (
        f'extern "C" __global__ void {kind}_{ta}{tb}(const unsigned* image, u64 da, u64 db, {word}* d) {{\n'
        f"HEAD({word})\n"
        f'asm volatile("{opcode} {vector}, %{count}, %{count + 1}, 1{constants};" : {outs} : "l"(left), "l"(right) '
        f': "memory");\nTAIL }}\n'
    )


CASES = [
    ("f16", 0, 0, 128, 0), ("f16", 1, 1, 128, 0), ("f16", 0, 1, 64, 0), ("f16", 1, 0, 0, 0), ("bf16", 1, 1, 32, 0),
    ("tf32", 0, 0, 64, 0), ("e4m3", 0, 0, 32, 0), ("s8", 0, 0, 0, 0), ("f16", 0, 0, 128, 3),
]  # fmt: skip


@pytest.fixture(scope="module")
def layouts() -> Device:
    kernels = sorted({(kind, ta, tb) for kind, ta, tb, *_ in CASES})
    return Device(
        PREFACE + "".join(layout_kernel(*each) for each in kernels), options=[f"-DIMAGE={IMAGE}"], arch="sm_90a"
    )


def strides(swizzle: int, transposed: bool, rows: int) -> tuple[int, int]:
    """Leading and stride bytes of an operand without gaps; a row of a swizzle's pattern has that many bytes."""
    if swizzle == 0:  # core matrices of 128 bytes
        return (16 * rows, 128) if transposed else (128, 256)
    pattern = 8 * swizzle
    return pattern, pattern * max(1, 2 * rows // swizzle) if transposed else pattern


@pytest.mark.parametrize("kind,ta,tb,swizzle,base", CASES)
def test_operands_are_read_in_every_layout(
    kind: str, ta: int, tb: int, swizzle: int, base: int, layouts: Device
) -> None:
    d_kind, k, _ = LAYOUTS[kind]
    size = 32 // k
    rng = np.random.default_rng(11)
    code = descriptors.SWIZZLES.index(swizzle)
    words, places, matrices = [], [], []
    for rows, transposed in ((64, ta), (16, tb)):
        leading, stride = strides(swizzle, bool(transposed), rows)
        start = base * 128 if swizzle else 0
        word = start >> 4 | (leading >> 4) << 16 | (stride >> 4) << 32 | base << 49 | code << 62
        words.append(word)
        found = descriptors.decode(np.array([word], np.uint64))
        places.append(descriptors.pieces(found, rows, k, not transposed, size)[0])
        raw = rng.integers(-3, 4, (4, rows, k))
        matrices.append(raw)
    assert all(place.max() + 16 <= IMAGE and len(np.unique(place)) == place.size for place in places)
    encode = {"f16": np.float16, "tf32": np.float32, "s8": np.int8}
    image = np.zeros((4, 2, IMAGE), np.uint8)
    for operand, (place, raw, transposed) in enumerate(zip(places, matrices, (ta, tb), strict=True)):
        if kind in encode:
            codes = raw.astype(encode[kind])
        elif kind == "bf16":
            codes = (raw.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
        else:
            codes = np.array([0xC4, 0xC0, 0xB8, 0, 0x38, 0x40, 0x44], np.uint8)[raw + 3]
        codes = np.ascontiguousarray(codes.swapaxes(1, 2) if transposed else codes)
        rows = codes.view(np.uint8).reshape(4, *place.shape, 16)
        image[:, operand, place[..., None] + np.arange(16)] = rows
    dtype = {"f32": np.float32, "s32": np.int32, "f16": np.uint32}[d_kind]
    d = np.zeros((4, 8, 128), dtype)
    arguments = [np.uint64(word) for word in words]
    layouts.launch(f"{kind}_{ta}{tb}", 2, 256, image.view(np.uint32), *arguments, d, shared=4 * IMAGE)
    want = matrices[0] @ matrices[1].swapaxes(1, 2)
    thread, index = np.arange(128)[None], np.arange(4 if d_kind == "f16" else 8)[:, None]
    row = thread // 32 * 16 + thread % 32 // 4
    if d_kind == "f16":
        pairs = d[:, :4].view(np.float16).reshape(4, 4, 128, 2)
        for half in range(2):
            at = want[:, row + index % 2 * 8, index // 2 * 8 + 2 * (thread % 4) + half]
            assert (pairs[..., half] == at).all()
    else:
        assert (d == want[:, row + index // 2 % 2 * 8, index // 4 * 8 + 2 * (thread % 4) + index % 2]).all()
    assert size * k == 32
