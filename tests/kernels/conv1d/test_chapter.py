"""The chapter on the 1D convolution: its exercises, its exhibits, and what its rungs and tables rest on."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from tools.thorough import choose as choose_rungs
from tools.thorough import thorough

from climb import (
    ArgumentError,
    check,
    count_kernel,
    counters,
    cp,
    load_ladder,
    longest_chain,
    opcodes,
    reported,
    verify,
)
from climb.bench import records
from climb.bench.records.kinds import SearchRecord
from climb.emulator.errors import OutOfBounds, WarpMismatch
from climb.toolchain import compile_cuda
from kernels.common.search import MARGIN, Candidate, Trial, descend, fastest, fastest_together, write_tables
from kernels.conv1d.conv1d import MAX_TAPS, UNET, UNET_COUNTS, layer, search, tuning
from kernels.conv1d.conv1d.tuning import BLOCKS, Block, choose
from kernels.conv1d.conv1d_channels import CHANNELS, LAYERS
from kernels.conv1d.exercises import exhibit, filters, fold, padding, reader

CONV1D = load_ladder("conv1d")
ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize(
    ("exercise", "change", "says"),
    [
        (filters, ("first * kTaps + i < n * kTaps", "true"), "out of bounds"),
        (filters, ("    __syncwarp();  // the warp's filters are stored before any lane reads them\n", ""), "race"),
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


def test_the_sweep_has_the_layers_of_the_network() -> None:
    named = {tuple(size.values()) for size in CONV1D.problem.recorded}
    assert set(LAYERS) == {shape for shape in named if shape[0] > 2}
    assert set(tuning.CHANNELS) == set(LAYERS) and set(tuning.CHANNELS.values()) <= set(CHANNELS)
    assert len(UNET) == len(UNET_COUNTS) == len({tuple(size.values()) for size in UNET})


@pytest.mark.parametrize("taps", [2, 4, MAX_TAPS + 2])
def test_taps_without_a_middle_or_too_many_are_refused(taps: int) -> None:
    for rung in CONV1D:
        with pytest.raises(ArgumentError, match="k must be odd"):
            rung.launches(layer(8, 8, 4, taps))


@pytest.mark.parametrize("taps", [thorough(31), MAX_TAPS])
def test_filters_longer_than_the_row_are_right(taps: int) -> None:
    for rung in list(CONV1D)[:: choose_rungs(-4, thorough=-1)]:
        verify(rung, layer(40, 2, 5, taps))


@pytest.mark.parametrize(
    ("block", "size"),
    [
        (Block(2, 2, 2, 2, 1), layer(131, 8, 4, 5)),
        thorough(Block(4, 1, 1, 1, 2), layer(77, 8, 19, 5)),
        thorough(Block(2, 4, 1, 2, 4), layer(136, 6, 4, 5)),
        thorough(Block(1, 4, 4, 1, 1), layer(96, 8, 4, 1)),
        (Block(2, 2, 2, 2, 2, True), layer(300, 8, 8, 5)),
    ],
)
def test_teams_outputs_groups_and_channels_fit_together(monkeypatch, block: Block, size: dict[str, int]) -> None:
    monkeypatch.setattr(tuning, "choose", lambda rung, size: block)
    for name in BLOCKS:
        assert CONV1D[name].launches(size)[0].block == (32 * block.teams * block.warps,)
        verify(CONV1D[name], size)


def test_every_block_divides_the_outputs_and_covers_the_channels() -> None:
    for size in CONV1D.problem.recorded:
        for rung in BLOCKS:
            block = choose(rung, size)
            assert size["o"] % (block.teams * block.outputs) == 0
            assert block.covered >= size["i"] or size["i"] % block.covered == 0
            assert block.teams * block.warps <= 32
            if rung == "tuned":
                assert block.static_bytes(size) <= 48 << 10
            else:
                assert block.staged_bytes(size) <= 200 << 10


def test_every_block_of_the_tables_is_a_candidate_of_the_search() -> None:
    for rung, table in BLOCKS.items():
        for (i, o, length, taps), block in table.items():
            assert search.fits(rung, layer(i, o, length, taps), block), (rung, block)


def test_a_search_makes_tables_of_its_fastest_trials(tmp_path: Path) -> None:
    trials = [Trial(c, 32, 1e-6 * (1 + sum(c.values)), 0.0) for c in search.candidates()]
    made = search.tables(trials)
    assert list(made) == ["channels", *BLOCKS]
    write_tables(tmp_path / "conv1d.json", {"ladder": "conv1d", "provenance": "a test"}, made)
    assert json.loads((tmp_path / "conv1d.json").read_text(encoding="utf-8"))["tables"] == made
    committed = json.loads(tuning.table_path().read_text(encoding="utf-8"))["tables"]
    assert [table["columns"] for table in committed.values()] == [table["columns"] for table in made.values()]
    smallest = next(row for row in made["tuned"]["rows"] if row[:4] == [2, 256, 16, 1])
    assert smallest[4:] == [1, 1, 1, 1, 1, False]


@pytest.fixture(scope="module")
def among() -> Sequence[Candidate]:
    """Every candidate of the search."""
    return search.candidates()


@pytest.mark.thorough
def test_descent_finds_the_fastest_candidate_and_measures_few(among: Sequence[Candidate]) -> None:
    wanted = (2, 4, 2, 2, 2, 0)

    def distance(one: Candidate) -> float:
        return sum(abs(a - b) for a, b in zip(one.values, wanted, strict=True))

    met: list[Candidate] = []

    def measure(candidates: Sequence[Candidate]) -> list[Trial]:
        met.extend(candidates)
        return [Trial(one, 32, 1e-6 * (1 + distance(one)), 0.0) for one in candidates]

    starts = search.starts(among)
    trials = descend(among, starts, measure)
    assert len(starts) == len(BLOCKS) * len(search.ladder.problem.recorded)
    assert len(met) == len({(one.rung, str(one.size), one.values) for one in met}) < len(among) / 5
    size = search.ladder.problem.recorded[0]
    for rung in BLOCKS:
        assert (
            fastest(trials, rung, size).candidate.values
            == min((one for one in among if one.rung == rung and dict(one.size) == dict(size)), key=distance).values
        )


def test_descent_measures_the_blocks_of_todays_tables_too(among: Sequence[Candidate]) -> None:
    held, met = search.held(among), []

    def measure(candidates: Sequence[Candidate]) -> list[Trial]:
        met.append(list(candidates))
        return [Trial(one, 32, 1e-6 * (1 + search._from_middle(one)), 0.0) for one in candidates]

    assert len(held) == len(BLOCKS) * len(search.ladder.problem.recorded)
    starts = search.starts(among)
    descend(among, starts, measure, held)
    assert {id(one) for one in held} <= {id(one) for one in met[0]}
    with pytest.raises(ValueError, match="no candidate"):
        descend(among, starts, measure, [dataclasses.replace(held[0], rung="another")])


@pytest.mark.parametrize(("seconds", "kept"), [(1.0e-6, True), (1.029e-6, True), (1.04e-6, False)])
def test_a_table_keeps_its_block_unless_another_is_clearly_faster(
    among: Sequence[Candidate], seconds: float, kept: bool
) -> None:
    size = search.ladder.problem.recorded[0]
    mine = [one for one in among if one.rung == "cp_async" and dict(one.size) == dict(size)]
    today, other = search._values(tuning.choose("cp_async", size)), mine[0]
    assert other.values != today
    trials = [Trial(other, 32, 1e-6, 0.0), *(Trial(one, 32, seconds, 0.0) for one in mine if one.values == today)]
    assert len(trials) == 2
    assert fastest(trials, "cp_async", size).candidate is (other if seconds > 1e-6 else trials[0].candidate)
    assert (fastest(trials, "cp_async", size, today).candidate.values == today) is kept
    assert (fastest_together(trials, ["cp_async"], [size], today) == today) is kept
    assert fastest_together(trials[:1], ["cp_async"], [size], today) == other.values


def test_the_committed_tables_have_the_fastest_blocks_of_the_committed_search_or_blocks_nearly_as_fast() -> None:
    found = records.load(tuning.search_path(), SearchRecord)
    trials = [dict(zip(found.columns, row, strict=True)) for row in found.trials]
    for rung, table in BLOCKS.items():
        for shape, block in table.items():
            mine = [t for t in trials if t["rung"] == rung and tuning.shape_of(found.sizes[t["size"]]) == shape]
            (own,) = [t for t in mine if tuple(t[name] for name in search.COLUMNS) == search._values(block)]
            assert own["seconds"] <= (1 + MARGIN) * min(t["seconds"] for t in mine), (rung, shape)


def test_a_gpu_that_keeps_its_tables_without_a_search_shows_the_search_of_the_books_gpu() -> None:
    gpu = "nvidia-h100-80gb-hbm3"
    says = "from kernels.conv1d.conv1d import tuning; print(tuning.table_path(), tuning.search_path(), sep='\\n')"
    environ = {**os.environ, "CLIMB_GPU": gpu}
    done = subprocess.run(
        [sys.executable, "-c", says], env=environ, cwd=ROOT, capture_output=True, text=True, check=True
    )
    table, search_of_book = map(Path, done.stdout.splitlines())
    assert table == records.RECORDS / gpu / "tuning" / "conv1d.json" and table.is_file()
    assert search_of_book == tuning.search_path() and search_of_book.is_file()


def test_descent_refuses_a_start_that_is_no_candidate(among: Sequence[Candidate]) -> None:
    with pytest.raises(ValueError, match="no candidate"):
        descend(among[1:], among[:1], lambda wanted: [])


def test_tables_name_the_tuned_rungs_and_recorded_layers() -> None:
    recorded = {tuning.shape_of(size) for size in CONV1D.problem.recorded}
    assert list(BLOCKS) == list(CONV1D.names[-4:])
    assert all(set(table) <= recorded for table in BLOCKS.values())
    assert set(BLOCKS["tuned"]) == set(BLOCKS["cp_async"]) == recorded


@pytest.mark.parametrize("length", [4, 16])
def test_taps_beyond_the_row_make_no_products(length: int) -> None:
    """An infinite tap that meets no input makes no NaN, as it does where it is multiplied by a zero.

    A row of 16 positions is the longest that is one tile.
    """
    size = layer(8, 1, length, 5)
    inputs = CONV1D.inputs(size)
    inputs["weight"][0, 0, 0] = np.inf  # of the channel before: the positions 0 and 1 have none
    arrays = [cp.asarray(inputs[name]) for name in ("input", "weight", "bias")]
    found = {name: cp.asnumpy(CONV1D[name](*arrays))[0] for name in ("consume_as_arrive", "skip_halo_taps")}
    assert np.isnan(found["consume_as_arrive"][:2]).all() and np.isfinite(found["skip_halo_taps"][:2]).all()
    for output in found.values():
        assert np.isinf(output[2:]).all()


def test_float4_and_padded_rungs_have_no_bank_conflicts() -> None:
    """The chapter's point: the compiler merges the four stores, and so there was nothing to repair."""
    two = layer(1024, 2, 4, 5)
    for name in ("vectorised", "padded"):
        lines = [a for a in counters(CONV1D[name], two).lines if a.kind.startswith("shared")]
        assert sum(a.bank_conflicts for a in lines) == 0


def test_readers_kernel_sums_the_filters_that_it_reads() -> None:
    filters_, sums = np.random.default_rng(2).random((3, 5120), dtype=np.float32), np.zeros(3, np.float32)
    count_kernel(reader(), "read_filters<10>", (3,), (128,), [filters_, sums, np.int32(5120)])
    assert np.allclose(sums, filters_.sum(axis=1, dtype=np.float64), rtol=1e-6)


@pytest.mark.parametrize("channels_in", [513, thorough(1031)])
def test_odd_numbers_of_channels_are_right(channels_in: int) -> None:
    for rung in list(CONV1D)[:: choose_rungs(-4, thorough=-1)]:
        verify(rung, layer(channels_in, 1, 4, 5))


def test_inputs_not_divisible_by_channels_are_refused() -> None:
    with pytest.raises(ArgumentError, match="i must be a multiple of channels"):
        load_ladder("conv1d_channels")["tree"].launches({**layer(7, 2, 4, 5), "channels": 4})


@pytest.mark.parametrize("channels", [1, 4])
def test_one_sum_is_one_chain_and_makes_the_flops_that_the_worklog_counted(channels: int) -> None:
    kernel = f"one_sum<4, 5, {channels}>"
    source = exhibit("one_sum")
    built = compile_cuda(
        source, filename="one_sum.cu", options=("-std=c++17",), name_expressions=(kernel,), arch="sm_86"
    )
    products, sums = (len(opcodes(built, kernel, name)) for name in ("FFMA", "FADD"))
    # The loop over the shuffles is not unrolled: five steps for each of four positions.
    flops = (2 * products + 5 * sums) * 1024 * 1024 // channels
    assert (products, sums, longest_chain(built, kernel)) == (19 * channels, 4, 5 * channels)
    assert (f"{flops / 1e6:.2f}" == f"{reported('desai2024conv1d', 'FLOPs') / 1e6:.2f}") == (channels == 4)


def test_one_sum_adds_up_the_layer_onto_a_zeroed_output() -> None:
    rng = np.random.default_rng(0)
    x, w = rng.random((64, 4), dtype=np.float32), rng.random((3, 64, 5), dtype=np.float32)
    output = np.zeros((3, 4), np.float32)
    count_kernel(exhibit("one_sum"), "one_sum<4, 5, 2>", (3,), (32,), [x, w, output])
    expected = load_ladder("conv1d").problem.reference(
        {"input": x, "weight": w, "bias": np.zeros(3, np.float32)}, layer(64, 3, 4, 5)
    )
    np.testing.assert_allclose(output, expected["output"], rtol=1e-5)
