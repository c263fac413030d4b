"""Reading PTX: scopes, inlined source lines, types of variables and registers, and names that nothing declares."""

from __future__ import annotations

import pytest
from harness import run_ptx

from climb.emulator import UnsupportedInstruction, load, ptx
from climb.emulator.ptx.model import Location
from climb.emulator.translation.registers import register_kinds

HEAD = ".version 8.8\n.target sm_90\n.address_size 64\n"


def test_name_means_the_outer_register_again_after_its_scope_closes() -> None:
    body = ".reg .b32 %x; mov.u32 %x, 7; { .reg .b32 %x; mov.u32 %x, 9; } mov.u32 %o0, %x;"
    (found,) = run_ptx(body, [("u32", [0])], ["u32"])
    assert found.tolist() == [7]


@pytest.mark.parametrize(("caller", "file"), [("1", "k.cu"), ("9", "9")])
def test_code_of_a_toolkit_header_belongs_to_its_caller_by_name_or_by_number(caller: str, file: str) -> None:
    """File 9 is not in the file table: its number stands for its name."""
    text = (
        HEAD
        + f"""
.visible .entry k() {{
.loc 1 3 1
.loc 2 50 4, function_name $L__info, inlined_at {caller} 12 5
ret;
}}
.file 1 "k.cu"
.file 2 "cuda/cuda_fp16.hpp"
"""
    )
    assert ptx.parse(text).functions["k"].body[-1].location == Location(file, 12)


def test_repeated_code_of_a_header_belongs_to_the_next_of_its_callers() -> None:
    """An unrolled loop repeats the code of a function that is inlined twice, and does not say which call it means."""
    text = (
        HEAD
        + """
.visible .entry k() {
.reg .b32 %x;
.loc 1 11 1
.loc 2 50 4, function_name $L__info, inlined_at 1 12 5
mov.u32 %x, 0;
.loc 1 13 1
.loc 2 50 4, function_name $L__info, inlined_at 1 14 5
mov.u32 %x, 1;
.loc 2 60 1, function_name $L__other, inlined_at 2 50 4
mov.u32 %x, 2;
.loc 1 11 1
.loc 2 60 1, function_name $L__other, inlined_at 2 50 4
mov.u32 %x, 3;
.loc 2 60 1, function_name $L__other, inlined_at 2 50 4
mov.u32 %x, 4;
.loc 1 14 1
.loc 2 60 1, function_name $L__other, inlined_at 2 50 4
mov.u32 %x, 5;
.loc 1 20 1
.loc 2 60 1, function_name $L__other, inlined_at 2 50 4
mov.u32 %x, 6;
ret;
}
.file 1 "k.cu"
.file 2 "cuda/cuda_pipeline.h"
"""
    )
    moves = ptx.parse(text).functions["k"].body[:-1]
    assert [each.location.line for each in moves] == [12, 14, 14, 12, 12, 14, 14]


def test_variable_of_two_128_bit_words_has_32_bytes() -> None:
    assert load(HEAD + ".global .align 16 .b128 words[2];").symbol("words").nbytes == 32


def test_address_of_an_undeclared_name_is_refused() -> None:
    with pytest.raises(UnsupportedInstruction, match="nowhere is not a variable with an address"):
        run_ptx("mov.u64 %a9, nowhere; ld.global.u32 %o0, [%a9];", [("u32", [0])], ["u32"])


def test_untyped_register_is_kept_in_the_type_that_most_uses_ask_for() -> None:
    text = (
        HEAD
        + """
.visible .entry k() {
.reg .b32 %value, %count, %bits, %loaded, %low, %high;
.reg .b64 %at;
ld.global.f32 %loaded, [%at];
st.global.v2.s32 [%at], {%low, %high};
add.f32 %value, %value, %value;
mul.f32 %value, %value, %value;
xor.b32 %value, %value, %value;
max.s32 %count, %count, 1;
ret;
}
"""
    )
    kinds = register_kinds(ptx.parse(text).functions["k"])
    assert (kinds["%value"], kinds["%count"], kinds["%bits"]) == ("f32", "s32", "u32")
    assert (kinds["%loaded"], kinds["%low"], kinds["%high"]) == ("f32", "s32", "s32")
