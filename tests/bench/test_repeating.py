"""Launches after the checked one: the same bits pass, other bits are checked again."""

from __future__ import annotations

import numpy as np
import pytest
from tiny_ladder import scale

from climb.bench.checking import Case, WrongResult
from climb.bench.measuring_gpu import CHECKED_SECONDS, MOST_CHECKED, Gpu
from climb.bench.repeating import check_again

SIZE = {"n": 33}
TOLERANCE = 1e-6


def launches(*changes: float | None):
    """A case, its arrays, and a launch that is right but for element 3, to which each launch adds the next of these;
    None stands for one that writes nothing."""
    case = Case.make(scale.ladder, SIZE)
    arrays = case.arrays()
    launch = scale.ladder["plain"].prepare(arrays, SIZE)
    launch()
    ahead = iter(changes)

    def changed():
        change = next(ahead)
        if change is not None:
            launch()
            if change:
                element = arrays["y"][3:4]
                element.set(element.get() + np.float32(change))

    return case, arrays, changed


def test_the_same_bits_pass():
    case, arrays, launch = launches(0, 0, 0)
    assert check_again(case, "plain", TOLERANCE, arrays, launch, 3) == 0


def test_other_bits_within_the_tolerance_pass_and_are_counted():
    case, arrays, launch = launches(0, 2**-22, 0)
    assert check_again(case, "plain", TOLERANCE, arrays, launch, 3) == 1


@pytest.mark.parametrize(
    ("changes", "where"),
    [((0, 0.5), r"y\[3\].*in launch 2 of 2"), ((None, 0), r"never written, first y\[0\] .*launch 1 of 2")],
)
def test_a_wrong_or_unwritten_output_of_a_later_launch_is_found(changes, where):
    case, arrays, launch = launches(*changes)
    with pytest.raises(WrongResult, match=where):
        check_again(case, "plain", TOLERANCE, arrays, launch, 2)


@pytest.mark.parametrize(("seconds", "times"), [(1e-6, MOST_CHECKED), (CHECKED_SECONDS / 7.5, 7), (9.0, 1), (0.0, 100)])
def test_as_many_launches_as_fit_are_compared(seconds, times):
    assert Gpu().launches_to_check(seconds) == times
