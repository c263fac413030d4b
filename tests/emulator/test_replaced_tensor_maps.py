"""Threads replace the fields of tensor maps, in shared and in global memory, and copies use the new ones."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from harness import Device
from replaced_maps import BEFORE, CASES, emulate

from climb.emulator import AsyncMisuse, Misaligned, UnsupportedInstruction
from climb.emulator.memory.tensor_map import Im2col, TensorMap


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_copy_uses_the_fields_that_were_replaced(case):
    assert np.array_equal(emulate(case), case.expected())


def test_a_tensor_map_may_break_a_rule_on_the_way_but_not_when_it_is_used():
    """Boxes 24 bytes wide break a rule; so does the fill without a type that has NaNs."""
    (case,) = [case for case in CASES if case.name == "fill and type"]
    assert np.array_equal(emulate(case), case.expected())
    with pytest.raises(AsyncMisuse, match="breaks a rule: elements outside can be NaN only in a tensor of floats"):
        emulate(replace(case, what=1 << 7))


def test_a_tensor_map_for_im2col_mode_cannot_be_replaced_in_tile_mode():
    pixels = TensorMap(
        "uint16", 0, (16, 8, 8), (32, 256), (), (1, 1, 1), im2col=Im2col((0,), (0,), 8, 8)
    )  # fmt: skip
    with pytest.raises(AsyncMisuse, match="made for im2col mode"):
        emulate(replace(CASES[1], what=1), pixels)


def test_bytes_that_are_no_tensor_map_and_fields_that_do_not_exist_are_faults():
    source = r"""
extern "C" __global__ void k(unsigned char* p, int at) {
    asm volatile("tensormap.replace.tile.global_dim.global.b1024.b32 [%0], 3, %1;"
                 :: "l"(p + at), "r"(5) : "memory");
}"""
    device = Device(source, arch="sm_90a")
    with pytest.raises(AsyncMisuse, match="these 128 bytes are no tensor map"):
        device.launch("k", 1, 1, np.zeros(256, np.uint8), 0)
    with pytest.raises(Misaligned, match="no multiple of 128"):
        device.launch("k", 1, 1, np.zeros(256, np.uint8), 64)
    from climb.emulator.memory.tensor_map import encode

    held = np.frombuffer(bytearray(encode(BEFORE)), np.uint8)
    with pytest.raises(AsyncMisuse, match="global_dim has no entry 3: the tensor map has 2 dimensions"):
        device.launch("k", 1, 1, held, 0)


def test_a_choice_must_be_a_constant_of_its_table():
    text = re.sub(
        r"\$",
        "",
        """.version 8.6
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 p) { .reg .b64 %a; ld.param.u64 %a, [p];
tensormap.replace.tile.swizzle_mode.global.b1024.b32 [%a], 7; ret; }""",
    )
    from climb.emulator import load

    with pytest.raises(UnsupportedInstruction, match="swizzle_mode must be a constant, 0 to 3"):
        load(text).kernel("k").launch(1, 1, [b"\0" * 8])
