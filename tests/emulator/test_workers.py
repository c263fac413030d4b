"""Launches in several processes: what they leave behind is what one process leaves, whatever the kernel does."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from harness import Device
from tools.both_ways import PROCESSES, Tally
from tools.thorough import in_turn, thorough
from worker_launches import BLOCKS, THREADS, both_ways_compared, draw, empty, kernels  # noqa: F401

from climb.bench import counting
from climb.bench.ladder import BoundRung
from climb.bench.registry import ladder_names, load_ladder
from climb.emulator import ALL_CHECKS, OutOfBounds, Race, Uninitialised, checking, isa
from climb.emulator.execution import batches
from climb.emulator.execution import workers as module
from climb.emulator.execution.batches import batch_size
from climb.emulator.execution.processes import pool
from climb.emulator.execution.workers import independent, workers
from climb.emulator.isa import registry
from climb.validation.foreign import PROGRAMS, Program, emulated


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


def test_every_line_of_a_kernel_that_prints_is_printed_despite_workers(
    device: Device, compared: Tally, capsys: pytest.CaptureFixture
) -> None:
    """Only the launch's own process prints, so workers must not get any of its blocks."""
    with workers(PROCESSES):
        device.launch("prints", BLOCKS, THREADS, np.arange(BLOCKS * THREADS, dtype=np.int32))
    assert sorted(map(int, capsys.readouterr().out.split())) == list(range(1, BLOCKS * THREADS))
    assert compared == Tally(taken=0, refused=0)


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


@pytest.mark.parametrize(
    ("variable", "beside", "cores", "number"),
    [(None, False, 3, 3), (None, True, 3, 1), ("5", True, 3, 5), (None, False, 10_000, module.MOST)],
)
def test_a_launch_may_use_as_many_processes_as_cores_but_not_beside_other_tests(
    monkeypatch: pytest.MonkeyPatch, variable: str | None, beside: bool, cores: int, number: int
) -> None:
    for name, value in ((module.VARIABLE, variable), ("PYTEST_XDIST_WORKER", "gw0" if beside else None)):
        monkeypatch.delenv(name, raising=False)
        if value is not None:
            monkeypatch.setenv(name, value)
    monkeypatch.setattr(module.sys, "platform", "linux")
    monkeypatch.setattr(module.os, "sched_getaffinity", lambda process: set(range(cores)), raising=False)
    assert module.number_of_workers() == number


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


SAMPLE = ("kmeans", "histogram64", "hotspot")


@pytest.mark.parametrize(
    "program", [one if one.name in SAMPLE else thorough(one) for one in PROGRAMS.values()], ids=lambda one: one.name
)
def test_foreign_program_does_not_depend_on_workers(program: Program, compared: Tally) -> None:
    emulated.run(program)


#: Rungs whose blocks all wait for each other: in batches of a fifth of them, nobody ever comes.
TOGETHER = {
    ("chain", "barrier"), ("chain", "handed_over"), ("unet", "persistent"), ("unet", "output_stationary"),
    ("unet", "in_registers"), ("unet_f16", "output_stationary"),
}  # fmt: skip


def rungs() -> Iterator[object]:
    for name in ladder_names():
        apart = [rung for rung in load_ladder(name) if (name, rung.name) not in TOGETHER]
        yield from (rung if (name, rung.name) == ("conv2d", "naive") else in_turn(rung) for rung in apart)


@pytest.mark.parametrize("rung", list(rungs()), ids=lambda rung: f"{rung.ladder.name}-{rung.name}")
def test_rung_does_not_depend_on_workers(rung: BoundRung, compared: Tally) -> None:
    sizes = [size for size in rung.ladder.problem.check if rung.rung.requires(size) is None]
    counting.launch_counters(rung, sizes[-1])
