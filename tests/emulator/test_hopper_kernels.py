"""Whole kernels of Hopper: their results, and that each planted mistake is found."""

from __future__ import annotations

from dataclasses import replace

import hopper_kernels
import pytest
from hopper_kernels import Tensor, emulate

from climb.emulator import (
    AsyncMisuse,
    AsyncRace,
    Deadlock,
    EmulatorError,
    MissingProxyFence,
)

KERNELS = [hopper_kernels.transpose]

#: Kernel, the text, the text with the mistake, the error that must come, and words of its message.
PLANTED = [
    ("transpose", "expect(&full, sizeof(in));", "arrive(&full);", AsyncRace, "no wait has seen the phase"),
    (
        "transpose",
        "expect(&full, sizeof(in));",
        "expect(&full, 2048);",
        Deadlock,
        "expect_tx of 2048 bytes that have come",
    ),
    ("transpose", "expect(&full, sizeof(in));", "expect(&full, 8192);", Deadlock, "misses 4096 bytes"),
    ("transpose", "wait(&full, 0)", "wait(&full, 1)", AsyncRace, "transpose.cu:2"),
    ("transpose", "wait(&full, 0);", "", AsyncRace, "no wait has seen the phase"),
    ("transpose", "init(&full, 1)", "init(&full, 2)", Deadlock, "misses 1 arrival"),
    ("transpose", "init(&full, 1);", "", EmulatorError, "full in shared memory, which nothing has written"),
    ("transpose", "    fence_proxy();\n", "", MissingProxyFence, "transpose.cu:28"),
    ("transpose", "        commit();\n        wait_reads();\n", "", AsyncMisuse, "wait_group.read is missing"),
]


@pytest.mark.parametrize("make", KERNELS, ids=lambda make: make.__name__)
def test_kernel_computes_the_expected_bits(make) -> None:
    example = make()
    arrays, _ = emulate(example)
    for number, want in zip(example.results, example.expected(*example.arrays), strict=True):
        assert (arrays[number] == want).all()


@pytest.mark.parametrize(("name", "old", "new", "error", "words"), PLANTED)
def test_planted_mistake_is_found(name: str, old: str, new: str, error: type, words: str) -> None:
    example = replace(getattr(hopper_kernels, name)(), edits=((old, new),))
    with pytest.raises(error, match=words):
        emulate(example)


def test_box_of_the_wrong_height_waits_for_ever() -> None:
    example = hopper_kernels.transpose()
    with pytest.raises(Deadlock, match="misses 2048 bytes"):
        emulate(replace(example, args=(Tensor(0, (32, 16), 128), example.args[1])))


def test_swizzle_spreads_a_column_over_eight_banks() -> None:
    _, counters = emulate(hopper_kernels.transpose())
    assert counters.total("tma load").bytes == counters.total("tma store").bytes == 96 * 64 * 4
    assert counters.total("tma load").requests == 6
    loads, stores = counters.total("shared load"), counters.total("shared store")
    assert loads.wavefronts == 4 * loads.requests
    assert stores.wavefronts == stores.requests
