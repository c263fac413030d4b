"""Theoretical occupancy equals values computed by hand and those of ncu, and has its general properties."""

from __future__ import annotations

import sys
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tools.thorough import thorough

from climb import ArgumentError, cp, load_ladder
from climb.bench.occupancy_profile import Profiled, occupancy_profile
from climb.toolchain import compile_cuda
from climb.toolchain.occupancy import (
    KB,
    MULTIPROCESSORS,
    CannotLaunch,
    kernel_occupancy,
    occupancy_of,
    refusal,
)

ARCHITECTURES = tuple(MULTIPROCESSORS)

#: (registers, shared bytes, threads, arch) -> blocks on an SM and what limits them. The arithmetic is beside each.
BY_HAND = [
    # 64 warps / 8 = 8 blocks; 32 x 32 = 1024 registers a warp, 16 warps a scheduler: 64 / 8 = 8 as well.
    ((32, 0, 256, "sm_90"), 8, ("warps", "registers")),
    # 33 x 32 = 1056, rounded to 1280: 12 warps a scheduler, 48 in all, 6 blocks of 8.
    ((33, 0, 256, "sm_90"), 6, ("registers",)),
    # 40 x 32 = 1280: the same as 33.
    ((40, 0, 256, "sm_90"), 6, ("registers",)),
    # One warp a block: 32 places for blocks come before 64 places for warps.
    ((16, 0, 32, "sm_90"), 32, ("blocks",)),
    # 33 threads are two warps.
    ((16, 0, 33, "sm_90"), 32, ("warps", "blocks")),
    # 3 warps a block: 64 / 3 = 21, one warp's place stays empty.
    ((16, 0, 96, "sm_90"), 21, ("warps",)),
    # 24 warps a block: two, and 16 places stay empty.
    ((16, 0, 768, "sm_90"), 2, ("warps",)),
    # 255 x 32 = 8160, rounded to 8192: 2 warps a scheduler, 8 in all.
    ((255, 0, 64, "sm_90"), 4, ("registers",)),
    # 168 x 32 = 5376: 3 warps a scheduler, 12 in all, so 2 blocks of 5 warps and not 65536 / 5376 = 12.19 -> 2.4.
    ((168, 0, 160, "sm_90"), 2, ("registers",)),
    # 228 KB / (48 + 1) KB = 4.65.
    ((32, 48 * KB, 128, "sm_90"), 4, ("shared memory",)),
    # (227 + 1) KB: the whole of it. A byte less, and still only one.
    ((32, 227 * KB, 128, "sm_90"), 1, ("shared memory",)),
    # 75 KB + 1 KB = 76, three times is 228; one byte more is rounded up to 128 more, and only two fit.
    ((32, 75 * KB, 128, "sm_90"), 3, ("shared memory",)),
    ((32, 75 * KB + 1, 128, "sm_90"), 2, ("shared memory",)),
    # The same block elsewhere: 164 / 76 = 2; 100 / 76 = 1.
    ((32, 75 * KB, 128, "sm_80"), 2, ("shared memory",)),
    ((32, 75 * KB, 128, "sm_86"), 1, ("shared memory",)),
    # 32 warps on an SM of 7.5 and no kilobyte kept back: 64 / 16 = 4 blocks of 8 warps, by warps too.
    ((32, 16 * KB, 256, "sm_75"), 4, ("warps", "shared memory")),
    # 16 blocks of two warps fill 32 of 48 places; 24 on 8.9.
    ((32, 0, 64, "sm_86"), 16, ("blocks",)),
    ((32, 0, 64, "sm_89"), 24, ("warps", "blocks")),
    # 1024 threads are 32 warps: one block fits the 48 places of 12.0, two the 64 of 10.0.
    ((32, 0, 1024, "sm_120"), 1, ("warps",)),
    ((32, 0, 1024, "sm_100"), 2, ("warps", "registers")),
]


@pytest.mark.parametrize(("kernel", "blocks", "limited_by"), BY_HAND)
def test_occupancy_matches_cases_computed_by_hand(kernel: tuple, blocks: int, limited_by: tuple[str, ...]) -> None:
    found = occupancy_of(*kernel)
    assert (found.blocks, found.limited_by) == (blocks, limited_by)


REGISTERS, SHARED, THREADS = st.integers(1, 255), st.integers(0, 64 * KB), st.integers(1, 1024)
ARCH = st.sampled_from(ARCHITECTURES)


def blocks(*kernel: int | str) -> int:
    """Blocks on an SM, 0 where none can be launched."""
    try:
        return occupancy_of(*kernel).blocks
    except CannotLaunch:
        return 0


@given(REGISTERS, SHARED, THREADS, ARCH)
def test_no_resource_is_allocated_beyond_its_budget(registers: int, shared: int, threads: int, arch: str) -> None:
    """The SM has everything that the blocks take; one block more would exceed some resource."""
    sm = MULTIPROCESSORS[arch]
    try:
        found = occupancy_of(registers, shared, threads, arch)
    except CannotLaunch:
        return

    def fits(blocks: int) -> bool:
        # Warp by warp, dealt to four schedulers in turn.
        per_scheduler = -(-blocks * found.warps_per_block // 4)
        return (
            blocks <= sm.blocks
            and blocks * found.warps_per_block <= sm.warps
            and per_scheduler * found.registers_per_warp <= 16384
            and blocks * found.shared_per_block <= sm.shared
        )

    assert found.blocks >= 1
    assert 0 < found.fraction <= 1
    assert fits(found.blocks)
    assert not fits(found.blocks + 1)


@given(REGISTERS, SHARED, THREADS, ARCH, st.integers(1, 50))
def test_larger_demand_never_gives_more_blocks(registers: int, shared: int, threads: int, arch: str, more: int) -> None:
    least = blocks(registers, shared, threads, arch)
    assert blocks(registers + more, shared, threads, arch) <= least
    assert blocks(registers, shared + more, threads, arch) <= least
    assert blocks(registers, shared, threads + more, arch) <= least


@given(REGISTERS, SHARED, THREADS)
def test_smaller_carve_out_never_gives_more_blocks(registers: int, shared: int, threads: int) -> None:
    try:
        found = [
            occupancy_of(registers, shared, threads, carveout=c).blocks for c in MULTIPROCESSORS["sm_90"].carveouts
        ]
    except CannotLaunch:
        return
    assert found == sorted(found)
    assert found[-1] == occupancy_of(registers, shared, threads).blocks
    assert found[0] == 0  # no carve-out of 0 holds the kilobyte that the system keeps


@pytest.mark.parametrize(
    ("kernel", "said"),
    [
        ((32, 0, 0, "sm_90"), "0 threads per block"),
        ((32, 0, 1025, "sm_90"), "1025 threads per block"),
        ((256, 0, 32, "sm_90"), "256 registers per thread"),
        ((65, 0, 1024, "sm_90"), "1024 threads of 65 registers"),
        ((32, 227 * KB + 1, 32, "sm_90"), "232449 bytes of shared memory"),
        ((32, 100 * KB, 32, "sm_86"), "102400 bytes of shared memory"),
    ],
)
def test_block_that_no_sm_can_hold_is_refused(kernel: tuple, said: str) -> None:
    with pytest.raises(CannotLaunch, match=said):
        occupancy_of(*kernel)


def test_carve_out_that_does_not_exist_is_refused() -> None:
    with pytest.raises(
        CannotLaunch, match=r"no carve-out of 9\.0; it has 0, 8, 16, 32, 64, 100, 132, 164, 196, 228 KB"
    ):
        occupancy_of(32, 0, 128, carveout=48 * KB)


POINTS = occupancy_profile().points


@pytest.mark.parametrize("point", POINTS, ids=lambda point: point.label)
def test_theoretical_occupancy_equals_that_of_ncu(point: Profiled) -> None:
    """From the registers that ncu saw, which are of the compiler on that machine: every limit, and the percentage."""
    assert point.theory(as_configured=True).limits == point.limits
    assert round(100 * point.theory().fraction, 2) == point.counts["theoretical_pct"]
    assert point.theory(as_configured=True).blocks == point.theory().blocks  # the driver carved out enough


def test_the_profile_is_of_many_kernels() -> None:
    counts = [point.counts for point in POINTS]
    assert len({(point.ladder, point.rung) for point in POINTS}) >= 25
    assert len({c["block"] for c in counts}) >= 20 and len({c["registers"] for c in counts}) >= 12
    assert min(c["dynamic_shared"] for c in counts) == 0 and max(c["dynamic_shared"] for c in counts) == 227 * KB
    assert any(c["static_shared"] for c in counts)
    assert {name for point in POINTS for name in point.theory().limited_by} == {
        "warps", "blocks", "registers", "shared memory"
    }  # fmt: skip


@pytest.mark.parametrize("unit", ["REGISTER_UNIT", "SCHEDULERS", "KB"])
def test_the_profile_would_find_a_wrong_unit(monkeypatch: pytest.MonkeyPatch, unit: str) -> None:
    """With any of the three units off, some kernel of the profile comes out differently."""
    module = sys.modules["climb.toolchain.occupancy"]
    if unit == "KB":
        sm = replace(MULTIPROCESSORS["sm_90"], reserved_shared=0)
        monkeypatch.setitem(module.MULTIPROCESSORS, "sm_90", sm)
    else:
        monkeypatch.setattr(module, unit, 1)
    assert any(point.theory(as_configured=True).limits != point.limits for point in POINTS)


def test_a_compiled_kernel_is_read_from_its_cubin() -> None:
    source = """
    __global__ void shared(const float* in, float* out) {
        __shared__ float tile[2048];
        tile[threadIdx.x] = in[threadIdx.x];
        __syncthreads();  // the tile is whole
        out[threadIdx.x] = tile[blockDim.x - 1 - threadIdx.x];
    }"""
    compiled = compile_cuda(source, filename="shared.cu", name_expressions=("shared",))
    found = kernel_occupancy(compiled, "shared", 64, 10 * KB)
    assert found.shared_per_block == (8 + 10 + 1) * KB
    assert (found.blocks, found.limited_by) == (12, ("shared memory",))  # 228 / 19
    turing = kernel_occupancy(
        compile_cuda(source, filename="shared.cu", name_expressions=("shared",), arch="sm_75"), "shared", 64, 10 * KB
    )
    assert (turing.blocks, turing.limited_by) == (3, ("shared memory",))  # 64 / 18


@pytest.mark.parametrize("arch", [ARCHITECTURES[0], *(thorough(arch) for arch in ARCHITECTURES[1:])])
def test_the_rungs_of_the_chapter_can_be_launched_everywhere(arch: str) -> None:
    for ladder in (load_ladder("occupancy"), load_ladder("occupancy_fma")):
        for rung in ladder:
            (launch,) = rung.launches(ladder.problem.headline[0])
            found = kernel_occupancy(rung.compiled(ladder.problem.headline[0], arch), launch.kernel, 128)
            assert found.blocks >= 1


@pytest.mark.parametrize(
    ("threads", "shared", "says"),
    [
        (0, 0, "'threads' is 0; expected a whole number of at least 1"),
        (1025, 0, "1 to 1024 threads per block"),
        (128, -1, "'shared' is -1; expected a whole number of at least 0"),
        (128, 227 * KB + 1, "0 to 232448 bytes of dynamic shared memory per block"),
    ],
)
def test_a_block_that_cannot_be_launched_is_refused_before(threads: int, shared: int, says: str) -> None:
    assert refusal(threads, shared) is not None
    assert refusal(max(1, min(threads, 1024)), max(0, min(shared, 227 * KB))) is None
    with pytest.raises(ArgumentError, match=says):
        load_ladder("occupancy")["one_float"](cp.zeros(5, dtype=np.float32), threads=threads, shared=shared)


def test_a_block_needs_no_shared_memory() -> None:
    ones = cp.asarray(np.ones(5, np.float32))
    assert (cp.asnumpy(load_ladder("occupancy")["one_float"](ones, threads=64, shared=0)) == 1).all()


#: Places for blocks and for warps on an SM, from the table of compute capabilities in the CUDA C++ Programming Guide.
PLACES = {
    "sm_75": (16, 32), "sm_80": (32, 64), "sm_86": (16, 48), "sm_87": (16, 48),
    "sm_89": (24, 48), "sm_90": (32, 64), "sm_100": (32, 64), "sm_120": (24, 48),
}  # fmt: skip


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_blocks_of_one_warp_find_the_places_of_the_architecture(arch: str) -> None:
    found = occupancy_of(16, 0, 32, arch)
    assert (found.limits["blocks"], found.limits["warps"]) == PLACES[arch]


def test_theory_takes_the_largest_carve_out_unless_the_configured_one_is_asked_for() -> None:
    """One warp without shared memory of its own: each block takes 1 KB of 228, or of the 32 that were configured."""
    point = occupancy_profile().at("occupancy", "one_float", n=1 << 26, threads=32, shared=0)
    assert point.counts["shared_configured"] == 32 * KB
    assert point.theory().limits["shared memory"] == 228
    assert point.theory(as_configured=True).limits["shared memory"] == 32


def test_a_profiled_launch_is_found_by_ladder_rung_and_size() -> None:
    profile = occupancy_profile()
    assert profile.gpu == "NVIDIA H200"
    for rung, shared in (("one_quad", 0), ("one_quad", 48 * KB), ("released", 48 * KB)):
        size = {"n": 1 << 26, "threads": 128, "shared": shared}
        point = profile.at("occupancy", rung, **size)
        assert (point.ladder, point.rung, point.size) == ("occupancy", rung, size)
        assert point.counts["dynamic_shared"] == shared
    with pytest.raises(LookupError, match="ncu was not asked about occupancy one_quad at n=5"):
        profile.at("occupancy", "one_quad", n=5)
    with pytest.raises(FileNotFoundError):
        occupancy_profile("no-such-gpu")
