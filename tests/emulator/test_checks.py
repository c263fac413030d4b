"""The checks: correct synchronisation must pass, faulty synchronisation must not, and results must stay the same."""

from __future__ import annotations

import re
from contextlib import nullcontext

import numpy as np
import pytest
from harness import Device
from tools.thorough import choose

from climb.emulator import ALL_CHECKS, Race, Trace, Uninitialised, checking
from climb.emulator.checks.enabled import DEFAULT, NONE, chosen, current
from climb.emulator.checks.happens_before import Clock
from climb.emulator.checks.shadow_cells import combine_stamps
from climb.emulator.checks.stamps import BLOCK_THREADS, BLOCKS, KIND, ONE, WARP_LANES, Events

#: Correct kernels, with (grid, threads, shared) and the shapes of their int arrays.
CLEAN = {
    "a flag that all threads set": ("__global__ void k(int* o) { __shared__ int any; if (threadIdx.x == 0) any = 0;\n"
        "__syncthreads(); if (threadIdx.x % 3) any = 1; __syncthreads(); o[threadIdx.x] = any; o[0] = 1; }",
        1, 64, [64]),
    "a flag that all blocks set": ("__global__ void k(int* o) { *o = 7; }", 9, 64, [1]),
    "the last block adds up": ("""__global__ void k(int* part, unsigned* tickets, int* o) {
        __shared__ bool last; int t = threadIdx.x;
        if (t == 0) { part[blockIdx.x] = blockIdx.x; __threadfence();
            last = atomicInc(tickets, gridDim.x - 1) == gridDim.x - 1; }
        __syncthreads();
        if (last) { int s = 0; for (int i = t; i < gridDim.x; i += blockDim.x) s += ((volatile int*)part)[i];
            atomicAdd(o, s); } }""", 700, 96, [700, 1, 1]),
    "the last block, all threads write and fence": ("""__global__ void k(int* part, unsigned* tickets, int* o) {
        __shared__ bool last; int t = threadIdx.x;
        part[blockIdx.x * 64 + t] = t; __threadfence(); __syncthreads();
        if (t == 0) last = atomicAdd(tickets, 1u) == gridDim.x - 1;
        __syncthreads();
        if (last) { int s = 0; for (int b = 0; b < gridDim.x; ++b) s += part[b * 64 + 63 - t]; o[t] = s; } }""",
        600, 64, [600 * 64, 1, 64]),
    "a lock": ("""__global__ void k(int* lock, int* sum) {
        while (atomicCAS(lock, 0, 1) != 0) { } __threadfence(); *sum += 1; __threadfence(); atomicExch(lock, 0); }""",
        choose(1, thorough=2), 36, [1, 1]),
    "blocks in a chain": ("""__global__ void k(volatile int* done, int* sums) {
        if (threadIdx.x == 0) { int b = blockIdx.x; if (b) while (done[b - 1] == 0) { }
        __threadfence(); sums[b] = b ? sums[b - 1] + b : 0; __threadfence(); done[b] = 1; } }""", 20, 32, [20, 20]),
    "a flag from warp to warp": ("""__global__ void k(int* o) {
        __shared__ volatile int ready; __shared__ int data; int t = threadIdx.x;
        if (t == 0) ready = 0; __syncthreads();
        if (t == 40) { data = t + blockIdx.x; __threadfence_block(); ready = 1; }
        if (t < 32) { while (ready == 0) { } __threadfence_block();
        o[blockIdx.x * 32 + t] = data; } }""", 2, 64, [64]),
    "acquire and release": ("""__global__ void k(int* flag, int* data, int* o) {
        if (blockIdx.x == 0) { if (threadIdx.x == 0) { *data = 5;
            asm volatile("st.release.gpu.global.u32 [%0], 1;" :: "l"(flag) : "memory"); } }
        else { int f; do { asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(f) : "l"(flag) : "memory"); }
            while (!f); o[threadIdx.x] = *data; } }""", 2, 32, [1, 1, 32]),
    "a CAS loop on a sum": ("""__global__ void k(unsigned long long* sum) { unsigned long long old = *sum, seen;
        do { seen = old; old = atomicCAS(sum, seen, __double_as_longlong(1.0 + __longlong_as_double(seen))); }
        while (old != seen); }""", 5, 64, [2]),
    "a look before the atomic": ("""__global__ void k(const int* a, int* most) { __shared__ int mine;
        if (threadIdx.x == 0) mine = 0; __syncthreads(); int v = a[threadIdx.x];
        if (v > mine) atomicMax(&mine, v); __syncthreads();
        if (threadIdx.x == 0 && mine > *most) atomicMax(most, mine); }""", 40, 64, [64, 1]),
    "a warp at a time": ("""__global__ void k(int* o) { __shared__ int s[4][32];
        int t = threadIdx.x, w = t / 32, l = t % 32;
        s[w][l] = t; __syncwarp(); int v = s[w][31 - l]; __syncwarp(); s[w][l] = v + 1; __syncwarp();
        o[t] = s[w][l ^ 1]; }""", 3, 128, [128]),
    "half a warp at a time": ("""__global__ void k(int* o) { __shared__ int s[64]; int t = threadIdx.x, l = t % 16;
        unsigned mask = t % 32 < 16 ? 0xffffu : 0xffff0000u; s[t] = t; __syncwarp(mask);
        int v = s[t - l + 15 - l]; __syncwarp(mask); s[t] = v; __syncwarp(mask); o[t] = s[t ^ 1]; }""", 2, 64, [64]),
    "the last warp of a reduction": ("""__global__ void k(int* o) { __shared__ int s[128]; int t = threadIdx.x;
        s[t] = t; __syncthreads(); if (t < 64) s[t] += s[t + 64]; __syncthreads();
        if (t < 32) { int v = s[t] + s[t + 32];
            for (int d = 16; d; d /= 2) v += __shfl_down_sync(0xffffffffu, v, d); if (t == 0) o[blockIdx.x] = v; } }""",
        300, 128, [300]),
    "the last warp without shuffles": ("""__global__ void k(int* o) { __shared__ int s[64]; int t = threadIdx.x;
        s[t] = t; __syncthreads(); if (t < 32) { int v = s[t];
            v += s[t + 32]; __syncwarp(); s[t] = v; __syncwarp();
            v += s[t + 16]; __syncwarp(); s[t] = v; __syncwarp();
            v += s[t + 8]; __syncwarp(); s[t] = v; __syncwarp(); o[t] = v; } }""", 4, 64, [64]),
    "bytes side by side": ("""__global__ void k(unsigned char* o) {
        __shared__ unsigned char s[64]; __shared__ int w[16];
        int t = threadIdx.x; s[t] = t; if (t < 16) w[t] = t; __syncthreads();
        o[t] = s[63 - t] + w[t / 4]; ((int*)o)[16 + t] = ((int*)s)[t % 16]; }""", 1, 64, [100]),
    "blocks that loop more or less": ("""__global__ void k(int* o) { __shared__ int s[64]; int t = threadIdx.x;
        s[t] = t; for (int i = 0; i < blockIdx.x % 5; ++i) { __syncthreads(); int v = s[63 - t]; __syncthreads();
        s[t] = v; } __syncthreads(); o[blockIdx.x * 64 + t] = s[(t + 1) % 64]; }""", 40, 64, [40 * 64]),
    "threads that differ in the tile they load": ("""__global__ void k(const int* a, int* o) { __shared__ int s[70];
        int t = threadIdx.x; for (int i = t; i < 70; i += 64) s[i] = a[i + blockIdx.x]; __syncthreads();
        int v = 0; for (int i = 0; i < 7; ++i) v += s[t + i]; o[blockIdx.x * 64 + t] = v; }""", 5, 64, [80, 320]),
    "a histogram of its own for each warp": ("""__global__ void k(const int* a, int* o) { __shared__ int s[2][16];
        int t = threadIdx.x, w = t / 32; if (t % 32 < 16) s[w][t % 32] = 0; __syncwarp();
        atomicAdd(&s[w][(a[t] + t) % 16], 1); __syncthreads(); if (t < 16) atomicAdd(&o[t], s[0][t] + s[1][t]); }""",
        7, 64, [64, 16]),
    "in place, each its own": ("__global__ void k(int* a) { int i = blockIdx.x * 64 + threadIdx.x;\n"
        "a[i] += 1; a[i] *= 2; }",
        600, 64, [600 * 64]),
    "every other element, then a barrier": ("""__global__ void k(int* a) { int t = threadIdx.x;
        for (int d = 1; d < 64; d *= 2) { int v = t >= d ? a[t - d] : 0; __syncthreads();
        a[t] += v + 1; __syncthreads(); } }""", 1, 64, [64]),
    "float4 beside float": ("""__global__ void k(float* a) { __shared__ float4 s[16]; int t = threadIdx.x;
        if (t < 16) s[t] = ((float4*)a)[t]; __syncthreads(); float v = ((float*)s)[63 - t]; __syncthreads();
        a[t] = v + t; __syncthreads(); if (t < 16) ((float4*)a)[t] = s[t]; }""", 1, 64, [64]),
}  # fmt: skip


def launch(case: str, **kwargs):
    body, grid, threads, shapes = CLEAN[case]
    arrays = [np.zeros(n, np.int32) for n in shapes]
    counters = Device('extern "C" ' + body).launch("k", grid, threads, *arrays, **kwargs)
    return counters, arrays


@pytest.mark.parametrize("case", CLEAN)
def test_correct_kernels_raise_nothing_and_results_stay_the_same(case: str) -> None:
    """Results, counters and traces with all checks equal those without any, even if the launch restarts."""
    traces = Trace(block=0, warp=0), Trace(block=0, warp=0)
    with checking(NONE):
        plain, wanted = launch(case, trace=traces[0])
    with checking(ALL_CHECKS):
        checked, got = launch(case, trace=traces[1])
    assert all(np.array_equal(a, b) for a, b in zip(wanted, got, strict=True))
    assert plain == checked
    assert [(a.line, a.kind) for a in traces[0].accesses] == [(a.line, a.kind) for a in traces[1].accesses]


#: Changes that make a correct kernel faulty: (case, text to remove, its replacement).
SPOILT = [
    ("the last block, all threads write and fence", "__threadfence();", ""),
    ("a lock", "*sum += 1; __threadfence();", "*sum += 1;"),
    ("blocks in a chain", "__threadfence(); done[b] = 1;", "done[b] = 1;"),
    ("a flag from warp to warp", "blockIdx.x; __threadfence_block();", "blockIdx.x;"),
    ("acquire and release", "st.release.gpu.global", "st.relaxed.gpu.global"),
    ("a warp at a time", "int v = s[w][31 - l]; __syncwarp();", "int v = s[w][31 - l];"),
    ("half a warp at a time", "s[t] = t; __syncwarp(mask);", "s[t] = t;"),
    ("the last warp of a reduction", "s[t] += s[t + 64]; __syncthreads();", "s[t] += s[t + 64];"),
    ("the last warp without shuffles", "v += s[t + 16]; __syncwarp(); s[t] = v; __syncwarp();",
     "v += s[t + 16]; __syncwarp(); s[t] = v;"),
    ("the last warp without shuffles", "v += s[t + 8]; __syncwarp();", "v += s[t + 8];"),
    ("bytes side by side", "w[t] = t; __syncthreads();", "w[t] = t; __syncwarp();"),
    ("blocks that loop more or less", "s[t] = v; } __syncthreads();", "s[t] = v; }"),
    ("threads that differ in the tile they load", "__syncthreads();", ""),
    ("a histogram of its own for each warp", "= 0; __syncwarp();", "= 0;"),
    ("a histogram of its own for each warp", "% 16], 1); __syncthreads();", "% 16], 1);"),
    ("in place, each its own", "a[i] *= 2;", "a[i ^ 32] *= 2;"),
    ("every other element, then a barrier", "a[t] += v + 1; __syncthreads();", "a[t] += v + 1;"),
    ("every other element, then a barrier", "a[t - d] : 0; __syncthreads();", "a[t - d] : 0;"),
    ("float4 beside float", "a[t] = v + t; __syncthreads();", "a[t] = v + t;"),
]  # fmt: skip


@pytest.mark.parametrize(("case", "old", "new"), SPOILT)
def test_removing_the_synchronisation_is_a_race(case: str, old: str, new: str) -> None:
    body, grid, threads, shapes = CLEAN[case]
    assert body.count(old) == 1
    with pytest.raises(Race), checking(ALL_CHECKS):
        arrays = [np.zeros(n, np.int32) for n in shapes]
        Device('extern "C" ' + body.replace(old, new)).launch("k", grid, threads, *arrays, max_steps=20_000)


def test_a_launch_makes_the_checks_it_names() -> None:
    assert current() == DEFAULT and chosen(["global"]) == {"global"} and chosen("global") == {"global"}
    with checking(NONE):
        assert chosen(None) == NONE
    assert current() == DEFAULT
    with pytest.raises(
        ValueError, match=r"unknown check races; the checks are global, launches, masks, shared, uninitialised"
    ):
        chosen(["races"])


def test_races_in_global_memory_are_found_only_on_request() -> None:
    device, out = Device('extern "C" __global__ void k(int* o) { *o += threadIdx.x; }'), np.zeros(1, np.int32)
    device.launch("k", 1, 64, out)
    with pytest.raises(Race), checking(ALL_CHECKS):
        device.launch("k", 1, 64, out)


def test_equal_values_of_two_blocks_are_no_race_beside_values_that_a_thread_changes_of_its_own() -> None:
    """In one store, thread 0 of both blocks writes the same flag, and the others overwrite what they have written."""
    device = Device(
        r"""extern "C" __global__ void k(int* o, int flag) {
        int i = threadIdx.x ? 1 + blockIdx.x * blockDim.x + threadIdx.x : 0;
        if (i) o[i] = 5;
        __syncwarp();
        o[i] = threadIdx.x ? 7 : flag + blockIdx.x * flag; }"""
    )
    out = np.zeros(1 + 64, np.int32)
    with checking(ALL_CHECKS):
        device.launch("k", 2, 32, out, 0)
        assert out[1:32].tolist() == [0] + 30 * [7]
        with pytest.raises(Race) as caught:
            device.launch("k", 2, 32, out, 1)
    assert (caught.value.where.thread, caught.value.where.lanes) == ((0, 0, 0), 1)


def test_a_restarted_launch_restores_global_memory() -> None:
    """The first store precedes the first load of the allocation, which makes the launch restart."""
    device = Device(
        'extern "C" __global__ void k(int* o) { int i = threadIdx.x; o[i] += 1; atomicAdd(o + 64 + i, 1); }'
    )
    out = np.arange(128, dtype=np.int32)
    with checking(ALL_CHECKS):
        device.launch("k", 1, 64, out)
    assert np.array_equal(out, np.arange(128) + 1)


def test_the_next_kernel_may_read_only_what_a_kernel_wrote() -> None:
    device = Device(
        r"""extern "C" __global__ void fill(double* o, int n) { if (threadIdx.x < n) o[threadIdx.x] = 1; }
        extern "C" __global__ void read(const double2* a, double2* o) { o[threadIdx.x] = a[threadIdx.x]; }"""
    )
    fresh, out = device.memory.allocate(512, "fresh", initialised=False), np.zeros(64)
    device.launch("fill", 1, 64, fresh, 63)
    with pytest.raises(Uninitialised, match="byte 496 of fresh") as caught:
        device.launch("read", 1, 32, fresh, out)
    # The pair of elements 62 and 63; element 63 was never written.
    assert (caught.value.where.thread, caught.value.where.lanes) == ((31, 0, 0), 1)
    device.launch("fill", 1, 64, fresh, 64)
    device.launch("read", 1, 32, fresh, out)
    assert (out == 1).all() and fresh.written is None


def test_fake_cupy_marks_what_the_host_has_written() -> None:
    from climb import fake_cupy
    from climb.bench import cuda

    if cuda.backend != "emulator":
        pytest.skip("CuPy is in use")
    text = 'extern "C" __global__ void k(const float* a, float* o) { o[threadIdx.x] = a[threadIdx.x]; }'
    kernel, out = fake_cupy.RawKernel(text, "k"), fake_cupy.zeros(64, dtype="float32")
    fresh = fake_cupy.empty(64, dtype="float32")

    def says(pattern: str) -> None:
        with pytest.raises(Uninitialised, match=pattern):
            kernel((1,), (64,), (fresh, out))

    says("byte 0 of a in")
    fresh[::2] = 1
    says("byte 4 of a in")
    fresh[1:62:2] = fake_cupy.ones(31, dtype="float32")
    says("byte 252 of a in")
    fresh.reshape(8, 8)[7].fill(3)
    kernel((1,), (64,), (fresh, out))
    for made in (
        fake_cupy.full(64, 2, "float32"),
        fake_cupy.asarray(np.ones(64, np.float32)),
        fake_cupy.empty_like(out) * 0,
    ):
        kernel((1,), (64,), (made, out))


def stamp(tick: int, thread: int, kind: int = ONE) -> np.ndarray:
    return np.array([[[tick << 30 | kind << KIND | thread]]], np.int64)


@pytest.mark.parametrize(
    ("old", "new", "kind"),
    [
        (stamp(1, 3), stamp(2, 3), ONE),
        (stamp(1, 3), stamp(2, 4), WARP_LANES),
        (stamp(1, 3), stamp(2, 40), BLOCK_THREADS),
        (stamp(1, 3), stamp(2, 103), BLOCKS),
        (stamp(1, 3, WARP_LANES), stamp(2, 3), WARP_LANES),
        (stamp(1, 3, WARP_LANES), stamp(2, 64), BLOCK_THREADS),
        (stamp(1, 3, BLOCK_THREADS), stamp(2, 3), BLOCK_THREADS),
        (stamp(1, 3, BLOCKS), stamp(2, 3), BLOCKS),
    ],
)
def test_two_accesses_combine_into_one_stamp(old: np.ndarray, new: np.ndarray, kind: int) -> None:
    """Blocks of 100 threads: 103 is thread 3 of the second block."""
    apart = np.ones((1, 1, 1), np.bool_)
    both = int(combine_stamps(old, new, apart, 100, True)[0, 0, 0])
    assert (both >> KIND & 3, both >> 30) == (kind, 2)
    assert int(combine_stamps(old, new, ~apart, 100, True)[0, 0, 0]) == int(new[0, 0, 0])


def test_a_clock_starts_after_all_earlier_accesses() -> None:
    events = Events(4)
    clock = Clock(events, 0, 2, 64)
    assert (clock.barriers == events.now).all() and clock.floor == events.now


def test_messages_use_the_variable_names_of_the_source() -> None:
    device = Device(
        "template <int N> __global__ void k(int* o) { __shared__ int first[N]; __shared__ int second[N][2];\n"
        "first[threadIdx.x] = 1; __syncthreads(); o[threadIdx.x] = first[1] + second[threadIdx.x][1]; }",
        names=["k<32>"],
    )
    with pytest.raises(Uninitialised) as caught:
        device.launch("k<32>", 1, 32, np.zeros(32, np.int32))
    assert re.search(r"byte 4 of second in shared memory", str(caught.value))


def checked(device: Device, grid: int, block: int, *args: np.ndarray) -> None:
    with checking(ALL_CHECKS):
        device.launch("k", grid, block, *args)


NEIGHBOUR = """extern "C" __global__ void k(float* data, int* other, float* o) {
    int b = blockIdx.x;
    if (threadIdx.x == 0) {
        data[b] = b;
        __threadfence();
        @@
        if (b > 0) o[b] = data[b - 1];
    }
}"""


@pytest.mark.parametrize(
    "between",
    [
        "",
        "atomicAdd(&other[b], 1);",
        "other[b] = 1;",
        "((volatile int*)other)[b] = 1; o[b] = ((volatile int*)other)[b];",
        "atomicAdd(&other[b], 1); if (b > 1) atomicAdd(&other[b - 2], 1);",
    ],
    ids=["fence alone", "own atomic", "own flag", "own volatile", "the flag of another neighbour"],
)
def test_an_unrelated_atomic_does_not_hide_a_race_between_blocks(between):
    """A fence and an atomic order two blocks only if both blocks use the same place."""
    device = Device(NEIGHBOUR.replace("@@", between))
    with pytest.raises(Race, match=r"this read of byte .* of argument 0, which thread .0,0,0. of block"):
        checked(device, 5, 32, np.zeros(5, np.float32), np.zeros(5, np.int32), np.zeros(5, np.float32))


@pytest.mark.parametrize(
    "between",
    [
        "atomicAdd(&other[0], 1);",
        "atomicAdd(&other[b], 1); if (b > 0) while (atomicAdd(&other[b - 1], 0) == 0) { }",
        "((volatile int*)other)[b] = 1; if (b > 0) while (((volatile int*)other)[b - 1] == 0) { } __threadfence();",
        "other[b] = 1; if (b > 0) while (((volatile int*)other)[b - 1] == 0) { } __threadfence();",
        "atomicExch(&other[b], 1); if (b > 0) while (atomicCAS(&other[b - 1], 1, 1) != 1) { }",
    ],
    ids=["one ticket", "flags by atomics", "volatile flags", "a plain flag", "exchange and compare"],
)
def test_handing_over_at_one_place_orders_two_blocks(between):
    out = np.zeros(5, np.float32)
    checked(Device(NEIGHBOUR.replace("@@", between)), 5, 32, np.zeros(5, np.float32), np.zeros(5, np.int32), out)
    assert out.tolist() == [0, 0, 1, 2, 3]


def test_handing_over_is_transitive():
    """Block 0 to block 1 at one place, block 1 to block 2 at another: block 2 may read what block 0 wrote."""
    source = """extern "C" __global__ void k(float* data, volatile int* flag, float* o) {
    int b = blockIdx.x;
    if (b == 0) data[0] = 42;
    if (b == 1) while (flag[1] == 0) { }
    if (b == 2) { @@ __threadfence(); o[0] = data[0]; }
    __threadfence();
    if (b < 2) flag[b + 1] = 1;
}"""
    out = np.zeros(1, np.float32)
    handed = Device(source.replace("@@", "while (flag[2] == 0) { }"))
    checked(handed, 3, 1, np.zeros(1, np.float32), np.zeros(4, np.int32), out)
    assert out[0] == 42
    with pytest.raises(Race, match="of argument 0"):
        checked(Device(source.replace("@@", "o[1] = flag[3];")), 3, 1, np.zeros(1, np.float32), np.zeros(4, np.int32),
               np.zeros(2, np.float32))  # fmt: skip


def test_too_many_places_are_merged_without_false_alarms(monkeypatch):
    """A race may be missed then, but ordered accesses must not be reported."""
    from climb.emulator.checks import handovers

    monkeypatch.setattr(handovers, "PAIRS", 2)
    out = np.zeros(5, np.float32)
    checked(Device(NEIGHBOUR.replace("@@", "atomicAdd(&other[b], 1);")), 5, 32, np.zeros(5, np.float32),
           np.zeros(5, np.int32), out)  # fmt: skip
    assert out.tolist() == [0, 0, 1, 2, 3]


@pytest.mark.parametrize("places,merged", [(6, False), (5, True)])
def test_places_of_all_instructions_count_towards_what_is_tracked(monkeypatch, places, merged):
    """Blocks 0 and 1 of three hand over at two places. Merged, block 2 seems to know what both have fenced, although
    it looks at a third place."""
    from climb.emulator.checks import handovers

    monkeypatch.setattr(handovers, "PLACES", places)
    source = Device("""extern "C" __global__ void k(float* data, volatile int* flag, float* o) {
    int b = blockIdx.x;
    if (b == 0) { data[0] = 42; __threadfence(); }
    if (b < 2) flag[b] = 1;
    if (b == 2) { o[1] = flag[2]; __threadfence(); o[0] = data[0]; }
}""")
    found = pytest.raises(Race, match="of argument 0") if not merged else nullcontext()
    with found:
        checked(source, 3, 1, np.zeros(1, np.float32), np.zeros(3, np.int32), np.zeros(2, np.float32))
