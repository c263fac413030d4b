"""The chapter ``book/a-network.ipynb``: what its text says of its kernels."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from climb import check, count_kernel, emulator, spans
from climb.emulator import Race
from kernels.a_network.exercises import exhibit, judge, variance


def test_variance_by_sums_of_squares_is_wrong_where_the_mean_is_large() -> None:
    verdict = check(variance.skeleton, variance)
    assert [bool(c.wrong) for c in verdict.checks][:1] == [True]


def run(text: str) -> np.ndarray:
    data, flag, result = np.zeros(32, np.float32), np.zeros(1, np.int32), np.zeros(32, np.float32)
    with emulator.checking(emulator.ALL_CHECKS):
        count_kernel(text, "hand_on", (2,), (32,), (data, flag, result))
    return result


def test_flag_without_a_fence_is_a_race_and_with_fences_none() -> None:
    text = exhibit("flag")
    with pytest.raises(Race):
        run(text)
    mended = text.replace("if (threadIdx.x == 0) atomicExch", "if (threadIdx.x == 0) __threadfence(), atomicExch")
    mended = mended.replace(
        "            }\n        }\n        __sync",
        "            }\n            __threadfence();\n        }\n        __sync",
    )
    np.testing.assert_array_equal(run(mended), 2 * np.arange(32))


def test_answers_on_paper_are_judged() -> None:
    def resting(nbytes: float, rate: float, wait: float) -> float:
        return wait + nbytes / rate

    def streaming(nbytes: float, rate: float, wait: float, ring: float) -> float:
        return wait + (nbytes - min(nbytes, ring, wait * rate)) / rate

    assert judge(resting, streaming)
    assert not judge(lambda nbytes, rate, wait: max(wait, nbytes / rate), streaming)
    for ring_only in (lambda n, r, w, ring: w + max(0.0, n - ring) / r, lambda n, r, w, ring: max(w, n / r)):
        assert not judge(resting, ring_only)


def test_a_fence_needs_the_barrier_before_it() -> None:
    """The writer's fence orders what other threads have written only after a barrier of the block."""
    text = exhibit("flag").replace(
        "        __syncthreads();\n        if (threadIdx.x == 0) atomicExch",
        "        if (threadIdx.x == 0) __threadfence(), atomicExch",
    )
    assert text != exhibit("flag")
    with pytest.raises(Race):
        run(text)


def test_spans_of_the_chain_say_what_the_text_says() -> None:
    found = spans("chain")
    between = {}
    for name in ("stream", "graph", "dependent"):
        launches = found[name].launches
        between[name] = float(np.median([b.began[0] - a.ended[1] for a, b in pairwise(launches)]))
        assert len(launches) == 32
    # A launch that starts early comes after the end of the one before: its start takes longer than the kernel runs.
    assert 0 < between["dependent"] < 0.8 * between["graph"] < 0.8 * between["stream"]
    assert len(found["handed_over"].launches[-1].barriers) == 31
