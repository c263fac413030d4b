"""The steppers: what they show is what the emulator counted and recorded."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from tools.samples import BASE, LANES, access
from tools.steppers import TILE, column, data_of, of_two_transposes  # noqa: F401

import climb
from climb import block_events, count_kernel, counters, load_ladder, warp_steps
from climb.display.access_cost import shared_picture
from climb.display.stepper.copies import groups
from climb.display.stepper.march import march
from climb.display.stepper.shares import shares
from climb.display.stepper.tree import replay, tree
from climb.display.stepper.wavefronts import serving

PRODUCT = {"m": 128, "n": 128, "k": 64}
VOLUME = {"n": 12, "k": 3}


# Wavefronts.


def test_wavefronts_are_as_many_as_the_emulator_counts_and_serve_each_lane_once(wavefronts):
    for rung, expected in (("tiled", 32), ("padded", 1)):
        picture = shared_picture(column(rung))
        fronts = serving(picture)
        assert len(fronts) == expected
        served = Counter(lane for banks in fronts for lanes in banks.values() for lane in lanes)
        assert served == dict.fromkeys(range(32), 1)
        counted = counters(load_ladder("transpose")[rung], TILE).total("shared load")
        assert counted.wavefronts == expected * counted.requests
    assert len(data_of(wavefronts)["parts"][0]) == 33


def test_access_to_global_memory_has_no_wavefronts():
    with pytest.raises(ValueError, match="wavefronts serve shared memory; this access is a 'global load'"):
        climb.wavefronts_stepper(access(BASE + 4 * LANES))
    with pytest.raises(ValueError, match=r"1 access\(es\) but 2 title\(s\)"):
        climb.wavefronts_stepper(access(4 * LANES, kind="shared load"), titles=("a", "b"))


# Reduction.


@pytest.mark.parametrize("name", ["interleaved", "non_divergent", "sequential", "first_add", "shuffle"])
def test_additions_of_a_tree_give_the_kernels_sum_to_the_last_bit(name):
    ladder = load_ladder("reduction")
    n = 512 if name in ("first_add", "shuffle") else 256
    source = ladder.inputs({"n": n}, 0)["source"]
    steps = tree(block_events(ladder[name], {"n": n}))
    loaded = source[:256] + source[256:] if n == 512 else source
    total = np.zeros(1, np.float32)
    launch = ladder[name].launches({"n": n})[0]
    count_kernel(ladder[name].source, launch.kernel, (1,), (256,), [source, total, np.uint64(n)])
    assert replay(steps, loaded) == total[0]


def test_idle_lanes_of_the_interleaved_tree_are_what_the_book_says():
    ladder = load_ladder("reduction")
    adders = {}
    for name in ("interleaved", "sequential"):
        steps = [one for one in tree(block_events(ladder[name], {"n": 256})) if one.kind == "shared"]
        adders[name] = [(len(one.adders), len({t // 32 for t in one.adders})) for one in steps]
        assert sum(count for count, _ in adders[name]) == 255
    assert adders["interleaved"] == [(128, 8), (64, 8), (32, 8), (16, 8), (8, 8), (4, 4), (2, 2), (1, 1)]
    assert adders["sequential"] == [(128, 4), (64, 2), (32, 1), (16, 1), (8, 1), (4, 1), (2, 1), (1, 1)]


def test_costliest_requests_of_trees_agree_with_the_counters():
    ladder = load_ladder("reduction")
    for name in ("interleaved", "non_divergent", "sequential"):
        steps = tree(block_events(ladder[name], {"n": 256}))
        most = max(one.wavefronts for one in steps)
        conflicts = counters(ladder[name], {"n": 256}).total("shared load").bank_conflicts > 0
        assert (most > 1) == conflicts == (name == "non_divergent")


def test_block_that_is_too_large_or_has_no_tree_is_refused():
    with pytest.raises(ValueError, match="room for 8 warps; a block of vectorised has 1024 threads"):
        climb.reduction_stepper(load_ladder("reduction")["vectorised"])
    with pytest.raises(ValueError, match="no tree"):
        tree(block_events(load_ladder("transpose")["naive"], {"rows": 32, "cols": 32}))


def test_reduction_stepper_has_a_step_for_each_addition():
    output = climb.reduction_stepper(load_ladder("reduction")["interleaved"], load_ladder("reduction")["sequential"])
    assert len(output.text.splitlines()) == 1 + 1 + 8
    assert "interleaved: 32 lanes in 8 warps add the word 4 further on, 224 lanes idle" in output.text
    assert len(output.html) < 15_000


# Divergence.

TWO_SIDES = """__global__ void two_sides(const float* values, float* target)
{
    float v = values[threadIdx.x];
    if (v > 0.0f) {
        for (int n = 0; n < 40; ++n) v = __fmaf_rn(v, 0.5f, 1.0f);
    } else {
        for (int n = 0; n < 40; ++n) v = __fmaf_rn(v, 0.25f, -1.0f);
    }
    target[threadIdx.x] = v;
}
"""


def test_lanes_split_as_often_as_the_emulator_counts_and_all_meet_again():
    values = np.where(np.arange(32) % 3 == 0, 1, -1).astype(np.float32)
    arguments = [values, np.zeros_like(values)]
    output = climb.divergence_stepper(warp_steps(TWO_SIDES, "two_sides", arguments), TWO_SIDES)
    counted = count_kernel(TWO_SIDES, "two_sides", (1,), (32,), arguments)
    assert output.text.count("The warp has split") == counted.divergent_branches == 1
    assert (
        "Line 5, for (int n = 0; n < 40; ++n) v = __fmaf_rn(v, 0.5f, 1.0f): 11 lanes run, 21 lanes wait." in output.text
    )
    assert "21 lanes run, 11 lanes wait. The other side of the branch." in output.text
    assert output.text.splitlines()[-1].endswith("all 32 lanes run. The lanes have met again.")
    assert [5] in data_of(output)["lines"]


def test_steps_of_another_source_and_no_steps_are_refused():
    values = np.ones(32, np.float32)
    steps = warp_steps(TWO_SIDES, "two_sides", [values, values])
    with pytest.raises(ValueError, match="but the source has 2 lines; it belongs to another one"):
        climb.divergence_stepper(steps, "one\ntwo")
    with pytest.raises(ValueError, match="at least one step"):
        climb.divergence_stepper([], TWO_SIDES)


# Planes.


@pytest.mark.parametrize("rung", ["streamed", "pipelined"])
def test_march_loads_adds_and_stores_each_plane_once(rung):
    conv = load_ladder("conv3d")
    seen = march(block_events(conv[rung], VOLUME), 12)
    planes = list(range(12))
    assert [step.loads for step in seen.steps if step.loads is not None] == planes
    assert [step.reads for step in seen.steps if step.reads is not None] == planes
    assert [plane for step in seen.steps for plane in step.stores] == planes
    assert seen.tile == seen.loaded == ((0, 11),) * 3
    loaded = sum(len(step.words) for step in seen.steps)
    lines = [line for line in counters(conv[rung], VOLUME).lines if line.kind == "global load" and line.width == 16]
    assert loaded == 12**3 == sum(line.bytes for line in lines) // 4
    ahead = [step.loads - step.reads for step in seen.steps if None not in (step.loads, step.reads)]
    assert set(ahead) == ({0} if rung == "streamed" else {1})


def test_planes_stepper_names_the_halo_and_refuses_a_rung_that_does_not_march():
    conv = load_ladder("conv3d")
    output = climb.planes_stepper(conv["streamed"], VOLUME)
    assert "Plane 5 is loaded: 144 floats, 0 of them halo; plane 5 is added to the sums of output planes 4 to 6; " \
           "output plane 4 is complete and stored." in output.text  # fmt: skip
    assert len(output.html) < 15_000
    with pytest.raises(ValueError, match="does not march"):
        climb.planes_stepper(conv["naive"], {"n": 8, "k": 3})
    with pytest.raises(ValueError, match="is not in the grid"):
        block_events(conv["streamed"], VOLUME, block=(1, 0, 0))


# The pipeline.


def test_copies_arrive_before_they_are_read_and_no_stage_is_filled_while_it_is_in_use():
    found, rounds = groups(block_events(load_ladder("sgemm")["pipelined"], PRODUCT))
    assert (len(found), rounds) == (4, 5)
    assert sum(len(group.words) for group in found) == 2 * 128 * 64
    for group in found:
        assert group.started < group.arrived <= min(group.read) and group.read == [group.arrived]
    for stage in range(3):
        uses = [(g.started, max(g.read)) for g in found if g.stage == stage]
        assert all(before[1] < after[0] for before, after in pairwise(uses))
    assert {group.stage for group in found} == {0, 1, 2}


def test_pipeline_stepper_says_what_is_in_flight_and_refuses_a_rung_without_copies():
    gemm = load_ladder("sgemm")
    output = climb.pipeline_stepper(gemm["pipelined"], PRODUCT)
    assert "Round 1: slice 0 has arrived; the block reads slice 0 from stage 0; copies start: slice 2 into stage 2; " \
           "slice 1 still in flight." in output.text  # fmt: skip
    assert len(output.html) < 15_000
    with pytest.raises(ValueError, match="no asynchronous copy"):
        climb.pipeline_stepper(gemm["double_buffered"], PRODUCT)
    with pytest.raises(ValueError, match="has 1 launches at this size, none is number 3"):
        climb.pipeline_stepper(gemm["pipelined"], PRODUCT, launch=3)


# Stream-K.

CUT = {"m": 64, "n": 1024, "k": 240}


@pytest.mark.parametrize("edge", [1024, 4096, 8192])
def test_pieces_cover_each_slice_of_the_tiles_that_are_cut_once(edge):
    cut = shares(load_ladder("sgemm")["stream_k"], {"m": edge, "n": edge, "k": edge})
    done = Counter((p.tile, s) for w in range(cut.workers) for p in cut.pieces(w) for s in range(p.first, p.last))
    assert set(done.values()) == {1}
    assert {tile for tile, _ in done} == set(range(cut.whole, cut.tiles)) and len(done) == cut.rest * cut.slices
    assert cut.tiles * cut.rows * cut.cols == edge * edge


@pytest.mark.thorough
def test_blocks_load_the_slices_and_columns_of_their_pieces():
    """The emulator sees each block of the second kernel load exactly what the stepper's arithmetic gives that block."""
    rung = load_ladder("sgemm")["stream_k"]
    cut = shares(rung, CUT)
    assert (cut.whole, cut.rest, cut.workers, cut.portion, cut.slices) == (0, 2, 4, 8, 15)
    seen: dict[int, set[tuple[int, int]]] = {worker: set() for worker in range(cut.workers)}
    for event in block_events(rung, CUT, block=None, kinds={"global load"}):
        if event.allocation == "B":
            row, col = np.divmod(event.places // 4, CUT["n"])
            for block, k, n in zip(event.blocks.tolist(), row.tolist(), col.tolist(), strict=True):
                seen[block].add((n // cut.cols, k // cut.depth))
    for worker, loaded in seen.items():
        assert loaded == {(p.tile, s) for p in cut.pieces(worker) for s in range(p.first, p.last)}


def test_stream_k_stepper_says_who_is_idle_and_refuses_a_product_without_a_cut():
    rung = load_ladder("sgemm")["stream_k"]
    output = climb.stream_k_stepper(rung, CUT, sms=132)
    assert "with one tile for each block, 2 of 132 SMs have work for 15 slices" in output.text
    assert "Portion 1: slices 8 to 14 of tile 0, then slice 0 of tile 1." in output.text
    assert len(output.html) < 15_000
    with pytest.raises(ValueError, match="cuts no tile"):
        climb.stream_k_stepper(rung, {"m": 2048, "n": 2048, "k": 2048}, sms=132)
    with pytest.raises(ValueError, match="at least one SM"):
        climb.stream_k_stepper(rung, CUT, sms=0)
