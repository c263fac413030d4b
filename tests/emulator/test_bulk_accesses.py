"""Accesses of one thread to many cells: comparing runs of equal stamps finds what comparing each stamp finds."""

from __future__ import annotations

import numpy as np
import pytest

from climb.emulator.checks import accessors, bulk_accesses
from climb.emulator.checks.accessors import Accessors
from climb.emulator.checks.happens_before import Clock
from climb.emulator.checks.stamps import KIND, TICK, Events
from climb.emulator.simt.lanes import Lanes

THREADS = 96


def lanes_of(threads: np.ndarray) -> Lanes:
    """These threads of block 0."""
    return Lanes(np.zeros((1, threads.size), np.int64), threads.reshape(1, -1).astype(np.int64), THREADS, True)


def random_clock(rng: np.random.Generator, steps: int = 12) -> Clock:
    """A clock after lanes, warps and the block have synchronised in many ways, a tick apart."""
    clock = Clock(Events(1), 0, 1, THREADS)
    for _ in range(steps):
        clock.events.moment()
        warp = int(rng.integers(THREADS // 32))
        lanes = lanes_of(np.arange(32) + 32 * warp)
        match int(rng.integers(6)):
            case 0:
                clock.synchronize("warp", lanes)
            case 1:
                mask = np.full((1, 32), rng.integers(1, 1 << 32), np.uint32)
                clock.synchronize_masks(lanes_of(np.flatnonzero(int(mask[0, 0]) >> np.arange(32) & 1) + 32 * warp),
                                        mask[:, :1], bool(rng.integers(2)))  # fmt: skip
            case 2:
                waiting = rng.random((1, THREADS // 32)) < 0.7
                clock.synchronize_warps(np.zeros(1, np.int64), waiting, waiting, np.ones(1, np.int64))
            case 3:
                clock.fence(lanes_of(np.flatnonzero(rng.random(THREADS) < 0.5)))
            case 4:
                clock.acquire(lanes_of(np.flatnonzero(rng.random(THREADS) < 0.5)))
            case 5:
                if rng.random() < 0.2:
                    clock.synchronize("barrier", lanes_of(np.arange(THREADS)))
    clock.events.moment()
    return clock


@pytest.mark.parametrize("seed", range(20))
def test_runs_of_stamps_are_unordered_as_each_stamp_is(seed: int) -> None:
    rng = np.random.default_rng(seed)
    clock, cells = random_clock(rng), 4
    kinds, ticks = rng.integers(0, 3, 200), rng.integers(0, len(clock.events.sites), 200)
    stamps = np.where(ticks > 0, ticks << TICK | kinds << KIND | rng.integers(0, THREADS, 200), 0)
    before = np.repeat(stamps, rng.integers(1, 30, 200))
    before = before[: before.size // cells * cells].reshape(1, -1, cells)
    lanes = lanes_of(np.full(before.shape[1], rng.integers(THREADS)))
    assert before.size >= bulk_accesses.LONG and bulk_accesses.one_thread(lanes.block, lanes.thread)
    for reads in (False, True):
        found = bulk_accesses.unordered(clock, before, lanes, lanes.thread[:, :, None], reads)
        expected = clock.unordered(before, lanes, lanes.thread[:, :, None], False, reads)
        assert found.shape == before.shape and (found == expected).all()
    assert expected.any() and not expected.all()


def test_threads_that_differ_are_compared_one_by_one() -> None:
    clock = Clock(Events(1), 0, 1, THREADS)
    stamp = clock.events.moment() | 5
    clock.events.moment()
    lanes = lanes_of(np.sort(np.arange(bulk_accesses.LONG) % THREADS))
    before = np.full((1, bulk_accesses.LONG, 1), stamp)
    found = bulk_accesses.unordered(clock, before, lanes, lanes.thread[:, :, None], False)
    assert (found[0, :, 0] == (lanes.thread[0] != 5)).all()


def test_a_thread_of_each_block_is_compared_for_itself() -> None:
    clock, half = Clock(Events(2), 0, 2, THREADS), bulk_accesses.LONG // 2
    stamp = clock.events.moment() | 6
    clock.events.moment()
    block, thread = np.arange(2).repeat(half)[None], np.full((1, 2 * half), 5)
    clock.synchronize("barrier", Lanes(np.ones((1, THREADS), np.int64), np.arange(THREADS)[None], THREADS, True))
    before, lanes = np.full((1, 2 * half, 1), stamp), Lanes(block, thread, THREADS, True)
    found = bulk_accesses.unordered(clock, before, lanes, lanes.thread[:, :, None], False)
    assert (found[0, :, 0] == (block[0] == 0)).all()


def test_accessors_are_found_with_and_without_a_first_look(monkeypatch: pytest.MonkeyPatch) -> None:
    outcomes: set[bool] = set()
    for seed in range(20):
        rng = np.random.default_rng(seed)
        clock, held, cells = random_clock(rng, 20), Accessors(), 128
        for tick in range(1, len(clock.events.sites)):
            here = np.flatnonzero(rng.random(32) < rng.random()) + 32 * int(rng.integers(THREADS // 32))
            if here.size:
                index = rng.integers(cells, size=(1, here.size, 1))
                held.enter(index, tick << TICK | here.reshape(1, -1, 1), clock.floor, cells)
        used = np.flatnonzero(held.since(np.arange(cells), np.full(1, clock.floor)))
        for number in range(60):
            some = rng.choice(used, 1) if number % 4 else used
            thread, reads = np.full(some.size, rng.integers(THREADS)), bool(rng.integers(2))
            monkeypatch.setattr(accessors, "LONG", 1 << 30)
            expected = held.unordered(some, np.zeros_like(some), thread, clock, reads)
            monkeypatch.setattr(accessors, "LONG", 1)
            found = held.unordered(some, np.zeros_like(some), thread, clock, reads)
            for one, other in zip(found, expected, strict=True):
                assert one.shape == other.shape and (one == other).all()
            outcomes.add(bool(expected[1].any()))
    assert outcomes == {False, True}
