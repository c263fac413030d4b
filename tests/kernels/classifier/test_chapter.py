"""The chapter on the classifier: its exercises tell right from wrong, and its exhibit fails in the way that it says."""

from __future__ import annotations

import re

import numpy as np
import pytest

from climb import ArgumentError, check, count_kernel, counters, load_ladder, opcodes, verify
from climb.bench import records
from climb.bench.records.kinds import SearchRecord
from climb.emulator.errors import OutOfBounds, Race
from kernels.classifier.classifier import search, tuning
from kernels.classifier.exercises import exhibit, gradient, quarters, samples
from kernels.common.search import Candidate, Trial

LADDER, WHOLE = load_ladder("classifier"), load_ladder("classifier_int")
CLASS1, CLASS2, BATCH = LADDER.problem.headline


@pytest.mark.parametrize(
    ("exercise", "change", "says"),
    [
        (gradient, ("row < outputs; ++row", "row < outputs - 1; ++row"), "gradient are wrong"),
        (gradient, ("if (i >= inputs)", "if (i > inputs)"), "out of bounds"),
        (quarters, ("    __syncthreads();  // all quarters", "    // all quarters"), "race"),
        (quarters, ("warp < kWarps", "warp < kWarps - 1"), "output are wrong"),
        (samples, ("sample * outputs + row", "row"), "never written"),
        (samples, ("sum[sample] += weight", "sum[0] += weight"), "output are wrong"),
    ],
)
def test_planted_mistake_in_a_solution_is_found(exercise, change: tuple[str, str], says: str) -> None:
    assert exercise.solution.count(change[0]) == 1
    assert says in repr(check(exercise.solution.replace(*change), exercise))


def test_atomics_are_no_solution_of_the_quarters() -> None:
    """A zero behind a barrier and an atomic per warp give the right sums, but not the same bits every time."""
    atomic = quarters.skeleton.replace("output[blockIdx.x] += sum;", "atomicAdd(output + blockIdx.x, sum);")
    atomic = atomic.replace("    if (lane == 0) {", "    __syncthreads();\n    if (lane == 0) {")
    verdict = check(atomic, quarters)
    assert [c.wrong is None for c in verdict.checks] == [True] * len(quarters.sizes) + [False]
    assert "atomic" in verdict.checks[-1].wrong


def corner(weights: int, blocks: int, checks: tuple[str, ...] = ()) -> np.ndarray:
    """The outputs of the published kernel on a layer of 1024 inputs and 256 outputs with only ``weights`` weights."""
    output = np.zeros(256, np.int32)
    args = [np.arange(weights, dtype=np.int32), np.ones(1024, np.int32), output, np.int32(1024), np.int32(256)]
    count_kernel(exhibit("corner"), "class1", (blocks,), (1024,), args, checks=checks)
    return output


def test_the_published_kernel_reads_a_corner_of_its_matrix() -> None:
    output = corner(31 * 64 + 31 * 33 + 1, 256)
    assert np.count_nonzero(output) == 39
    with pytest.raises(OutOfBounds):
        corner(31 * 64 + 31 * 33, 256)


def test_the_published_kernel_races() -> None:
    with pytest.raises(Race):
        corner(3008, 2, ("global",))


@pytest.mark.parametrize("ladder", [LADDER, WHOLE], ids=lambda ladder: ladder.name)
def test_atomic_rungs_refuse_sizes_that_take_too_long(ladder) -> None:
    for name in ("tiles", "single_thread_load"):
        with pytest.raises(ArgumentError, match="products; at most 268435456"):
            ladder[name].launches(BATCH)
    ladder["row_block"].launches(BATCH)


def test_rows_are_cut_into_pieces_only_where_a_block_needs_several_rounds() -> None:
    assert [len(LADDER["split_k"].launches(size)) for size in (CLASS1, CLASS2)] == [1, 1]
    first, second = LADDER["split_k"].launches({"inputs": 1 << 20, "outputs": 64, "batch": 1})
    assert first.grid[0] == 64 and first.grid[1] > 40 and second.args[0] == "sums"


def test_rows_that_a_block_covers_exactly_have_no_bounds_checks() -> None:
    """class2 has no bounds; class1, and rows of one pack more than a block covers, have."""
    kernels = [LADDER["no_bounds"].launches(size)[0].kernel for size in (CLASS2, CLASS1, {**CLASS2, "inputs": 4100})]
    assert [kernel.endswith("true>") for kernel in kernels] == [True, False, False]
    rung = LADDER["no_bounds"]
    order = opcodes(rung.compiled(CLASS2), kernels[0], "LDG|FFMA|ISETP")
    loads = 2 * tuning.choose("no_bounds", tuning.packs_of(CLASS2)).unroll  # of weights and of inputs
    assert [opcode.split(".")[0] for opcode in order[: loads + 1]] == ["LDG"] * loads + ["FFMA"]


def test_the_blocks_of_the_tables_serve_every_row_and_are_candidates_of_the_search() -> None:
    for table, shapes in tuning.SHAPES.items():
        assert [shape.packs for shape in shapes] == [*sorted(s.packs for s in shapes[:-1]), None]
        for shape, sizes in zip(shapes, search.ENTRIES, strict=True):
            tried = {(one.threads, one.unroll) for one in search.shapes(table, tuning.packs_of(sizes[0]))}
            assert (shape.threads, shape.unroll) in tried
            assert all(tuning.choose(table, tuning.packs_of(size)) == shape for size in sizes)


def test_a_search_takes_the_shape_that_is_fastest_over_all_its_rungs_and_sizes() -> None:
    trials = [
        Trial(c, 32, 1e-6 * (1 + abs(c.values[0] - 256) + abs(c.values[1] - 2)), 0.0) for c in search.candidates()
    ]
    made = search.tables(trials)
    assert [row[0] for row in made["row_block"]["rows"]] == [64, 128, 256, 512, 1024, None]
    assert {tuple(row[1:]) for row in made["row_block"]["rows"][-3:]} == {(256, 2)}
    slow = [t for t in trials if t.candidate.values != (256, 2) or t.candidate.rung != "row_block"]
    assert (256, 2) not in {tuple(row[1:]) for row in search.tables(slow)["row_block"]["rows"]}


def test_a_search_keeps_the_shape_of_todays_table_unless_another_is_clearly_faster() -> None:
    """All candidates are equally fast but the one of the table, which is slower by less than the margin or by more."""
    for slower, kept in ((1.02, True), (1.05, False)):
        trials = [Trial(c, 32, 1e-6 * (slower if (c.values in _today(c)) else 1), 0.0) for c in search.candidates()]
        rows = search.tables(trials)
        for table, shapes in tuning.SHAPES.items():
            same = [
                row[1:] == [shape.threads, shape.unroll] for row, shape in zip(rows[table]["rows"], shapes, strict=True)
            ]
            assert all(same) if kept else not any(same[1:])  # only one shape has so few packs as the first row


def test_the_committed_tables_are_those_of_the_committed_search() -> None:
    found = records.load(tuning.search_path(), SearchRecord)
    trials = [
        Trial(Candidate(rung, found.sizes[size], (threads, unroll), None), registers, seconds, error)
        for size, rung, threads, unroll, registers, seconds, error in found.trials
    ]
    for name, table in search.tables(trials).items():
        assert [tuple(row) for row in table["rows"]] == [(s.packs, s.threads, s.unroll) for s in tuning.SHAPES[name]]


def _today(candidate: Candidate) -> set[tuple[int, int]]:
    table = "no_bounds" if candidate.rung == "no_bounds" else "row_block"
    packs = tuning.packs_of(candidate.size)
    return {(shape.threads, shape.unroll) for shape in [tuning.choose(table, packs)]}


def test_a_row_is_split_over_blocks_only_where_rows_are_few(monkeypatch: pytest.MonkeyPatch) -> None:
    """For a GPU of one SM with room for one block a single row is enough."""
    size = {"inputs": 26000, "outputs": 1, "batch": 1}
    assert len(LADDER["split_k"].launches(size)) == 2
    verify(LADDER["split_k"], size)
    monkeypatch.setattr(tuning, "SMS", 1)
    monkeypatch.setattr(tuning, "BLOCKS_PER_SM", 1)
    assert len(LADDER["split_k"].launches(size)) == 1
    verify(LADDER["split_k"], size)


def test_shared_memory_reads_of_a_slice_have_no_bank_conflicts() -> None:
    size = {"inputs": 260, "outputs": 70, "batch": 33}
    lines = [a for a in counters(LADDER["split_k_per_warp"], size).lines if a.kind.startswith("shared")]
    assert lines and sum(a.bank_conflicts for a in lines) == 0


def test_atomics_are_as_many_as_products_or_as_warps() -> None:
    size = {"inputs": 96, "outputs": 40, "batch": 1}
    lanes = {
        name: counters(LADDER[name], size).total("global atomic").lanes for name in ("tiles", "tile_sums", "columns")
    }
    assert lanes == {"tiles": 96 * 40, "tile_sums": 3 * 40, "columns": 96 * 40}


def test_launch_bounds_let_the_loads_go_first() -> None:
    """With a block per SM allowed all weights and inputs of a thread are asked for before the first is multiplied."""
    both = 2 * tuning.choose("row_block", tuning.packs_of(CLASS1)).unroll  # of weights and of inputs
    for name, least, most in (("row_block", 1, both - 2), ("launch_bounds", both - 1, both)):
        rung = LADDER[name]
        order = opcodes(rung.compiled(CLASS1), rung.launches(CLASS1)[0].kernel, "LDG|FFMA")
        loads_first = next(i for i, opcode in enumerate(order) if "FFMA" in opcode)
        assert least <= loads_first <= most, name


@pytest.mark.parametrize("name", ["tiles", "single_thread_load"])
def test_kernels_on_integers_make_no_flop(name: str) -> None:
    """So a profiler that counts FLOPs has nothing to report of the report's kernels."""
    rung = WHOLE[name]
    code = opcodes(rung.compiled(CLASS2), rung.launches(CLASS2)[-1].kernel)
    assert any("IMAD" in opcode for opcode in code)
    assert not [opcode for opcode in code if re.search(r"\b[FDH](FMA|ADD|MUL)", opcode)]
