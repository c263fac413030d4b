"""Launches in several processes: what they leave behind is what one process leaves, whatever happens to the others."""

from __future__ import annotations

import os
import pickle
import signal
import threading
from collections.abc import Iterator

import numpy as np
import pytest
from harness import Device
from tools.both_ways import PROCESSES, Tally, both_ways, start_workers
from tools.thorough import in_turn, thorough

from climb.bench import counting
from climb.bench.ladder import BoundRung
from climb.bench.registry import ladder_names, load_ladder
from climb.emulator import ALL_CHECKS, OutOfBounds, Race, Uninitialised, checking, isa
from climb.emulator.execution import ahead, batches, processes
from climb.emulator.execution.batches import batch_size
from climb.emulator.execution.processes import KEPT_BYTES, Worker, pool
from climb.emulator.execution.workers import independent, number_of_workers, workers
from climb.emulator.isa import registry
from climb.emulator.memory import footprint
from climb.emulator.memory.device_memory import DeviceMemory
from climb.emulator.memory.footprint import Footprint, TooManyUpdates, Update, overlap, read_and_changed
from climb.validation.foreign import PROGRAMS, Program, emulated

BLOCKS, THREADS = 20, 64
SOURCE = """
#include <cuda_fp16.h>
typedef unsigned long long wide;
#define KERNEL extern "C" __global__ void
#define I (blockIdx.x * blockDim.x + threadIdx.x)
__constant__ float table[4] = {1, 2, 3, 4};
__device__ int tally[8];
__device__ float last[64];
KERNEL store(const float* in, float* out) { out[I] = in[I] * table[I % 4]; }
KERNEL strided(const float4* in, double2* out, int n) {
    for (int i = I; i < n; i += gridDim.x * blockDim.x) {
        float4 v = in[i];
        out[2 * i] = make_double2(v.x + v.y, v.z * v.w);
    }
}
KERNEL bytes(const unsigned char* in, unsigned char* out) {
    if (threadIdx.x % 3 == 0) out[I] = in[I] + 1;
}
KERNEL in_place(float* x, int n) {
    for (int i = I; i < n; i += gridDim.x * blockDim.x) x[i] = 2 * x[i] + 1;
}
KERNEL interleaved(float* x) { int i = threadIdx.x * gridDim.x + blockIdx.x; x[i] = 2 * x[i] + 1; }
KERNEL sums(const float* in, float* sum, int* most, wide* bits, __half2* halves, unsigned* turns) {
    atomicAdd(sum + I % 3, in[I]);
    atomicMax(most, (int)(1000 * in[I]));
    atomicXor(bits, 1ull << I % 64);
    atomicAdd(halves, __floats2half2_rn(in[I], 1));
    atomicInc(turns, 6);
    atomicAdd(tally + I % 8, 1);
    if (threadIdx.x == 0) last[blockIdx.x] = in[I];
}
KERNEL shared(const float* in, float* out) {
    __shared__ float s[64];
    s[threadIdx.x] = in[I];
    __syncthreads();
    if (threadIdx.x < 20) out[I] = s[63 - threadIdx.x];
}
__global__ void __cluster_dims__(2) pairs(const float* in, float* out) {
    __shared__ float s[64];
    s[threadIdx.x] = in[I];
    asm volatile("barrier.cluster.arrive; barrier.cluster.wait;");
    unsigned at, rank = blockIdx.x % 2 ^ 1;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(at)
        : "r"((unsigned)__cvta_generic_to_shared(s + threadIdx.x)), "r"(rank));
    float v;
    asm volatile("ld.shared::cluster.f32 %0, [%1];" : "=f"(v) : "r"(at));
    asm volatile("barrier.cluster.arrive; barrier.cluster.wait;");
    out[I] = v;
}
KERNEL neighbour(float* x, int away) {
    if (I >= away) x[I] = x[I - away] + 1;
}
KERNEL following(float* x, float* out) {
    if (I < 640) out[I] = x[I + 640]; else x[I] = 1;
}
KERNEL overwritten(float* x, const float* in) { x[I % 640] = in[I]; }
KERNEL mixed(int* sum, int* out) {
    if (blockIdx.x < 8) atomicAdd(sum + I % 512, 1); else out[I] = sum[I % 512];
}
KERNEL exchanged(const float* in, float* out) { if (I < 900) atomicExch(out + I, in[I]); }
KERNEL unwritten(const float* in, float* out) { out[I] = I < 1270 ? 1 : in[I]; }
KERNEL slow(float* x, int n) {
    if (blockIdx.x == 0) x[1 << 16] = 1;
    for (int i = 0; i < n; i++) x[I] += i;
}
KERNEL counted(int* sum, int* out) {
    atomicAdd(sum + I, 1);
    out[I] = sum[I];
}
KERNEL outside(float* x, int first, int second) {
    x[I] = 1;
    if (I == first || I == second) x[1 << 16 | I] = 2;
}
KERNEL choice(const float* a, const float* b, float* out, int second) { out[I] = second ? b[I] : a[I]; }
KERNEL left_alone(const float* in, float* out) { if (I < 900) out[I] = in[I]; }
KERNEL ticket(int* next, int* out) { out[I] = atomicAdd(next, 1); }
KERNEL flag(volatile int* x, int* out) { out[I] = x[I]; }
KERNEL prints(int* x) { if (x[I]) printf("%d\\n", I); }
KERNEL takes(int** x) { x[I] = (int*)malloc(4); }
"""


@pytest.fixture(scope="module")
def device() -> Iterator[Device]:
    yield Device(SOURCE, names=("pairs",))
    pool.end()


@pytest.fixture
def compared(monkeypatch: pytest.MonkeyPatch) -> Iterator[Tally]:
    with both_ways(monkeypatch) as tally:
        yield tally


def draw(dtype: type = np.float32, size: int = BLOCKS * THREADS) -> np.ndarray:
    return (100 * np.random.default_rng(3).random(size)).astype(dtype)


def empty(dtype: type = np.float32, size: int = BLOCKS * THREADS) -> np.ndarray:
    return np.zeros(size, dtype)


@pytest.mark.parametrize("checks", [(), ALL_CHECKS], ids=["unchecked", "checked"])
@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("store", lambda: (draw(), empty())),
        ("strided", lambda: (draw(size=16000), empty(np.float64, 16000), 4000)),
        ("bytes", lambda: (draw(np.uint8), empty(np.uint8))),
        ("in_place", lambda: (draw(size=5000), 5000)),
        ("interleaved", lambda: (draw(),)),
        ("sums", lambda: (draw(), *map(empty, (np.float32, np.int32, np.uint64, np.float32, np.uint32)))),
        ("shared", lambda: (draw(), empty())),
        ("pairs", lambda: (draw(), empty())),
        ("left_alone", lambda: (draw(), empty())),
    ],
)
def test_results_of_workers_are_taken_and_are_those_of_one_process(
    device: Device, compared: Tally, name: str, arguments, checks
) -> None:
    with checking(checks):
        device.launch(name, BLOCKS, THREADS, *arguments())
    assert compared.taken == 1
    assert compared.refused == (name == "interleaved"), "only these blocks have overlapping intervals"


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("neighbour", lambda: (draw(), THREADS)),
        ("neighbour", lambda: (draw(), 8 * THREADS)),
        ("following", lambda: (draw(), empty())),
        ("overwritten", lambda: (empty(size=640), draw())),
        ("counted", lambda: (empty(np.int32), empty(np.int32))),
        ("mixed", lambda: (empty(np.int32), empty(np.int32))),
    ],
)
@pytest.mark.parametrize("checks", [(), ALL_CHECKS], ids=["unchecked", "checked"])
def test_blocks_that_read_what_others_change_are_run_in_order(
    device: Device, compared: Tally, name: str, arguments, checks
) -> None:
    races = checks and name != "counted"
    with checking(checks):
        if races:
            with pytest.raises(Race):
                device.launch(name, BLOCKS, THREADS, *arguments())
        else:
            device.launch(name, BLOCKS, THREADS, *arguments())
    # A later block may change what an earlier one has read or written, unless races are looked for.
    assert compared.taken == (name in ("following", "overwritten") and not checks)


@pytest.mark.parametrize("name", ["left_alone", "exchanged"])
def test_bytes_that_workers_write_hold_values_and_others_do_not(device: Device, compared: Tally, name: str) -> None:
    out = device.memory.allocate(4 * BLOCKS * THREADS, initialised=False)
    device.launch(name, BLOCKS, THREADS, draw(), out)
    assert compared.taken == 1 and out.written.tolist() == 3600 * [1] + 1520 * [0]


def test_worker_finds_reads_of_what_nothing_has_written(device: Device, compared: Tally) -> None:
    given = device.memory.allocate(4 * BLOCKS * THREADS, initialised=False)
    with pytest.raises(Uninitialised):
        device.launch("unwritten", BLOCKS, THREADS, given, empty())
    assert compared.taken == 0


def test_workers_stop_when_the_launch_ends_without_them(device: Device, compared: Tally) -> None:
    with pytest.raises(OutOfBounds):
        device.launch("slow", BLOCKS, THREADS, empty(), 10_000_000)
    assert pool.start(PROCESSES - 1, seconds=2) == PROCESSES - 1


@pytest.mark.parametrize(("first", "second"), [(0, 1279), (700, 1279), (1279, 1278), (1279, 700)])
def test_error_of_the_lowest_block_is_raised(device: Device, compared: Tally, first: int, second: int) -> None:
    with pytest.raises(OutOfBounds) as raised:
        device.launch("outside", BLOCKS, THREADS, empty(), first, second)
    assert raised.value.where.block[0] == min(first, second) // THREADS
    assert compared.taken == 0
    assert not device.kernel("outside")._experience.alone, "the next launch may be right"


@pytest.mark.parametrize("name", ["ticket", "flag", "prints", "takes"])
def test_kernels_whose_blocks_can_see_each_other_are_not_independent(device: Device, name: str) -> None:
    assert not independent(device.kernel(name).code)


#: What instructions that reach global memory begin with. The loads, stores and atomics among them record what they
#: access (`memory.footprint`); `workers._ELSEWHERE` has the others.
REACH = {
    "alloca", "applypriority", "atom", "call", "cp", "frame", "ld", "prefetch", "prefetchu", "red", "st", "suld",
    "sured", "sust", "tensormap", "tex", "tld4", "wmma",
}  # fmt: skip
SHARED_ONLY = {"ldmatrix", "stmatrix", "mbarrier", "wgmma", "mma"}


def test_every_instruction_that_may_reach_global_memory_is_known() -> None:
    assert isa is not None
    found = {name for pattern in registry.patterns() for name in pattern.mnemonics()}
    memory = {name for name in found if name.startswith(("ld", "st", "pre", "cp", "discard", "multimem", "tensor"))}
    assert memory <= REACH | SHARED_ONLY | {"stackrestore", "stacksave"}, "does it record what it accesses?"


def test_batches_are_of_whole_clusters_and_an_even_number() -> None:
    for blocks, threads, cluster in [(1, 1024, 1), (32, 1024, 1), (33, 1024, 1), (4096, 256, 1), (6000, 96, 8)]:
        size = batch_size(blocks, threads, cluster)
        number = -(-blocks // size)
        assert size % cluster == 0 and (size * threads <= batches.MOST_LANES or size == cluster)
        assert number == 1 if blocks * threads <= batches.LANES else number % 2 == 0
        wide = batch_size(blocks, threads, cluster, wide=True)
        assert wide >= size and wide % cluster == 0 and wide * threads <= 2 * batches.MOST_LANES


@pytest.mark.parametrize(
    ("kernel", "code", "wide"),
    [
        ("plain", "o[i] = i;", True), ("whole", "atomicAdd(o, 1);", True),
        ("real", "atomicAdd((float*)o, 1.f);", False), ("returns", "o[i] = atomicAdd(o, 1);", False),
        ("clocks", "o[i] = clock();", False),
    ],
)  # fmt: skip
def test_only_kernels_that_may_run_in_any_order_get_wide_batches(kernel: str, code: str, wide: bool) -> None:
    source = f'extern "C" __global__ void {kernel}(int* o) {{ int i = blockIdx.x * blockDim.x + threadIdx.x; {code} }}'
    assert Device(source).kernel(kernel)._any_order == wide


def test_launch_does_without_workers_if_there_is_no_room_for_copies(
    device: Device, compared: Tally, monkeypatch: pytest.MonkeyPatch
) -> None:
    reserve, full = Worker.reserve, iter([False, True])

    def fails(worker: Worker, nbytes: int) -> np.ndarray:
        if next(full):
            raise OSError("no space left on device")
        return reserve(worker, nbytes)

    monkeypatch.setattr(Worker, "reserve", fails)
    device.launch("store", BLOCKS, THREADS, draw(), empty())
    assert compared.taken == compared.refused == 0 and next(full, "asked twice") == "asked twice"


@pytest.mark.parametrize("how", ["killed", "stopped", "killed before"])
def test_launch_survives_its_workers(device: Device, monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    monkeypatch.setattr(ahead, "WORTH", 0)
    monkeypatch.setattr(ahead, "GRACE", 0.05)
    monkeypatch.setattr(batches, "LANES", 64)
    monkeypatch.setattr(batches, "MOST_LANES", 256)
    start_workers()
    ids = [worker.pid for worker in pool.workers]
    send = Worker.send

    def end(worker: Worker, job: processes.Job) -> None:
        if how == "killed before":
            os.kill(worker.pid, signal.SIGKILL)
            os.waitid(os.P_PID, worker.pid, os.WEXITED | os.WNOWAIT)
        else:
            os.kill(worker.pid, signal.SIGSTOP)
        send(worker, job)
        if how == "killed":
            os.kill(worker.pid, signal.SIGKILL)

    monkeypatch.setattr(Worker, "send", end)
    given, out = draw(), empty()
    with workers(PROCESSES):
        device.launch("store", BLOCKS, THREADS, given, out)
    assert np.array_equal(out, given * np.resize(np.float32([1, 2, 3, 4]), out.size))
    assert not device.kernel("store")._experience.alone, "the kernel is not to blame"
    left = {worker.pid for worker in pool.workers if not worker.ended}
    for each in set(ids) - left:
        with pytest.raises(ProcessLookupError):  # not even a zombie is left
            os.kill(each, 0)
    pool.end()
    assert not pool.workers and set(ids) - left


def test_what_workers_have_not_read_is_copied_again_when_they_read_it(
    device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ahead, "WORTH", 0)
    monkeypatch.setattr(ahead, "COPYING", 0)
    monkeypatch.setattr(batches, "LANES", 64)
    monkeypatch.setattr(batches, "MOST_LANES", 256)
    start_workers()
    taken, finished = [], ahead.Ahead.finished

    def counted(self: ahead.Ahead, number: int) -> bool:
        outcome = finished(self, number)
        if self.workers and number == self._first:
            taken.append((outcome, bool(self.unread)))
        return outcome

    monkeypatch.setattr(ahead.Ahead, "finished", counted)
    for second in (0, 0, 1, 1, 1):
        given, out = [draw(), 2 * draw()], empty()
        with workers(PROCESSES):
            device.launch("choice", BLOCKS, THREADS, *given, out, second)
        assert np.array_equal(out, given[second])
    # The third launch reads an array that the second one did not; so its workers had no copy of it.
    assert taken == [(True, False), (True, True), (False, True), (True, False), (True, True)]
    assert not device.kernel("choice")._experience.alone


def test_threads_of_this_process_launch_at_the_same_time(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ahead, "WORTH", 0)
    monkeypatch.setattr(batches, "LANES", 64)
    monkeypatch.setattr(batches, "MOST_LANES", 256)
    start_workers()
    right = []

    def launch() -> None:
        own = Device.of(device.compiled)
        given, out = draw(), empty()
        with workers(PROCESSES):
            own.launch("store", BLOCKS, THREADS, given, out)
        right.append(np.array_equal(out, given * np.resize(np.float32([1, 2, 3, 4]), out.size)))

    threads = [threading.Thread(target=launch) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert right == 4 * [True]


def test_large_shared_memory_is_freed_after_the_launch() -> None:
    start_workers()
    worker = pool.workers[0]
    with pool.held():
        worker.reserve(KEPT_BYTES + 1)
    assert worker.shared.size == 0 and os.fstat(worker._memory).st_size == 0


def test_number_of_workers_is_that_of_the_cores_unless_the_environment_says_otherwise(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)
    monkeypatch.delenv("CLIMB_WORKERS", raising=False)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: range(6))
    assert number_of_workers() == 6
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: range(96))
    assert number_of_workers() == 8
    monkeypatch.setenv("PYTEST_XDIST_WORKER", "gw0")
    assert number_of_workers() == 1
    monkeypatch.setenv("CLIMB_WORKERS", "3")
    assert number_of_workers() == 3
    with workers(2):
        assert number_of_workers() == 2
    for wrong in ("0", "-1", "many", ""):
        monkeypatch.setenv("CLIMB_WORKERS", wrong)
        with pytest.raises(ValueError, match="CLIMB_WORKERS"):
            number_of_workers()


def test_footprints_find_reads_of_what_changed_and_changes_of_one_byte() -> None:
    held = DeviceMemory().allocate(64)
    one, other = Footprint(later=False), Footprint(later=True)
    one.store(held, np.array([[3]]), 4)  # bytes 12 to 15
    assert not other.load(held, held.address + 8, held.address + 12)
    assert not other.load(held, held.address + 16, held.address + 24)
    assert not read_and_changed(other.reads, one.stores)
    other.load_elements(held, np.array([[15]]), 1)
    assert read_and_changed(other.reads, one.stores) == {held.address}
    exact = Footprint(later=True, followed=frozenset({held.address}))
    assert exact.load(held, held.address, held.address + 64)
    exact.load_elements(held, np.array([[2, 4]]), 4)
    assert not exact.reads and not overlap(exact.loads, one.stores)
    exact.load_elements(held, np.array([[1]]), 8)
    assert overlap(exact.loads, one.stores)
    other.store(held, np.array([[0]]), 8)
    assert not overlap(one.stores, other.stores)
    other.store(held, np.array([[15]]), 1)
    assert overlap(one.stores, other.stores) and overlap(other.stores, one.stores)


def test_intervals_of_loads_are_joined_when_there_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(footprint, "MOST_INTERVALS", 3)
    held, some = DeviceMemory().allocate(64), Footprint(later=False)
    for start in range(0, 32, 8):
        some.load(held, held.address + start, held.address + start + 4)
    assert some.reads == {held.address: {(0, 28)}}


def test_worker_gives_up_if_there_are_too_many_atomics_to_keep(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(footprint, "MOST_UPDATES", 99)
    held, some = DeviceMemory().allocate(64), Footprint(later=True)
    update = Update(held.address, np.dtype(np.int32), np.zeros(64, np.int64), "add", np.ones(64, np.int32), None)
    assert not some.atomic(held, update)
    (again,) = pickle.loads(pickle.dumps(some)).updates
    assert again.element is np.dtype(np.int32) and again.value.dtype is np.dtype(np.int32)  # as np.add.at wants it
    with pytest.raises(TooManyUpdates):
        some.atomic(held, update)


SAMPLE = ("kmeans", "histogram64", "hotspot")


@pytest.mark.parametrize(
    "program", [one if one.name in SAMPLE else thorough(one) for one in PROGRAMS.values()], ids=lambda one: one.name
)
def test_foreign_program_does_not_depend_on_workers(program: Program, compared: Tally) -> None:
    emulated.run(program)


#: Rungs whose blocks all wait for each other: in batches of a fifth of them, nobody ever comes.
TOGETHER = {
    ("chain", "barrier"), ("chain", "handed_over"), ("unet", "persistent"), ("unet", "streamed"),
    ("unet", "in_registers"), ("unet_f16", "streamed"),
}  # fmt: skip


def rungs() -> Iterator[object]:
    for name in ladder_names():
        apart = [rung for rung in load_ladder(name) if (name, rung.name) not in TOGETHER]
        yield from (rung if (name, rung.name) == ("conv2d", "naive") else in_turn(rung) for rung in apart)


@pytest.mark.parametrize("rung", list(rungs()), ids=lambda rung: f"{rung.ladder.name}-{rung.name}")
def test_rung_does_not_depend_on_workers(rung: BoundRung, compared: Tally) -> None:
    sizes = [size for size in rung.ladder.problem.check if rung.rung.requires(size) is None]
    counting.launch_counters(rung, sizes[-1])
