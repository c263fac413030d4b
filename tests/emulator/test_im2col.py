"""Tensor copies in im2col mode against a walk over the pixels, one by one, and the rules of their tensor maps."""

from __future__ import annotations

from dataclasses import replace

import im2col_boxes
import numpy as np
import pytest
from im2col_boxes import CASES, emulate

from climb.emulator import AsyncMisuse, UnsupportedInstruction
from climb.emulator.memory.tensor_map import Im2col, TensorMapError, decode, encode


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_pixels_are_those_of_a_walk_through_the_bounding_box(case):
    found, expected = emulate(case), case.expected()
    assert np.array_equal(found, expected)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"start": (0, -2, 0, 0)}, "the first pixel has W -2, outside the bounding box, which has -1 to 5"),
        ({"start": (0, 0, 4, 0)}, "the first pixel has H 4, outside the bounding box, which has -1 to 3"),
    ],
)
def test_a_first_pixel_outside_the_bounding_box_is_a_fault(change, says):
    with pytest.raises(AsyncMisuse, match=says):
        emulate(replace(CASES[0], **change))


def test_a_tensor_map_of_the_other_mode_is_a_fault(monkeypatch):
    def tiled(one):
        how = one.im2col
        return replace(one, im2col=None, box=(how.channels, how.pixels, 1, 1))

    monkeypatch.setattr(im2col_boxes, "encode", lambda one: encode(tiled(one)))
    with pytest.raises(AsyncMisuse, match="a copy in im2col mode, with a tensor map made for tile mode"):
        emulate(CASES[0])


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"lower": (-1,)}, "the lower corner has 1 entries"),
        ({"upper": (0, 128)}, r"the upper corner is \(0, 128\); each entry must be -128 to 127"),
        ({"channels": 257}, "257 channels of a pixel; it must be 1 to 256"),
        ({"pixels": 1025}, "1025 pixels; it must be 1 to 1024"),
        ({"channels": 3}, "the box is 12 bytes wide"),
    ],
)
def test_a_tensor_map_that_breaks_a_rule_is_refused(change, says):
    one = CASES[0].tensor(0)
    with pytest.raises(TensorMapError, match=says):
        encode(replace(one, im2col=replace(one.im2col, **change)))


def test_stores_are_refused_by_name():
    """An H200 stopped at each of four: illegal instruction."""
    case = replace(CASES[0], how="store")
    with pytest.raises(UnsupportedInstruction, match="stores in im2col mode are not supported: an H200 stopped"):
        emulate(case)


def test_two_dimensions_are_too_few_for_im2col_mode():
    one = CASES[0].tensor(0)
    flat = replace(one, dims=one.dims[:2], strides=one.strides[:1], element_strides=(1, 1), im2col=Im2col((), (), 8, 8))
    with pytest.raises(TensorMapError, match="2 dimensions; in im2col mode it must have 3 to 5"):
        encode(flat)


def test_a_tensor_map_comes_back_as_it_was_encoded():
    for case in CASES:
        assert decode(encode(case.tensor(4096))) == case.tensor(4096)
