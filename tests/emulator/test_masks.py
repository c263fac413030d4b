"""Lanes that a mask marks get the values, counts and errors of lanes that are gathered; so do loads by whole rows."""

from __future__ import annotations

import numpy as np
import pytest
from harness import Device

from climb.emulator import load
from climb.emulator.counters import address_patterns
from climb.emulator.errors import OutOfBounds, Uninitialised
from climb.emulator.ptx.control_flow import Block, post_dominators
from climb.emulator.runtime import global_memory
from climb.emulator.simt import groups, masks
from climb.toolchain import compile_cuda

SOURCE = r"""
__constant__ float weights[64] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
extern "C" __global__ void stencil(const float* in, float* out, int n, int m)
{
    int x = threadIdx.x, y = blockIdx.x * blockDim.y + threadIdx.y, z = blockIdx.y;
    float sum = 0;
    for (int i = -1; i <= 1; ++i)
        for (int j = -1; j <= 1; ++j)
            for (int k = -2; k <= 2; ++k)
                if (z + i >= 0 && z + i < m && y + j >= 0 && y + j < n && x + k >= 0 && x + k < n)
                    sum += in[((z + i) * n + y + j) * n + x + k] * weights[k + 2];
    out[(z * n + y) * n + x] = sum;
}
extern "C" __global__ void either(const float* in, const int* which, float* out, int n, int m)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float a = 1, b = 2, c = 3;
    for (int round = 0; round < m; ++round) {
        if (blockIdx.x % 3 == round % 3 || (which[i] + round) % 4) a += in[i];
        if (which[i] % 5 < 3) { b = in[n - 1 - i]; if (i % 7) c += b; else c = in[which[i]]; }
        else if (threadIdx.x % 32 < 29) { a -= 1; b += in[2 * (i / 2)]; }
        out[i] = a + b * c + weights[which[i] % 64] * (which[i] % 3 ? in[i] : weights[which[i] % 7]);
        if (blockIdx.x > 3 && which[i] % 4 < 3) c += in[i] * weights[round % 8];
        out[i] += c;
    }
}
extern "C" __global__ void wide(const float4* in, const short* narrow, float* out, int n, int m)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float4 v = make_float4(1, 2, 3, 4);
    short s = 5;
    if (i % 10 < m) { v = in[i]; s = narrow[i + 1]; }
    out[i] = v.x + v.y * v.z - v.w + s;
}
extern "C" __global__ void outside(const float* in, float* out, int n, int m)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float v = 0;
    if (i % 33 < 20) v = in[i + m];
    out[i] = v;
}
extern "C" __global__ void beyond(const float* in, float* out, int n, int m)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float v = 0;
    if (i % 33 < m) v = (in + i)[8];  // the 8 is an offset of the instruction
    out[i] = v;
}
extern "C" __global__ void indexed(const float* in, const int4* which, float* out, int n, int m)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int4 at = which[i ^ 1];
    out[i] = in[at.x] + in[at.y] * in[at.z] - in[at.w];
}
extern "C" __global__ void stores_inside(const float* in, float* out, int n, int m)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float x = 1;
    if (i % 3 < m) {
        x += in[i];
        if (in[n - 1 - i] + 1 > x) { out[n + i] = x; x = x * in[i / 2] + 3; }
        x += 1;
    }
    if (i % 5 < m) x += in[i];
    if (i % 7 < m) while (x < 8 + in[i]) x *= 1.5f;  // a loop of one block
    out[i] = x;
}
extern "C" __global__ void slanted(const float* in, float* out, int n, int m)
{
    int x = threadIdx.x, y = blockIdx.x * blockDim.y + threadIdx.y;
    float sum = 0;
    if (x >= m) sum = in[y * n + x];  // warps begin at different places of a sector
    out[y * 32 + x] = sum;
}
extern "C" __global__ void same_rows(const float* in, float* out, int n, unsigned m)
{
    int x = blockIdx.x % 3 * 16 + threadIdx.x, y = threadIdx.y;
    float sum = 0;
    for (unsigned k = 0; k < m; ++k) sum += in[y * n + k] * in[k * n + x] + in[(threadIdx.x + k * n) % 64u];
    out[(blockIdx.x * 16 + y) * 16 + threadIdx.x] = sum;
}
"""


COMPILED = compile_cuda(SOURCE, filename="test.cu")
NEVER = 1 << 40
RNG = np.random.default_rng(7)
STENCIL = (RNG.random(6 * 32 * 32, np.float32), np.zeros(6 * 32 * 32, np.float32), 32, 6)
MIXED = (
    RNG.random(8 * 128, np.float32), RNG.integers(0, 1000, 8 * 128).astype(np.int32), np.zeros(8 * 128, np.float32),
    8 * 128, 3,
)  # fmt: skip
INDEXED = RNG.random(64, np.float32), RNG.integers(0, 64, 2048, np.int32), np.zeros(512, np.float32), 0, 0
WIDE = (
    RNG.random(4 * 512, np.float32), RNG.integers(-99, 99, 513).astype(np.int16), np.zeros(512, np.float32), 512, 6,
)  # fmt: skip
LAUNCHES = {
    "stencil": ((8, 6), (32, 4), STENCIL),
    "either": (8, 128, MIXED),
    "wide": (4, 128, WIDE),
    "indexed": (4, 128, INDEXED),
    "stores_inside": (4, 128, (RNG.random(512, np.float32), np.zeros(1024, np.float32), 512, 2)),
    "slanted": (8, (32, 4), (RNG.random(32 * 35, np.float32), np.zeros(32 * 32, np.float32), 35, 3)),
    "same_rows": (6, (16, 16), (RNG.random(64 * 64, np.float32), np.zeros(6 * 256, np.float32), 64, 41)),
}  # fmt: skip


def launch(monkeypatch: pytest.MonkeyPatch, kernel: str, pays: bool, share: float = 0.0) -> tuple:
    """Launch with masks, whole rows and known addresses wherever possible, or nowhere: the arrays, and the counters."""
    grid, block, given = LAUNCHES[kernel]
    with monkeypatch.context() as patch:
        patch.setattr(masks, "FEWEST", 1 if pays else NEVER)
        patch.setattr(masks, "SHARE", share)
        patch.setattr(address_patterns, "SHARED", 1 if pays else NEVER)
        if not pays:
            patch.setattr(address_patterns, "_entry", lambda _: (None, address_patterns._Origin(), 0))
        arguments = [each.copy() if isinstance(each, np.ndarray) else each for each in given]
        outcome = Device.of(COMPILED).launch(kernel, grid, block, *arguments)
    return arguments, outcome


def noted(monkeypatch: pytest.MonkeyPatch, owner: object, name: str) -> list[object]:
    """A list to which each call of a function adds its result."""
    results, function = [], getattr(owner, name)

    def call(*args: object, **options: object) -> object:
        results.append(function(*args, **options))
        return results[-1]

    monkeypatch.setattr(owner, name, call)
    return results


@pytest.mark.parametrize("share", [0.0, 0.6])
@pytest.mark.parametrize("kernel", LAUNCHES)
def test_masks_and_whole_rows_change_neither_values_nor_counts(
    monkeypatch: pytest.MonkeyPatch, kernel: str, share: float
) -> None:
    wanted, expected = launch(monkeypatch, kernel, False)
    found, counters = launch(monkeypatch, kernel, True, share)
    assert counters == expected
    for one, other in zip(found, wanted, strict=True):
        assert np.array_equal(one, other)


def test_the_stencil_is_right(monkeypatch: pytest.MonkeyPatch) -> None:
    loads = noted(monkeypatch, global_memory, "load_masked")
    (given, found, *_), _ = launch(monkeypatch, "stencil", True)
    assert sum(each is not None for each in loads) > len(loads) / 2 > 10  # most need not be gathered
    padded = np.pad(given.reshape(6, 32, 32).astype(np.float64), ((1, 1), (1, 1), (2, 2)))
    expected = sum(
        (k + 1) * padded[i : i + 6, j : j + 32, k : k + 32] for i in range(3) for j in range(3) for k in range(5)
    )
    assert np.allclose(found.reshape(6, 32, 32), expected, rtol=1e-5)


def test_lanes_that_meet_others_leave_the_group_that_a_mask_has_divided(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    left = noted(monkeypatch, groups.Group, "outside")
    launch(monkeypatch, "either", True)
    assert left


def test_warps_with_the_same_rows_load_them_once(monkeypatch: pytest.MonkeyPatch) -> None:
    few = noted(monkeypatch, address_patterns.Part, "few")
    launch(monkeypatch, "same_rows", True)
    assert sum(each is not None for each in few) > 10


@pytest.mark.parametrize(("kernel", "m"), [("outside", 20), ("outside", -1), ("outside", 1 << 20), ("beyond", 20)])
def test_a_load_out_of_bounds_names_the_lane_that_makes_it(
    monkeypatch: pytest.MonkeyPatch, kernel: str, m: int
) -> None:
    monkeypatch.setitem(LAUNCHES, kernel, (4, 128, (np.ones(512, np.float32), np.ones(512, np.float32), 512, m)))
    texts = []
    for pays in (False, True):
        with pytest.raises(OutOfBounds) as caught:
            launch(monkeypatch, kernel, pays)
        texts.append(str(caught.value))
    assert texts[0] == texts[1]


def test_lanes_that_are_not_marked_may_be_out_of_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    given = RNG.random(512, np.float32)
    last = max(i for i in range(512) if i % 33 < 20)
    monkeypatch.setitem(LAUNCHES, "outside", (4, 128, (given, np.zeros(512, np.float32), 512, 511 - last)))
    loads = noted(monkeypatch, global_memory, "load_masked")
    (_, found, *_), _ = launch(monkeypatch, "outside", True)
    place = np.arange(512)
    assert np.array_equal(found, np.where(place % 33 < 20, np.roll(given, last - 511), 0))
    assert any(each is not None for each in loads)


def test_reads_of_bytes_that_nothing_has_written_are_found_under_a_mask(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(masks, "FEWEST", 1)
    device = Device.of(COMPILED)
    fresh = device.memory.allocate(2048, "fresh", initialised=False)
    fresh.written[:1024] = 1
    loads = noted(monkeypatch, global_memory, "load_masked")
    device.launch("outside", 2, 128, fresh, np.zeros(256, np.float32), 256, 0)
    assert any(each is not None for each in loads)
    with pytest.raises(Uninitialised, match="fresh"):
        device.launch("outside", 4, 128, fresh, np.zeros(512, np.float32), 512, 0)


def test_lanes_are_marked_where_all_blocks_up_to_the_join_may_run_under_a_mask() -> None:
    """Not where one of them stores, however deep in the branch it is."""
    joined = refused = 0
    for name in ("stencil", "either", "wide", "outside", "stores_inside"):
        blocks = load(COMPILED.ptx).kernel(name).code.blocks
        joins = post_dominators(blocks)
        for block in blocks:
            if block.guard is None:
                assert block.join == -1
                continue
            inside, forward = _before(joins[block.index], block, blocks)
            fits = forward and all(blocks[each].maskable for each in inside)
            assert block.join == (joins[block.index] if fits else -1), (name, block.index)
            joined += fits
            refused += not fits and all(blocks[each].maskable for each in inside & set(block.successors))
    assert joined > 3 and refused > 0


def _before(join: int, branch: Block, blocks: list[Block]) -> tuple[set[int], bool]:
    """The blocks that can run between a branch and its join, and whether every step leads forward, up to the join."""
    steps = {(branch.index, each) for each in branch.successors}
    while True:
        more = {(node, each) for _, node in steps if node != join for each in blocks[node].successors}
        if more <= steps:
            break
        steps |= more
    forward = all(before < node <= join for before, node in steps)
    return {node for _, node in steps} - {join}, forward
