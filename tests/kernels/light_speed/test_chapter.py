"""The chapter on the speed of light: its exercises, the exercise on paper, and its exhibit."""

from __future__ import annotations

import re
from pathlib import Path

import nbformat
import numpy as np
import pytest

from climb import compare, count_kernel, counters, load_ladder, poisoned
from climb.bench.exercise import check, drifted
from kernels.light_speed.chain import BLOCKS
from kernels.light_speed.exercises import SHORT_COPY, judge, reversed_copy, triad, work

CHAPTER = Path(__file__).resolve().parents[3] / "book" / "light-speed.ipynb"
CHAIN = load_ladder("chain")
CEILINGS = {"copy_gb_s": 4000.0, "read_gb_s": 4500.0, "fma_tflop_s": 60.0}


@pytest.mark.parametrize("exercise", [triad, reversed_copy], ids=lambda one: one.name)
def test_the_cell_of_an_exercise_is_its_skeleton(exercise):
    assert not drifted(CHAPTER, exercise)


def test_the_triads_skeleton_is_right_and_makes_four_times_the_requests():
    verdict = check(triad.skeleton, triad)
    assert [c.wrong for c in verdict.checks] == [None] * 4 + ["258 requests", "129 requests"]


def test_triad_without_the_tail_is_wrong():
    source = triad.solution.replace("if (tail < n)", "if (false)")
    assert source != triad.solution
    assert "nothing was written to z" in repr(check(source, triad))
    assert "3 of 4099 elements of z were never written" in repr(check(source, triad))


def test_triad_with_wide_loads_and_narrow_stores_does_not_pass():
    wide = "reinterpret_cast<float4*>(z)[i] = make_float4("
    source = triad.solution.replace(wide, "const float4 w = make_float4(").replace(
        "fmaf(a, u.w, v.w));",
        "fmaf(a, u.w, v.w));\n        z[4 * i] = w.x; z[4 * i + 1] = w.y; z[4 * i + 2] = w.z; z[4 * i + 3] = w.w;",
    )
    wrong = [c.wrong for c in check(source, triad).checks]
    assert wrong == [None] * 5 + ["129 requests"]


def test_reversed_copys_skeleton_fails_at_sectors_per_request_alone():
    wrong = [c.wrong for c in check(reversed_copy.skeleton, reversed_copy).checks]
    assert wrong == [None] * 4 + ["32 sectors per request"] * 2
    assert check(reversed_copy.solution, reversed_copy).passed


def test_a_reversed_warp_off_a_sectors_edge_touches_five_sectors():
    """The folded solution says this of sizes that are not multiples of the 8 floats of a sector."""
    source, target = np.arange(5003, dtype=np.float32), np.zeros(5003, dtype=np.float32)
    for n, sectors in ((8 * 625, 4), (5003, 5)):
        counted = count_kernel(
            reversed_copy.solution, "reversed", (3,), (256,), [source[:n].copy(), target[:n].copy(), np.uint64(n)]
        )
        load = counted.total("global load")
        assert -(-load.sectors // load.requests) == sectors


@pytest.mark.parametrize(("box", "right"), [("break-scalar-box", 2), ("break-float4", 1), ("exhibit-break", 2)])
def test_boxes_have_as_many_right_kernels_as_the_text_says(box, right):
    """With the kernel as it is, where that is right."""
    cells = nbformat.read(CHAPTER, as_version=4).cells
    shown = next(cell for cell in cells if cell["id"] == box).outputs[0].data["text/plain"]
    assert len(re.findall(r"(?m)^  Right", shown)) == right


@pytest.mark.parametrize("name", CHAIN.names)
def test_a_chain_takes_as_many_steps_as_it_is_asked_for(name):
    """One step too many would leave the result of `barrier` right and make its time too long."""
    stores = counters(CHAIN[name], {"steps": 3}).total("global store").requests
    zeroed = int(name in ("barrier", "handed_over"))  # their counter
    assert stores == 3 * BLOCKS + zeroed


def test_work_counts_flops_bytes_and_the_slower_of_two_times():
    assert work(1000, 100, 1, CEILINGS) == (200_000, 404_400, 404_400 / 4.5e12)
    flops, _, seconds = work(4096, 4096, 512, CEILINGS)
    assert seconds == flops / 60e12
    assert judge(work, CEILINGS)


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (lambda r, c, v, k: (2 * r * c, *work(r, c, v, k)[1:]), "FLOPs: not right at 4096 x 4096, 8 vector(s)"),
        (lambda r, c, v, k: (2 * r * c * v, 4 * r * c, work(r, c, v, k)[2]), "bytes: not right at 1024 x 512"),
        (lambda r, c, v, k: (*work(r, c, v, k)[:2], 4 * r * c / 4.5e12), "the limit: not right at 1024 x 512"),
        (lambda r, c, v, k: (*work(r, c, v, k)[:2], float("nan")), "the limit: not right"),
        (lambda r, c, v, k: None, "the function: at 1024 x 512, 1 vector(s): TypeError"),
        (lambda r, c, v, k: (1, 2), "2 values instead of"),
    ],
    ids=["flops", "bytes", "limit", "nan", "none", "two"],
)
def test_a_wrong_answer_is_told_what_is_wrong(answer, says):
    verdict = judge(answer, CEILINGS)
    assert not verdict
    assert f"not yet: {says}" in repr(verdict) or says in repr(verdict)


@pytest.mark.parametrize("n", [1 << 10, 1 << 14])
def test_exhibit_writes_a_quarter_of_its_output(n):
    source = np.random.default_rng(0).random(n, dtype=np.float32)
    target = poisoned((n,), "float32")
    count_kernel(SHORT_COPY, "copy_fast", (n // 1024,), (256,), [source, target, np.int32(n)])
    found = compare(target, source, tolerance=0.0)
    assert (found.unwritten, found.first_unwritten) == (3 * n // 4, n // 4)


def test_the_exhibit_passes_the_two_checks_that_the_chapter_warns_of():
    n = 1 << 12
    source = np.random.default_rng(0).random(n, dtype=np.float32)
    leftover, unwritten = source.copy(), np.full(n, np.nan, dtype=np.float32)
    for target in (leftover, unwritten):
        count_kernel(SHORT_COPY, "copy_fast", (n // 1024,), (256,), [source, target, np.int32(n)])
    assert np.array_equal(leftover, source)
    assert not np.any(np.abs(unwritten - source) > 1e-5)


def test_the_exhibit_is_right_when_it_is_launched_right():
    n = 1 << 12
    source, target = np.arange(n, dtype=np.float32), poisoned((n,), "float32")
    count_kernel(SHORT_COPY, "copy_fast", (n // 256,), (256,), [source, target, np.int32(n)])
    assert np.array_equal(target, source)
