"""The chapter on the 1D convolution: its exercises, its exhibits, and what its rungs and tables rest on."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from climb import ArgumentError, check, count_kernel, counters, cp, load_ladder, verify
from climb.bench.exercise import drifted
from climb.emulator.errors import OutOfBounds, WarpMismatch
from kernels.conv1d.conv1d import (
    BEST_CHANNELS,
    MAX_TAPS,
    UNET,
    UNET_COUNTS,
    Fit,
    fit,
    in_flight_fit,
    in_order_fit,
    inside_fit,
    layer,
    staged_bytes,
)
from kernels.conv1d.conv1d_channels import CHANNELS, LAYERS
from kernels.conv1d.exercises import exhibit, filters, fold, padding, reader

ROOT = Path(__file__).resolve().parents[3]
CHAPTER = ROOT / "book" / "conv1d.ipynb"
CONV1D = load_ladder("conv1d")
EXERCISES = pytest.mark.parametrize("exercise", [filters, fold, padding], ids=lambda exercise: exercise.name)


@EXERCISES
def test_a_solution_passes_and_the_skeleton_does_not(exercise) -> None:
    assert check(exercise.solution, exercise)
    assert not check(exercise.skeleton, exercise)


@pytest.mark.skipif(not CHAPTER.exists(), reason="the chapter is not in the book yet")
@EXERCISES
def test_the_cell_of_the_chapter_is_the_skeleton(exercise) -> None:
    assert not drifted(CHAPTER, exercise)


@pytest.mark.parametrize(
    ("exercise", "change", "says"),
    [
        (filters, ("first * kTaps + i < n * kTaps", "true"), "out of bounds"),
        (filters, ("    __syncwarp();  // the warp's filters are there before any lane reads its own\n", ""), "race"),
        (fold, ("const bool upper = lane & offset", "const bool upper = lane & 1"), "sums are wrong"),
        (padding, ("(i + 3) / kLength", "i / kLength"), "l=6"),
    ],
)
def test_planted_mistake_in_a_solution_is_found(exercise, change: tuple[str, str], says: str) -> None:
    assert exercise.solution.count(change[0]) == 1
    verdict = check(exercise.solution.replace(*change), exercise)
    assert not verdict and says in repr(verdict)


def test_the_exhibits_fail_as_the_chapter_says() -> None:
    rows = np.ones(512 * 8, np.float32)
    with pytest.raises(OutOfBounds, match="right after the end of the 16384 bytes"):
        count_kernel(exhibit("padding"), "load_padded", (1,), (128,), [rows, np.zeros_like(rows)])
    with pytest.raises(WarpMismatch, match="lane 16"):
        arrays = [np.ones(8, np.float32), np.zeros(4, np.float32)]
        count_kernel(exhibit("full_mask"), "channel_sum", (4,), (2,), arrays)
    parts, bias, output = np.ones(8, np.float32), np.zeros(4, np.float32), np.zeros(4, np.float32)
    for total in (2, 4):
        count_kernel(exhibit("bias"), "add_parts", (4,), (64,), [parts, bias, output])
        assert (output == total).all()


def test_the_rung_of_the_sweep_is_the_rung_of_the_ladder() -> None:
    here, there = (load_ladder(name)["channels"].source.splitlines()[3:] for name in ("conv1d", "conv1d_channels"))
    assert here == there


def test_the_sweep_has_the_layers_of_the_network() -> None:
    named = {tuple(size.values()) for size in CONV1D.problem.recorded}
    assert set(LAYERS) == {shape for shape in named if shape[0] > 2}
    assert set(BEST_CHANNELS) == set(LAYERS) and set(BEST_CHANNELS.values()) <= set(CHANNELS)
    assert len(UNET) == len(UNET_COUNTS) == len({tuple(size.values()) for size in UNET})


@pytest.mark.parametrize("taps", [2, 4, MAX_TAPS + 2])
def test_taps_without_a_middle_or_too_many_are_refused(taps: int) -> None:
    for rung in CONV1D:
        with pytest.raises(ArgumentError, match="k must be odd"):
            rung.launches(layer(8, 8, 4, taps))


@pytest.mark.parametrize("taps", [31, MAX_TAPS])
def test_filters_longer_than_the_row_are_right(taps: int) -> None:
    for rung in CONV1D:
        verify(rung, layer(40, 2, 5, taps))


@pytest.mark.parametrize(
    ("block", "size"),
    [
        (Fit(2, 2, 2, 2, 1), layer(131, 8, 4, 5)),
        (Fit(4, 1, 1, 1, 2), layer(77, 8, 19, 5)),
        (Fit(2, 4, 1, 2, 4), layer(136, 6, 4, 5)),
        (Fit(1, 4, 4, 1, 1), layer(96, 8, 4, 1)),
        (Fit(2, 2, 2, 2, 2, True), layer(300, 8, 8, 5)),
    ],
)
def test_teams_outputs_groups_and_channels_fit_together(monkeypatch, block: Fit, size: dict[str, int]) -> None:
    for chosen in ("fit", "in_flight_fit", "in_order_fit", "inside_fit"):
        monkeypatch.setattr(f"kernels.conv1d.conv1d.{chosen}", lambda size: block)
    for name in ("fitted", "in_flight", "in_order", "inside"):
        assert CONV1D[name].launches(size)[0].block == (32 * block.teams * block.warps,)
        verify(CONV1D[name], size)


def test_every_fit_divides_the_outputs_and_covers_the_channels() -> None:
    cp_async = (in_flight_fit, in_order_fit, inside_fit)
    for size in CONV1D.problem.recorded:
        for chosen in (fit, *cp_async):
            block = chosen(size)
            assert size["o"] % (block.teams * block.outputs) == 0
            assert block.covered >= size["i"] or size["i"] % block.covered == 0
            assert block.teams * block.warps <= 32
        assert fit(size).shared_bytes(size) <= 48 << 10
        assert all(staged_bytes(size, chosen(size)) <= 200 << 10 for chosen in cp_async)


def test_what_lies_beyond_the_row_is_not_multiplied() -> None:
    """An infinite tap that meets no input makes no NaN, as it does where it is multiplied by a zero."""
    size = layer(8, 1, 4, 5)
    inputs = CONV1D.inputs(size)
    inputs["weight"][0, 0, 0] = np.inf  # of the channel before: it has an input for the positions 2 and 3 alone
    arrays = [cp.asarray(inputs[name]) for name in ("input", "weight", "bias")]
    found = {name: cp.asnumpy(CONV1D[name](*arrays))[0] for name in ("in_order", "inside")}
    assert np.isnan(found["in_order"][:2]).all() and np.isfinite(found["inside"][:2]).all()
    for output in found.values():
        assert np.isinf(output[2:]).all()


def test_float4_and_padded_rungs_have_no_bank_conflicts() -> None:
    """The chapter's point: the compiler merges the four stores, and so there was nothing to repair."""
    two = layer(1024, 2, 4, 5)
    for name in ("float4", "padded"):
        lines = [a for a in counters(CONV1D[name], two).lines if a.kind.startswith("shared")]
        assert sum(a.bank_conflicts for a in lines) == 0


def test_readers_kernel_sums_the_filters_that_it_reads() -> None:
    filters_, sums = np.random.default_rng(2).random((3, 5120), dtype=np.float32), np.zeros(3, np.float32)
    count_kernel(reader(), "read_filters<10>", (3,), (128,), [filters_, sums, np.int32(5120)])
    assert np.allclose(sums, filters_.sum(axis=1, dtype=np.float64), rtol=1e-6)


@pytest.mark.parametrize("channels_in", [513, 1031])
def test_odd_numbers_of_channels_are_right(channels_in: int) -> None:
    for rung in CONV1D:
        verify(rung, layer(channels_in, 1, 4, 5))


def test_inputs_not_divisible_by_channels_are_refused() -> None:
    with pytest.raises(ArgumentError, match="i must be a multiple of channels"):
        load_ladder("conv1d_channels")["tree"].launches({**layer(7, 2, 4, 5), "channels": 4})
