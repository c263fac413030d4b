"""The instructions of a cubin are found by kernel, and are what nvdisasm reads."""

from __future__ import annotations

import pytest

from climb.toolchain import compile_cuda, disassemble
from climb.toolchain.machine_bytes import instruction_bytes

SOURCE = """extern "C" __global__ void add(float* a) { a[threadIdx.x] += 1; }
extern "C" __global__ void nothing() {}
"""


def test_each_kernel_has_its_instructions_and_no_line_table() -> None:
    made = compile_cuda(SOURCE, filename="two.cu", options=("-lineinfo",))
    found = instruction_bytes(made.cubin)
    assert sorted(found) == ["add", "nothing"]
    for name, code in found.items():
        assert len(code) % 16 == 0 and len(code) // 16 >= len(disassemble(made, name)) > 0
    moved = compile_cuda("\n\n" + SOURCE, filename="two.cu", options=("-lineinfo",))
    assert moved.cubin != made.cubin and instruction_bytes(moved.cubin) == found
    other = compile_cuda(SOURCE.replace("+= 1", "+= 2"), filename="two.cu", options=("-lineinfo",))
    assert instruction_bytes(other.cubin)["add"] != found["add"]


def test_what_is_no_cubin_is_refused() -> None:
    with pytest.raises(ValueError, match="not a cubin"):
        instruction_bytes(b"no machine code")
