"""Instructions of Hopper one by one: mbarriers, bulk copies, clusters, matrix rows, cache policies."""

from __future__ import annotations

import numpy as np
import pytest
from harness import Device
from hopper_kernels import FOLDER

from climb.emulator import (
    ALL_CHECKS,
    AsyncRace,
    BarrierMisuse,
    LaunchError,
    Misaligned,
    OutOfBounds,
    Race,
    checking,
)

PTX = (FOLDER / "ptx.cuh").read_text(encoding="utf-8").replace("#pragma once", "")
MACROS = r"""
#define ASM(text) asm volatile(text :: "r"(shared_address(&bar)) : "memory")
#define STATE(out, text) asm volatile(text : "=l"(out) : "r"(shared_address(&bar)) : "memory")
#define OVER(out, text) \
    asm volatile("{.reg .pred p; " text "; selp.u32 %0, 1, 0, p;}" \
                 : "=r"(out) : "r"(shared_address(&bar)) : "memory")
"""
#: Bodies of kernels of one thread with one mbarrier.
MBARRIER = {
    "counts": r"""
        init(&bar, 3); Word a, b; unsigned n, before, after;
        STATE(a, "mbarrier.arrive.shared::cta.b64 %0, [%1], 2;");
        STATE(b, "mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 %0, [%1], 64;");
        asm("mbarrier.pending_count.b64 %0, %1;" : "=r"(n) : "l"(a)); o[0] = n;
        asm("mbarrier.pending_count.b64 %0, %1;" : "=r"(n) : "l"(b)); o[1] = n;
        OVER(before, "mbarrier.test_wait.parity.shared::cta.b64 p, [%1], 0");
        ASM("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], 16;");
        ASM("mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%0], 80;");
        OVER(after, "mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 p, [%1], 0, 1000");
        o[2] = before; o[3] = after;""",
    "bytes_first": r"""
        init(&bar, 1); unsigned n;
        ASM("mbarrier.complete_tx.relaxed.cluster.shared::cluster.b64 [%0], 32;");
        ASM("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 32;");
        OVER(n, "mbarrier.test_wait.parity.shared::cta.b64 p, [%1], 0"); o[0] = n;""",
    "generic": r"""
        init(&bar, 1); Word a; unsigned n;
        asm volatile("mbarrier.arrive.b64 %0, [%1];" : "=l"(a) : "l"(&bar) : "memory");
        asm volatile("{.reg .pred p; mbarrier.try_wait.b64 p, [%1], %2; selp.u32 %0, 1, 0, p;}"
                     : "=r"(n) : "l"(&bar), "l"(a) : "memory"); o[0] = n;""",
    "again": r"""
        init(&bar, 1); ASM("mbarrier.inval.shared::cta.b64 [%0];"); init(&bar, 2); arrive(&bar); o[0] = 5;""",
    "bytes": r"""
        init(&bar, 1); expect(&bar, 1000000); ASM("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], 99999;");""",
    "incomplete": r"""init(&bar, 1); ASM("mbarrier.arrive.noComplete.shared::cta.b64 _, [%0], 1;");""",
    "invalid": r"""init(&bar, 1); ASM("mbarrier.inval.shared::cta.b64 [%0];"); arrive(&bar);""",
    "many": "init(&bar, 1 << 20);",
}
#: Other kernels, of 64 threads in clusters of two blocks where they use clusters.
KERNELS = r"""
extern "C" __global__ void ranks(unsigned* o) {
    unsigned at = 8 * (blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z)), r[8];
    asm("mov.u32 %0, %%cluster_ctarank; mov.u32 %1, %%cluster_nctarank; mov.u32 %2, %%cluster_ctaid.x;"
        "mov.u32 %3, %%cluster_ctaid.y; mov.u32 %4, %%clusterid.x; mov.u32 %5, %%nclusterid.y;"
        "mov.u32 %6, %%cluster_nctaid.y;"
        "{.reg .pred p; mov.pred p, %%is_explicit_cluster; selp.u32 %7, 1, 0, p;}"
        : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]), "=r"(r[4]), "=r"(r[5]), "=r"(r[6]), "=r"(r[7]));
    if (threadIdx.x == 0) for (int i = 0; i < 8; ++i) o[at + i] = r[i];
}
extern "C" __global__ void __cluster_dims__(2, 1, 1) spaces(unsigned* o) {
    __shared__ unsigned s[64];
    s[threadIdx.x] = 100 * blockIdx.x + threadIdx.x;
    unsigned long long mine = (unsigned long long)(void*)s, other;
    unsigned cta, cluster, own, rank, global;
    asm("mapa.u64 %0, %1, %2;" : "=l"(other) : "l"(mine), "r"(cluster_rank() ^ 1));
    asm("{.reg .pred p; isspacep.shared::cta p, %1; selp.u32 %0, 1, 0, p;}" : "=r"(cta) : "l"(other));
    asm("{.reg .pred p; isspacep.shared::cluster p, %1; selp.u32 %0, 1, 0, p;}" : "=r"(cluster) : "l"(other));
    asm("{.reg .pred p; isspacep.shared p, %1; selp.u32 %0, 1, 0, p;}" : "=r"(own) : "l"(mine));
    asm("{.reg .pred p; isspacep.global p, %1; selp.u32 %0, 1, 0, p;}" : "=r"(global) : "l"(o));
    asm("getctarank.u64 %0, %1;" : "=r"(rank) : "l"(other));
    cluster_sync();
    unsigned there = ((unsigned*)other)[threadIdx.x], direct, old;
    asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(direct) : "r"(at_rank(s + 1, cluster_rank() ^ 1)));
    cluster_sync();
    asm volatile("st.shared::cluster.u32 [%0], %1;" :: "r"(at_rank(s + threadIdx.x, cluster_rank() ^ 1)), "r"(7u));
    cluster_sync();
    if (threadIdx.x < 2)
        asm volatile("atom.shared::cluster.add.u32 %0, [%1], 3;" : "=r"(old) : "r"(at_rank(s, cluster_rank() ^ 1)));
    cluster_sync();
    unsigned all[] = {cta, cluster, own, global, rank, there, direct, s[0], s[1]};
    if (threadIdx.x == 5) for (int i = 0; i < 9; ++i) o[9 * blockIdx.x + i] = all[i];
}
extern "C" __global__ void __cluster_dims__(2, 1, 1) neighbour(unsigned* o) {
    __shared__ alignas(16) unsigned from[64], to[64];
    __shared__ Word full;
    if (threadIdx.x == 0) { init(&full, 1); fence_init(); }
    from[threadIdx.x] = 1000 * blockIdx.x + threadIdx.x;
    to[threadIdx.x] = 1;
    fence_proxy();
    cluster_sync();
    unsigned peer = cluster_rank() ^ 1;
    if (threadIdx.x == 0) {
        expect(&full, sizeof(to));
        asm volatile("cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%0], [%1], 256, [%2];"
                     :: "r"(at_rank(to, peer)), "r"(shared_address(from)), "r"(at_rank(&full, peer)) : "memory");
    }
    BETWEEN
    if (threadIdx.x == 0) {
        expect(&full, 64);
        asm volatile("cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.add.u32"
                     " [%0], [%1], 64, [%2];"
                     :: "r"(at_rank(to, peer)), "r"(shared_address(from + 32)), "r"(at_rank(&full, peer)) : "memory");
    }
    wait(&full, 1);
    o[64 * blockIdx.x + threadIdx.x] = to[threadIdx.x];
    cluster_sync();
}
extern "C" __global__ void rows(const unsigned* in, unsigned* o) {
    __shared__ alignas(16) unsigned s[2][128];
    int lane = threadIdx.x;
    unsigned r[4], at = shared_address(&s[0][4 * lane]), to = shared_address(&s[1][4 * lane]);
    for (int i = 0; i < 4; ++i) s[0][lane + 32 * i] = in[lane + 32 * i];
    __syncwarp();
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(at) : "memory");
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};"
                 :: "r"(to), "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3]) : "memory");
    asm volatile("stmatrix.sync.aligned.m8n8.x2.trans.shared::cta.b16 [%0], {%1, %2};"
                 :: "r"(at), "r"(r[0]), "r"(r[3]) : "memory");
    __syncwarp();
    for (int i = lane; i < 128; i += 32) { o[i] = s[1][i]; o[128 + i] = s[0][i]; }
}
extern "C" __global__ void tile(unsigned* o) {
    __shared__ alignas(1024) unsigned s[32 * 32];  // rows of 128 bytes
    int lane = threadIdx.x;
    unsigned a, b;
    for (int i = lane; i < 1024; i += 32) s[i] = i;
    __syncwarp();
    for (int swizzle = 0; swizzle < 2; ++swizzle) {
        unsigned row = lane % 16, at = shared_address(s) + 128 * row + 16 * (swizzle * (row % 8));
        asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];"
                     : "=r"(a), "=r"(b) : "r"(at) : "memory");
        o[32 * swizzle + lane] = a + b;
    }
}
extern "C" __global__ void hints(const float* in, float* out) {
    Word policy, other; float v; unsigned leader;
    asm("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(policy));
    asm("createpolicy.fractional.L2::evict_first.L2::evict_unchanged.b64 %0, 0.5;" : "=l"(other));
    asm volatile("griddepcontrol.wait; griddepcontrol.launch_dependents; nanosleep.u32 20;");
    asm volatile("{.reg .pred p; elect.sync _|p, 0xffffffff; selp.u32 %0, 1, 0, p;}" : "=r"(leader));
    asm volatile("ld.global.L2::cache_hint.f32 %0, [%1], %2;" : "=f"(v) : "l"(in + threadIdx.x), "l"(policy));
    asm volatile("st.global.L2::cache_hint.f32 [%0], %1, %2;" :: "l"(out + threadIdx.x), "f"(v + leader), "l"(other));
    asm volatile("red.global.add.L2::cache_hint.f32 [%0], %1, %2;" :: "l"(out + threadIdx.x), "f"(1.f), "l"(other));
    asm volatile("cp.async.bulk.prefetch.L2.global.L2::cache_hint [%0], 64, %1;" :: "l"(in), "l"(policy));
}
extern "C" __global__ void __cluster_dims__(2, 1, 1) reserved(unsigned* o) {
    __shared__ unsigned s[4];
    unsigned begin, end;
    s[threadIdx.x % 4] = 0;
    asm volatile("mov.u32 %0, %%reserved_smem_offset_begin;" : "=r"(begin));
    asm volatile("mov.u32 %0, %%reserved_smem_offset_end;" : "=r"(end));
    o[2 * blockIdx.x] = begin - shared_address(s), o[2 * blockIdx.x + 1] = end - begin;
}
extern "C" __global__ void __cluster_dims__(2, 1, 1) askew(unsigned* o) {
    __shared__ alignas(16) unsigned s[8];
    s[threadIdx.x] = 1;
    cluster_sync();
    asm volatile("ld.shared::cluster.u32 %0, [%1 + 12];"
                 : "=r"(o[threadIdx.x]) : "r"(at_rank(s, cluster_rank() ^ 1) + 2) : "memory");
    cluster_sync();
}
extern "C" __global__ void prefetched(const char* in) {
    asm volatile("cp.async.bulk.prefetch.L2.global [%0 + 4], 16;" :: "l"(in));
}
extern "C" __global__ void copies(const int* in, int* out) {
    __shared__ int s[64];
    __shared__ Word full;
    int t = threadIdx.x;
    if (t == 0) init(&full, COUNT);
    __syncthreads();
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" :: "r"(shared_address(s + t)), "l"(in + t) : "memory");
    asm volatile("cp.async.mbarrier.arrive NOINC.shared::cta.b64 [%0];" :: "r"(shared_address(&full)) : "memory");
    AFTER
    WAIT
    out[t] = s[63 - t];
}
"""


def source(noinc: str = ".noinc", count: int = 64, after: str = "", **edits: str) -> str:
    edits = {"BETWEEN": "wait(&full, 0); cluster_sync();", "WAIT": "wait(&full, 0);", **edits}
    text = KERNELS.replace(" NOINC", noinc).replace("COUNT", str(count)).replace("AFTER", after)
    for name, code in edits.items():
        text = text.replace(name, code)
    return PTX + text


@pytest.fixture(scope="module")
def mbarriers() -> Device:
    bodies = MBARRIER.items()
    kernels = [f'extern "C" __global__ void {n}(unsigned* o) {{ __shared__ Word bar; {body} }}' for n, body in bodies]
    return Device(PTX + MACROS + "\n".join(kernels))


@pytest.fixture(scope="module")
def device() -> Device:
    return Device(source())


@pytest.mark.parametrize(
    ("name", "expected"), [("counts", [3, 1, 0, 1]), ("bytes_first", [1]), ("generic", [1]), ("again", [5])]
)
def test_mbarrier_counts_arrivals_and_bytes(mbarriers: Device, name: str, expected: list[int]) -> None:
    out = np.zeros(8, np.uint32)
    mbarriers.launch(name, 1, 1, out)
    assert out[: len(expected)].tolist() == expected


@pytest.mark.parametrize(
    ("name", "error", "words"),
    [
        ("bytes", BarrierMisuse, "at most 1048575 transaction bytes"), ("invalid", BarrierMisuse, "invalidated"),
        ("incomplete", BarrierMisuse, "noComplete has completed"), ("many", BarrierMisuse, "1 to 1048575 arrivals"),
    ],
)  # fmt: skip
def test_misuse_of_an_mbarrier_is_found(mbarriers: Device, name: str, error: type, words: str) -> None:
    with pytest.raises(error, match=words):
        mbarriers.launch(name, 1, 1, np.zeros(8, np.uint32))


def _ranks(device: Device, grid: tuple[int, ...], cluster: tuple[int, ...] | None) -> np.ndarray:
    out = np.zeros((int(np.prod(grid)), 8), np.uint32)
    held = device.upload(out)
    device.kernel("ranks").launch(grid, 32, [held.address.to_bytes(8, "little")], memory=device.memory, cluster=cluster)
    return held.data.view(np.uint32).reshape(out.shape)


def test_blocks_know_their_place_in_the_cluster(device: Device) -> None:
    found = _ranks(device, (4, 6, 1), (2, 3, 1)).reshape(6, 4, 8)
    for y in range(6):
        for x in range(4):
            assert found[y, x].tolist() == [y % 3 * 2 + x % 2, 6, x % 2, y % 3, x // 2, 2, 3, 1]
    assert _ranks(device, (3, 1, 1), None)[:, :4].tolist() == [[0, 1, 0, 0]] * 3


@pytest.mark.parametrize(
    ("name", "grid", "cluster", "words"),
    [
        ("ranks", 3, 2, "no multiple of the cluster"), ("ranks", 32, 16, "at most 8 are portable"),
        ("spaces", 4, 4, "__cluster_dims__ says"), ("spaces", 3, None, "no multiple"),
    ],
)  # fmt: skip
def test_clusters_that_no_gpu_launches_are_refused(device: Device, name: str, grid: int, cluster, words: str) -> None:
    with pytest.raises(LaunchError, match=words):
        device.kernel(name).launch(grid, 32, [bytes(8)], memory=device.memory, cluster=cluster)


def test_distributed_shared_memory_is_read_written_and_added_to(device: Device) -> None:
    out = np.zeros((2, 9), np.uint32)
    with checking(ALL_CHECKS):
        device.launch("spaces", 2, 64, out)
    assert out[0].tolist() == [0, 1, 1, 1, 1, 105, 101, 13, 7]
    assert out[1].tolist() == [0, 1, 1, 1, 0, 5, 1, 13, 7]


def test_bulk_copies_and_sums_between_blocks_of_a_cluster(device: Device) -> None:
    out = np.zeros((2, 64), np.uint32)
    with checking(ALL_CHECKS):
        device.launch("neighbour", 2, 64, out)
    values = np.arange(64) + np.array([[1000], [0]])
    values[:, :16] += values[:, 32:48]
    assert (out == values).all()
    with pytest.raises(AsyncRace, match="still in flight"):
        Device(source(BETWEEN="o[threadIdx.x] = to[threadIdx.x];")).launch("neighbour", 2, 64, out)


def test_matrix_rows_are_stored_as_they_are_loaded(device: Device) -> None:
    halves = np.random.default_rng(0).integers(0, 1 << 16, (4, 8, 8), dtype=np.uint16)
    out = np.zeros((2, 128), np.uint32)
    counters = device.launch("rows", 1, 32, halves.reshape(-1).view(np.uint32).copy(), out)
    stored = out.view(np.uint16).reshape(2, 4, 8, 8)
    assert (stored[0] == halves.swapaxes(1, 2)).all()
    assert (stored[1] == np.stack([halves[0], halves[3], halves[2], halves[3]])).all()
    wide = [line for line in counters.lines if line.width == 16]
    assert [(line.kind, line.lanes, line.wavefronts) for line in wide] == [
        ("shared load", 32, 4), ("shared store", 32, 4), ("shared store", 16, 2),
    ]  # fmt: skip


def test_swizzled_tile_is_read_by_ldmatrix_without_conflicts(device: Device) -> None:
    """Chunk 0 of eight rows of 128 bytes lies in one group of banks, or, swizzled, in all eight."""
    counters = device.launch("tile", 1, 32, np.zeros(64, np.uint32))
    (rows,) = [line for line in counters.lines if line.kind == "shared load"]
    assert (rows.requests, rows.wavefronts, rows.ideal_wavefronts) == (2, 2 * 8 + 2, 4)


def test_cache_policies_and_hints_change_no_value(device: Device) -> None:
    values, out = np.arange(32, dtype=np.float32), np.zeros(32, np.float32)
    device.launch("hints", 1, 32, values, out)
    assert (out == values + 1 + (np.arange(32) == 0)).all()


@pytest.mark.parametrize(("noinc", "count"), [(".noinc", 64), ("", 1)])
def test_copies_arrive_at_an_mbarrier(noinc: str, count: int) -> None:
    """With .noinc the arrivals of the copies count; without, the phase needs an arrival besides them."""
    values, out = np.arange(64, dtype=np.int32), np.zeros(64, np.int32)
    after = "" if noinc else "if (t == 0) arrive(&full);"
    with checking(ALL_CHECKS):
        Device(source(noinc=noinc, count=count, after=after)).launch("copies", 1, 64, values, out)
    assert (out == values[::-1]).all()


def test_copies_without_a_wait_for_their_mbarrier_are_found() -> None:
    values, out = np.arange(64, dtype=np.int32), np.zeros(64, np.int32)
    with pytest.raises((AsyncRace, Race), match="copy"):
        Device(source(WAIT="")).launch("copies", 1, 64, values, out)


LATER = """__shared__ int later[64];
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;"
                 :: "r"(shared_address(later + t)), "l"(in + t) : "memory");"""


def test_an_mbarrier_covers_only_the_copies_issued_before_its_arrival() -> None:
    values, out = np.arange(64, dtype=np.int32), np.zeros(64, np.int32)
    Device(source(after=LATER)).launch("copies", 1, 64, values, out)
    with pytest.raises(AsyncRace, match="copy"):
        Device(source(after=LATER, WAIT="wait(&full, 0); s[63 - t] = later[t];")).launch("copies", 1, 64, values, out)


PING_PONG = """
extern "C" __global__ void k(unsigned* o) {
    __shared__ Word done;
    __shared__ volatile unsigned turn;
    unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    if (threadIdx.x == 0) { init(&done, 1); turn = 0; }
    __syncthreads();
    if (warp == 2) { wait(&done, 0); if (lane == 0) o[0] = turn; return; }
    for (unsigned i = warp; i < 40; i += 2) {
        while (turn != i) { }
        __syncwarp();
        if (lane == 0) turn = i + 1;
        __syncwarp();
    }
    if (warp == 1 && lane == 0) arrive(&done);
}"""


def test_long_wait_while_other_warps_take_turns_is_no_deadlock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("climb.emulator.runtime.polls.PATIENCE", 20)
    out = np.zeros(1, np.uint32)
    Device(PTX + PING_PONG).launch("k", 1, 96, out)
    assert out[0] == 40


def test_a_bulk_prefetch_is_checked_where_its_offset_leads(device: Device) -> None:
    held = device.upload(np.zeros(64, np.uint8))
    for start in (12, 44):
        device.kernel("prefetched").launch(1, 1, [(held.address + start).to_bytes(8, "little")], memory=device.memory)
    with pytest.raises(Misaligned, match="multiple of 16"):
        device.kernel("prefetched").launch(1, 1, [(held.address + 4).to_bytes(8, "little")], memory=device.memory)
    with pytest.raises(OutOfBounds):
        device.kernel("prefetched").launch(1, 1, [(held.address + 60).to_bytes(8, "little")], memory=device.memory)


def test_each_block_of_a_cluster_has_the_systems_part_of_shared_memory_at_the_same_distance(device: Device) -> None:
    out = np.zeros((4, 2), np.uint32)
    device.launch("reserved", 4, 1, out)
    assert (out == out[0]).all() and out[0, 1] == 1024


def test_a_misaligned_access_to_another_blocks_memory_names_its_byte(device: Device) -> None:
    with pytest.raises(Misaligned, match="4-byte load at 0xe,") as caught:
        device.launch("askew", 2, 8, np.zeros(8, np.uint32))
    assert caught.value.width == 4
