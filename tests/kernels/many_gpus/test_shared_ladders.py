"""The ladders over several GPUs, on the stand-in: right on any number of ranks, in every order that streams allow."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from tools.thorough import sparse, thorough

from climb.bench.cuda import backend
from climb.distributed import running
from climb.distributed.agreement import PlanError
from climb.distributed.execution import Order
from climb.distributed.ladder import Refused, SharedLadder, SharedRung
from climb.distributed.plan import After, Exchange, Part, Place, Plan
from climb.distributed.registry import load_shared_ladder, shared_ladder_names
from climb.distributed.running import run
from climb.fake_cupy.ranks import RankFailed
from kernels.many_gpus.halo3d import plans

pytestmark = pytest.mark.skipif(backend != "emulator", reason="ranks in one process need the stand-in")

HALO = load_shared_ladder("halo3d")
MATMUL, CLASSIFIER = load_shared_ladder("split_matmul"), load_shared_ladder("split_classifier")
STEP = load_shared_ladder("gradient_step")
FFT, TENSOR = load_shared_ladder("halo_fft"), load_shared_ladder("split_tgemm")
#: Odd slabs, two filters; rows that are no whole float4.
SMALL = {"planes": 7, "n": 4, "k": 3, "filters": 2}
#: Odd slabs, one filter.
FFT_SMALL = {"planes": 7, "n": 4, "k": 3, "filters": 1}


def changed(name: str, change: Callable[[Plan, Place], Plan], ladder: SharedLadder = HALO) -> SharedLadder:
    """A ladder with a rung whose plans are changed."""

    def plan(place: Place, size: Any) -> Plan:
        return change(ladder[name].plan(place, size), place)

    rungs = tuple(replace(rung, plan=plan) if rung.name == name else rung for rung in ladder.rungs)
    return replace(ladder, rungs=rungs)


def without_wait(left_out: int) -> Callable[[Plan, Place], Plan]:
    """A change that leaves out one wait, counted from 1."""

    def forget(plan: Plan, place: Place) -> Plan:
        waits = [number for number, step in enumerate(plan) if isinstance(step, After)]
        return tuple(step for number, step in enumerate(plan) if number != waits[left_out - 1])

    return forget


def taken(rung: SharedRung, size: Any, ranks: int) -> bool:
    return rung.requires(size, ranks) is None


@pytest.mark.parametrize("name", sparse(name for name in HALO.names if name != "short_blocks"))
def test_halo3d_is_right_with_messages_as_late_as_they_may_come(name: str) -> None:
    assert run(HALO, name, SMALL, order="late").error <= HALO.problem.tolerance(SMALL)


def test_short_blocks_compute_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    size = {"planes": 40, "n": 4, "k": 3, "filters": 1}
    assert not taken(HALO["short_blocks"], size, 2)
    monkeypatch.setattr(plans, "SMS", 1)
    monkeypatch.setattr(plans, "SHORT", 4)
    kernels = [HALO.plans(name, 2, size)[0][2].launch for name in ("two_streams", "short_blocks")]
    assert kernels[0].grid[2] < kernels[1].grid[2]
    run(HALO, "short_blocks", size, order="late")


@pytest.mark.thorough
@pytest.mark.in_turn
@pytest.mark.parametrize("order", ["written", "early", "late"])
@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
@pytest.mark.parametrize("name", HALO.names)
def test_halo3d_is_right_on_any_number_of_ranks(name: str, ranks: int, order: Order) -> None:
    for size in HALO.problem.check:
        if taken(HALO[name], size, ranks):
            run(HALO, name, size, ranks, order=order)


@pytest.mark.parametrize("name", ["exchange", "overlap", "gather", "deep"])
def test_slab_thinner_than_the_halo_gets_planes_from_further_ranks(name: str) -> None:
    size = {"planes": 4, "n": 4, "k": 5, "filters": 2 if name == "deep" else 1}
    assert taken(HALO[name], size, 4) and run(HALO, name, size, 4).ranks == 4


def test_more_ranks_than_planes() -> None:
    run(HALO, "exchange", {"planes": 1, "n": 4, "k": 3, "filters": 1}, 3)


@pytest.mark.parametrize("name", ["two_streams", "copy_engine", "peer_loads"])
def test_slabs_are_transformed_right_with_messages_as_late_as_they_may_come(name: str) -> None:
    """``exchange`` is in TestPlanted, ``graph`` is the plan of ``two_streams``; pairs of planes lie across the cut."""
    run(FFT, name, FFT_SMALL, order="late")


@pytest.mark.thorough
@pytest.mark.in_turn
@pytest.mark.parametrize("ranks", [1, 2, 3])
@pytest.mark.parametrize("name", FFT.names)
def test_slabs_are_transformed_right_on_any_number_of_ranks(name: str, ranks: int) -> None:
    for size in FFT.problem.check:
        if taken(FFT[name], size, ranks):
            run(FFT, name, size, ranks, order="late")


@pytest.mark.parametrize("ladder", [thorough(MATMUL), CLASSIFIER, STEP], ids=lambda ladder: ladder.name)
def test_split_products_are_right_with_operations_as_late_as_they_may_come(ladder: SharedLadder) -> None:
    for name in ladder.names[1:]:
        run(ladder, name, ladder.problem.check[0], order="late")


@pytest.mark.thorough
def test_columns_on_tensor_cores_are_those_of_the_product() -> None:
    run(TENSOR, "columns", TENSOR.problem.check[1])


@pytest.mark.thorough
@pytest.mark.parametrize("ladder", [MATMUL, CLASSIFIER, STEP, TENSOR], ids=lambda ladder: ladder.name)
def test_split_products_are_right_on_any_number_of_ranks(ladder: SharedLadder) -> None:
    for size in ladder.problem.check:
        for ranks in (1, 2, 3, 4):
            for name in ladder.names:
                if taken(ladder[name], size, ladder.ranks(name, ranks)):
                    run(ladder, name, size, ranks, order="early")


def test_bytes_of_collective_operations_are_those_of_a_ring() -> None:
    size = {"m": 8, "n": 12, "k": 20}
    sent = {name: [m.nbytes for m in MATMUL.messages(name, 2, size)] for name in ("columns", "gather_rows", "split_k")}
    assert sent == {"columns": [], "gather_rows": [4 * 4 * 20] * 2, "split_k": [4 * 8 * 12 // 2] * 2}


def test_half_precision_halves_the_bytes_and_costs_accuracy() -> None:
    size = STEP.problem.check[0]
    whole, half = (run(STEP, name, size) for name in ("all_reduce", "half"))
    assert half.nbytes == whole.nbytes // 2
    assert whole.error < STEP.tolerance("all_reduce", size) < half.error < STEP.tolerance("half", size)


def test_bytes_of_halos_are_counted() -> None:
    size = {"planes": 12, "n": 8, "k": 5, "filters": 3}
    plane = 8 * 8 * 4
    sent = {name: HALO.messages(name, 2, size) for name in ("exchange", "deep", "gather")}
    assert [m.nbytes for m in sent["exchange"]] == [2 * plane] * 6
    assert [m.nbytes for m in sent["deep"]] == [6 * plane] * 2
    assert [(m.source, m.target, m.nbytes) for m in sent["gather"]] == [(1, 0, 6 * plane), (0, 1, 6 * plane)]


class TestPlanted:
    """A mistake in a plan is found: before the run, or by a wrong result in an order that the streams allow."""

    @pytest.mark.parametrize("name, left_out", [("exchange", 2), ("overlap", 3), ("boundary_first", 3)])
    def test_missing_wait_is_found_although_the_plan_is_right_as_written(self, name: str, left_out: int) -> None:
        ladder = changed(name, without_wait(left_out))
        run(ladder, name, SMALL)  # in the order in which it is written, nothing is wrong
        with pytest.raises(RankFailed, match=r"is wrong in|nothing has written"):
            for order in ("late", "early"):
                run(ladder, name, SMALL, order=order)

    @pytest.mark.parametrize("name, order", [("exchange", "late"), ("two_streams", "early")])
    def test_missing_wait_of_a_transform_is_found(
        self, name: str, order: Order, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """For the halo, and for the weights' spectra. NaN in those would not be seen: outputs that are not finite are
        computed again, from the weights."""
        monkeypatch.setattr(running, "NOTHING", 7.0)
        with pytest.raises(RankFailed, match="is wrong in"):
            running.run(changed(name, without_wait(1), FFT), name, FFT_SMALL, order=order)

    def test_boxes_beyond_a_neighbours_array_are_refused(self) -> None:
        def beyond(plan: Plan, place: Place) -> Plan:
            *steps, last = plan
            args = (replace(last.launch.args[0], part=Part("source", 1 << 20, 64), rank=1), *last.launch.args[1:])
            return (*steps, replace(last, launch=replace(last.launch, args=args)))

        with pytest.raises(PlanError, match=r"on rank 1: source\[1048576:1048640\] of an array of"):
            changed("peer_loads", beyond, FFT).plans("peer_loads", 2, FFT_SMALL)

    def test_rank_that_forgets_its_last_exchange_is_named(self) -> None:
        def forget(plan: Plan, place: Place) -> Plan:
            last = max(number for number, step in enumerate(plan) if isinstance(step, Exchange))
            return plan if place.rank else plan[:last] + plan[last + 1 :]

        with pytest.raises(PlanError, match="rank 0 has ended\n  rank 1 waits in halos of filter 1: send"):
            changed("exchange", forget).plans("exchange", 2, SMALL)

    def test_kernel_that_computes_a_plane_too_few_is_wrong(self) -> None:
        def cut(plan: Plan, place: Place) -> Plan:
            return plan[:-1] if place.rank == 1 else plan

        with pytest.raises(RankFailed, match="rank 1 of 2: target is wrong in"):
            run(changed("exchange", cut), "exchange", {**SMALL, "filters": 1})


def test_sizes_that_a_rung_does_not_take_are_refused_before_anything_runs() -> None:
    with pytest.raises(Refused, match="a slab must be at least 2 planes thick"):
        HALO.plans("peer_loads", 2, {"planes": 3, "n": 4, "k": 5, "filters": 1})
    with pytest.raises(Refused, match="k may be one of 3, 5, 7, 9, 11"):
        HALO.plans("exchange", 2, {"planes": 3, "n": 4, "k": 4, "filters": 1})
    with pytest.raises(Refused, match="n must be a multiple of 4"):
        FFT.plans("exchange", 2, {**FFT_SMALL, "n": 6})
    with pytest.raises(Refused, match="runs on one rank, not on 2"):
        HALO.plans("one_gpu", 2, SMALL)


@pytest.mark.parametrize("name", shared_ladder_names())
def test_plans_of_headline_sizes_agree_and_have_a_hash_each(name: str) -> None:
    ladder = load_shared_ladder(name)
    hashes = []
    for size in ladder.problem.headline:
        for rung in ladder.names:
            ranks = ladder.ranks(rung, ladder.gpus)
            if taken(ladder[rung], size, ranks):
                assert ladder.plans(rung, ranks, size)
                hashes.append((str(size), ladder.sha256(rung, ranks, size)))
    assert len(hashes) == len(set(hashes))
