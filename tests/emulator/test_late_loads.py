"""Loads of shared memory that are still on their way when their thread hands the memory back to a bulk copy."""

from __future__ import annotations

import re

import numpy as np
import pytest
from harness import Device
from hopper_kernels import FOLDER
from tools.thorough import sparse, thorough

from climb.emulator import LateLoad

#: Two warps combine the elements of tiles that a third copies to a ring of slots, and hand back each slot.
RING = (
    (FOLDER / "ptx.cuh").read_text()
    + r"""
constexpr int TILE = 256, BYTES = 4 * TILE, SLOTS = 1;
extern "C" __global__ void k(const float* in, unsigned* out, int tiles) {
    __shared__ alignas(128) float slot[SLOTS][TILE];
    __shared__ Word full[SLOTS], empty[SLOTS];
    int t = threadIdx.x;
    if (t == 0) {
        for (int s = 0; s < SLOTS; ++s) { init(&full[s], 1); init(&empty[s], 2); }
        fence_init();
    }
    __syncthreads();
    if (t >= 64) {
        if (t == 64)
            for (int i = 0; i < tiles; ++i) {
                int s = i % SLOTS;
                wait(&empty[s], ~(i / SLOTS) & 1);
                expect(&full[s], BYTES);
                copy_in(slot[s], in + (blockIdx.x * tiles + i) * TILE, BYTES, &full[s]);
            }
        return;
    }
    unsigned sum = 0;
    unsigned mine = 0;
    for (int i = 0; i < tiles; ++i) {
        int s = i % SLOTS;
        wait(&full[s], i / SLOTS & 1);
        float value[4];
        LOADS
        RELEASE
        for (int j = 0; j < 4; ++j) sum = 3 * sum + (unsigned)value[j];
    }
    out[blockIdx.x * 64 + t] = sum;
}
"""
)
SCALARS = "for (int j = 0; j < 4; ++j) value[j] = slot[s][64 * j + t];"
VECTOR = """float4 four = *(const float4*)&slot[s][4 * t];
        value[0] = four.x; value[1] = four.y; value[2] = four.z; value[3] = four.w;"""
WARP = "__syncwarp(); if (t % 32 == 0) arrive(&empty[s]);"
GENERIC = r"""for (int j = 0; j < 4; ++j)
            asm volatile("ld.f32 %0, [%1];" : "=f"(value[j]) : "l"(&slot[s][64 * j + t]));"""
MATRIX = r"""asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
            : "=f"(value[0]), "=f"(value[1]), "=f"(value[2]), "=f"(value[3])
            : "r"(shared_address(&slot[s][t / 32 * 128 + t % 32 * 4])));"""
NAMED = 'asm volatile("bar.sync 1, 64;" ::: "memory"); if (t % 32 == 0) arrive(&empty[s]);'
ALONE = ("init(&empty[s], 2)", "init(&empty[s], 1)")  # the slot is handed back by one thread for both warps
FOR_ALL = 'asm volatile("bar.sync 1, 64;" ::: "memory"); if (t == 0) arrive(&empty[s]);'
EACH = ("init(&empty[s], 2)", "init(&empty[s], 64)")


def _text(loads: str, release: str, edits: tuple[tuple[str, str], ...] = ()) -> str:
    text = RING.replace("LOADS", loads).replace("RELEASE", release)
    for old, new in edits:
        assert old in text
        text = text.replace(old, new)
    return text


def _run(loads: str, release: str, blocks: int = 3, tiles: int = 5, edits: tuple[tuple[str, str], ...] = ()) -> None:
    data = np.random.default_rng(0).integers(0, 9, (blocks, tiles, 256)).astype(np.float32)
    out = np.zeros((blocks, 64), np.uint32)
    Device(_text(loads, release, edits)).launch("k", blocks, 96, data, out, tiles)
    rows = data.reshape(blocks, tiles, 64, 4) if loads == VECTOR else data.reshape(blocks, tiles, 4, 64).swapaxes(2, 3)
    want = np.zeros_like(out)
    for step in range(tiles):
        for each in range(4):
            want = 3 * want + rows[:, step, :, each].astype(np.uint32)
    assert (out == want).all()


@pytest.mark.parametrize("loads", [SCALARS, VECTOR, GENERIC, MATRIX], ids=["scalars", "vector", "generic", "matrix"])
@pytest.mark.parametrize("blocks", [thorough(1), 3])
@pytest.mark.parametrize(
    "release,edits",
    [(WARP, ()), (NAMED, ()), (FOR_ALL, (ALONE,)), ("arrive(&empty[s]);", (EACH,))],
    ids=["warp", "named", "for_all", "each"],
)
def test_loads_whose_values_nothing_uses_before_the_arrival_are_found(loads, release, edits, blocks):
    with pytest.raises(LateLoad, match="the load may still be on its way") as caught:
        _run(loads, release, blocks, edits=edits)
    text = _text(loads, release, edits).splitlines()
    copied = next(n for n, line in enumerate(text) if "cp.async.bulk.shared" in line)
    loaded = next(n for n, line in enumerate(text) if "float value[4];" in line) + 1
    error = caught.value
    assert copied < error.where.line <= copied + 4 and error.where.thread == (64, 0, 0)
    assert loaded < error.other.line <= loaded + 3 and error.name == "slot"
    assert re.search(r"(?s)look at: use the loaded values.*fence\.proxy\.async", str(error))


@pytest.mark.parametrize("loads", sparse((SCALARS, VECTOR, GENERIC)), ids=["scalars", "vector", "generic"])
@pytest.mark.parametrize("before", [
    "fence_proxy();", "__threadfence_block();",
    "for (int j = 0; j < 4; ++j) asm volatile(\"add.f32 %0, %0, 0f00000000;\" : \"+f\"(value[j]) :: \"memory\");",
], ids=["proxy_fence", "fence", "use"])  # fmt: skip
def test_a_fence_or_a_use_before_the_arrival_ends_the_loads(loads, before):
    for blocks in (1, 3):
        _run(loads, before + WARP, blocks)
    _run(loads, before + FOR_ALL, edits=(ALONE,))
    _run(loads, before + "arrive(&empty[s]);", edits=(EACH,))


def test_a_load_of_the_first_byte_of_shared_memory_is_found():
    """The only load that is not over is of address 0."""
    fenced = "for (int j = 0; j < 4; ++j) value[j] = slot[s][64 * j + t]; fence_proxy();"
    _run(fenced, WARP)
    late = 'if (t == 0) asm volatile("ld.shared.f32 %0, [0];" : "=f"(value[0]) :: "memory");'
    with pytest.raises(LateLoad) as caught:
        _run(fenced + late, WARP)
    assert caught.value.other.thread == (0, 0, 0)


def test_a_fence_after_the_warp_has_met_is_too_late():
    """The fence of the lane that arrives waits for its own loads, not for those of the others."""
    with pytest.raises(LateLoad) as caught:
        _run(SCALARS, "__syncwarp(); if (t % 32 == 0) { fence_proxy(); arrive(&empty[s]); }")
    assert caught.value.other.thread != (0, 0, 0)


def test_a_move_is_no_use():
    move = 'for (int j = 0; j < 4; ++j) asm volatile("mov.f32 %0, %0;" : "+f"(value[j]) :: "memory");'
    with pytest.raises(LateLoad):
        _run(SCALARS, move + WARP)


def test_loads_of_another_slot_may_be_in_flight():
    """The values of a slot are loaded before the slot before it is handed back, and used afterwards."""
    ahead = """float value[4];
        for (int j = 0; j < 4; ++j) value[j] = next[j];
        if (i + 1 < tiles) {
            wait(&full[(i + 1) % SLOTS], (i + 1) / SLOTS & 1);
            for (int j = 0; j < 4; ++j) next[j] = slot[(i + 1) % SLOTS][64 * j + t];
        }"""
    first = """unsigned mine = 0;
    float next[4];
    wait(&full[0], 0);
    for (int j = 0; j < 4; ++j) next[j] = slot[0][64 * j + t];"""
    edits = (("SLOTS = 1;", "SLOTS = 2;"), ("wait(&full[s], i / SLOTS & 1);", ""),
             ("float value[4];", ahead), ("unsigned mine = 0;", first))  # fmt: skip
    use = 'for (int j = 0; j < 4; ++j) asm volatile("add.f32 %0, %0, 0f00000000;" : "+f"(value[j]) :: "memory");'
    for blocks in (1, 3):
        _run("", use + WARP, blocks, edits=edits)
    early = ("[0][64 * j + t];", f"[0][64 * j + t];\n{WARP.replace('[s]', '[0]')}")
    too_early = (*edits, early, ("arrive(&empty[s])", "arrive(&empty[(s + 1) % SLOTS])"))
    with pytest.raises(LateLoad):
        _run("", use + WARP, edits=too_early)


def test_a_load_on_one_path_only_counts_where_that_path_was_taken():
    """Odd tiles are loaded as they should be; even ones are loaded by a path that fences, or that does not."""
    paths = """if (i % 2) { for (int j = 0; j < 4; ++j) value[j] = slot[s][64 * j + t]; END }
        else for (int j = 0; j < 4; ++j) value[j] = in[(blockIdx.x * tiles + i) * TILE + 64 * j + t];"""
    _run(paths.replace("END", "fence_proxy();"), WARP)
    with pytest.raises(LateLoad):
        _run(paths.replace("END", ""), WARP)


def test_a_kernel_without_late_loads_or_bulk_copies_has_no_shadow_for_them():
    late = Device(_text(SCALARS, WARP)).module.kernel("k").code
    fenced = Device(_text(SCALARS, "fence_proxy();" + WARP)).module.kernel("k").code
    assert late.has_late_loads and not fenced.has_late_loads


#: Thread 0 of the first block copies to all blocks of a cluster, whose threads meet before each copy.
MEETING = (
    (FOLDER / "ptx.cuh").read_text()
    + r"""
extern "C" __global__ void CLUSTER k(const float* in, float* out, int tiles) {
    __shared__ alignas(128) float slot[64];
    __shared__ Word full;
    int t = threadIdx.x;
    if (t == 0) { init(&full, 1); fence_init(); }
    MEET
    float sum = 0;
    for (int i = 0; i < tiles; ++i) {
        if (t == 0) expect(&full, 256);
        if (t == 0 && blockIdx.x % SIZE == 0)
            for (int rank = 0; rank < SIZE; ++rank)
                asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 256, [%2];"
                             :: "r"(PLACE(slot)), "l"(in + ((blockIdx.x + rank) * tiles + i) * 64), "r"(PLACE(&full)));
        wait(&full, i & 1);
        float value = slot[t];
        USE
        MEET
        sum += value;
    }
    out[blockIdx.x * 64 + t] = sum;
}
"""
)


@pytest.mark.parametrize("meet,size", [
    ("__syncthreads();", 1), ('asm volatile("barrier.sync 2, 64;" ::: "memory");', 1), ("cluster_sync();", 2),
])  # fmt: skip
def test_a_barrier_of_the_block_or_of_the_cluster_does_not_wait_for_loads(meet, size):
    text = MEETING.replace("MEET", meet).replace("SIZE", str(size))
    text = text.replace("CLUSTER", f"__cluster_dims__({size})" if size > 1 else "")
    for place in ("slot", "&full"):
        text = text.replace(f"PLACE({place})", f"at_rank({place}, rank)" if size > 1 else f"shared_address({place})")
    data = np.random.default_rng(0).integers(0, 9, (4, 3, 64)).astype(np.float32)
    out = np.zeros((4, 64), np.float32)
    Device(text.replace("USE", "fence_proxy();")).launch("k", 4, 64, data, out, 3)
    assert (out == data.sum(axis=1)).all()
    with pytest.raises(LateLoad) as caught:
        Device(text.replace("USE", "")).launch("k", 4, 64, data, out, 3)
    assert caught.value.other.text == "float value = slot[t];"
