"""The chapter ``book/a-network.ipynb``: what its text says of its kernels."""

from __future__ import annotations

import numpy as np
import pytest

from climb import check, count_kernel, emulator
from climb.emulator import Race
from kernels.a_network.exercises import exhibit, variance


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
