"""Programs in the styles of courses and worklogs: their answers are right, and only planted faults are reported.

The sources in `foreign/` are as their authors would have written them; `-DFAULT=n` plants the n-th fault of a file.
Every launch makes all checks, and outputs are uninitialised until they are written.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from foreign_collectives import (
    bfs,
    bitonic_shared,
    bitonic_steps,
    blelloch,
    bucket_locks,
    compaction,
    hand_over,
    hillis_steele,
    histo_global,
    histo_match,
    histo_private,
    kahan,
    locked_dot,
    look_back,
    max_and_lists,
    merge_path,
    odd_even,
    radix_pass,
    reduce_loop,
    reduce_old,
    reduce_volta,
    scan_in_place,
    sum_and_max,
    sum_last_block,
    ticket_lock,
)
from foreign_cooperation import stream_k, take_turns, work_queue
from foreign_harness import RNG, Foreign, floats, integers
from foreign_language import carved, haxpy, machine, ptx_inside, vectors
from foreign_numerics import (
    attention,
    blur,
    find,
    hashing,
    heat3d,
    layernorm,
    life,
    mandelbrot,
    monte_carlo,
    nbody,
    sgemm_2d,
    sgemm_naive,
    sgemm_shared,
    sgemm_warptiled,
    softmax,
    spmv_scalar,
    spmv_vector,
    stencil_1d,
    transpose,
)
from tools.thorough import first_of_each, thorough

from climb.emulator import EmulatorError, EndlessLoop, OutOfBounds, Race, Uninitialised


@pytest.fixture(autouse=True)
def seeded_numbers() -> None:
    RNG.bit_generator.state = np.random.default_rng(11).bit_generator.state


CORRECT = [
    reduce_volta, sum_and_max, sum_last_block, kahan, hillis_steele, scan_in_place, blelloch, look_back, bitonic_shared,
    bitonic_steps, odd_even, radix_pass, merge_path, transpose, sgemm_naive, sgemm_shared, sgemm_2d, sgemm_warptiled,
    spmv_scalar, spmv_vector, stencil_1d, heat3d, blur, life, nbody, mandelbrot, monte_carlo, hashing, find, softmax,
    layernorm, attention, histo_global, histo_private, histo_match, compaction, bfs, locked_dot, ticket_lock,
    bucket_locks, max_and_lists, hand_over, haxpy, machine, carved, ptx_inside, vectors,
    work_queue, stream_k, take_turns,
]  # fmt: skip

FAULTS: list[tuple[Callable[[int], None], int, type[EmulatorError]]] = [
    (reduce_old, 0, Race),
    (reduce_loop, 0, Race),
    (reduce_volta, 1, Race),
    (reduce_volta, 2, Race),
    (sum_and_max, 3, (Race, Uninitialised)),
    (sum_and_max, 4, Uninitialised),
    (sum_last_block, 5, Race),
    (sum_last_block, 6, (Race, Uninitialised)),
    (hillis_steele, 1, (Race, Uninitialised)),
    (scan_in_place, 2, Race),
    (blelloch, 3, Uninitialised),
    (blelloch, 4, Race),
    (blelloch, 5, (Race, Uninitialised)),
    (look_back, 6, (Race, Uninitialised)),
    (bitonic_shared, 1, (Race, Uninitialised)),
    (bitonic_steps, 2, Race),
    (odd_even, 3, Race),
    (radix_pass, 4, Uninitialised),
    (merge_path, 5, OutOfBounds),
    (transpose, 1, (Race, Uninitialised)),
    (transpose, 2, (OutOfBounds, Uninitialised)),
    (sgemm_shared, 3, Race),
    (sgemm_2d, 4, Race),
    (sgemm_warptiled, 5, Race),
    (sgemm_warptiled, 6, (Race, Uninitialised)),
    (spmv_vector, 7, Race),
    (stencil_1d, 1, Uninitialised),
    (stencil_1d, 2, (Race, Uninitialised)),
    (heat3d, 3, Race),
    (blur, 4, OutOfBounds),
    (nbody, 1, Uninitialised),
    (nbody, 2, Race),
    (layernorm, 3, (Race, Uninitialised)),
    (attention, 4, Race),
    (histo_global, 1, Race),
    (histo_private, 2, (Race, Uninitialised)),
    (histo_private, 3, Race),
    (bfs, 4, Race),
    (locked_dot, 5, Race),
    (bucket_locks, 6, EndlessLoop),
    (carved, 1, (OutOfBounds, Uninitialised)),
    (work_queue, 2, Race),
    (work_queue, 1, EndlessLoop),
    (stream_k, 3, (Race, Uninitialised)),
    (stream_k, 4, Race),
    (take_turns, 5, Race),
    (take_turns, 6, Race),
]


@pytest.mark.parametrize(
    "program",
    [one if number % 3 == 0 else thorough(one) for number, one in enumerate(CORRECT)],
    ids=lambda program: program.__name__,
)
def test_foreign_kernels_are_right_and_raise_nothing(program: Callable[[int], None]) -> None:
    program(0)


@pytest.mark.parametrize(
    ("program", "fault", "error"),
    first_of_each(FAULTS, lambda each: each[2], unpack=True),
    ids=lambda each: getattr(each, "__name__", None),
)
def test_planted_fault_is_found(program: Callable[[int], None], fault: int, error: type[EmulatorError]) -> None:
    with pytest.raises(error) as raised:
        program(fault)
    where = raised.value.where
    assert where.line and where.text and where.block is not None


def test_functions_are_called_by_address() -> None:
    x = floats(48)
    expected = np.where(np.arange(48) & 1, x * x, x * 2)
    Foreign("language").go("by_pointer", 3, 16, x, 48)
    assert (x == expected).all()


def _wavefronts(addresses: np.ndarray, width: int) -> int:
    """The wavefronts of one load by a warp, lane by lane, as documented: a bank delivers one word at a time."""
    lanes = {4: 32, 8: 16, 16: 8}[width]
    total = 0
    for part in addresses.reshape(-1, lanes):
        wanted = {int(address) // 4 + word for address in part for word in range(width // 4)}
        total += max(sum(word % 32 == bank for word in wanted) for bank in range(32))
    return total


@pytest.mark.parametrize(("kind", "width"), [("float", 4), ("float2", 8), ("float4", 16)])
def test_gathers_cost_what_counting_lane_by_lane_gives(kind: str, width: int) -> None:
    device = Foreign("gather", names=(f"gather<{kind}>",))
    index = integers(0, 200, 256)
    table, near, far = np.zeros(200 * width, np.uint8), np.zeros(256 * width, np.uint8), np.zeros(256 * width, np.uint8)
    counters = device.go(f"gather<{kind}>", 2, 128, index, table, near, far)
    addresses = index.reshape(-1, 32).astype(np.int64) * width
    sectors = sum(len(set((warp // 32).tolist())) for warp in addresses)
    shared = sum(_wavefronts(warp, width) for warp in addresses)
    lines = {(one.text, one.kind): one for one in counters.lines}
    from_shared = lines["near[t] = held[k];", "shared load"]
    from_global = lines["far[t] = table[k];", "global load"]
    assert (from_shared.requests, from_shared.lanes, from_shared.wavefronts) == (8, 256, shared)
    assert (from_global.requests, from_global.lanes) == (8, 256)
    assert from_global.width == width and from_global.sectors == sectors


def test_recursive_functions_run() -> None:
    out = np.zeros(32, np.int32)
    Foreign("language").go("fib", 1, 32, out)
    assert out.tolist() == [0, 1, 1, 2, 3, 5, 8, 13] * 4
