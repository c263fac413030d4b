"""Local arrays of one function: told apart with `-G`, one variable without it."""

from __future__ import annotations

import numpy as np
import pytest
from harness import Device
from test_function_pointers import SOURCE as RECURSIVE

from climb.emulator import OutOfBounds
from climb.emulator.ptx.local_variables import separate
from climb.emulator.ptx.parser import parse

SOURCE = """
struct Pair { int first[4]; int second[4]; };
__device__ __noinline__ void fill(int* to, int n, int value) { for (int i = 0; i < n; ++i) to[i] = value + i; }
extern "C" __global__ void arrays(int* x, int n, int m) {
    __shared__ int one;  // beside the local variables
    int wide[40], small[4], last[8];
    if (threadIdx.x == 0) one = 1;
    __syncthreads();
    fill(wide, 40, 0);
    fill(last, 8, 50);
    fill(small, n, 100);
    last[m & 15] += one;
    x[threadIdx.x] = wide[(n + 35) & 63] + small[x[0] & 3] + last[x[1] & 7];
}
extern "C" __global__ void members(int* x, int n) {
    Pair pair;
    fill(pair.second, 4, 50);
    fill(pair.first, n, 100);
    x[threadIdx.x] = pair.second[x[0] & 3];
}
"""


@pytest.fixture(scope="module")
def debug() -> Device:
    return Device(SOURCE, options=("-G",))


def test_both_compilations_give_the_same_results(debug: Device) -> None:
    for device in (debug, Device(SOURCE)):
        x = np.arange(32, dtype=np.int32)
        device.launch("arrays", 1, 32, x, 4, 3)
        assert (x == 39 + 100 + 51).all()


@pytest.mark.parametrize(
    ("n", "m", "says"),
    [
        (5, 3, "write of 4 bytes at local address .*, right after the end of the 16 bytes of small in local memory"),
        (4, 9, "read of 4 bytes at local address .*, 4 bytes after the end of the 32 bytes of last in local memory"),
        (6, 3, "16 bytes of small"),
    ],
)
def test_an_overrun_into_the_next_local_array_is_found_with_debug_information(
    debug: Device, n: int, m: int, says: str
) -> None:
    with pytest.raises(OutOfBounds, match=says):
        debug.launch("arrays", 1, 1, np.arange(32, dtype=np.int32), n, m)


def test_an_overrun_into_the_next_member_of_a_structure_is_not_found(debug: Device) -> None:
    """The code computes a member's address from the structure's, as for an element of an array."""
    x = np.zeros(1, np.int32)
    debug.launch("members", 1, 1, x, 6)
    assert x[0] == 104


def test_local_arrays_of_recursive_functions_are_told_apart_too() -> None:
    x = np.random.default_rng(5).random((8, 8), np.float32)
    expected = np.sort(x, axis=1)
    device = Device(RECURSIVE, options=("-G",))
    device.memory.stack_bytes = 1 << 16
    device.launch("sorts", 1, 8, x, 0)
    assert (x == expected).all()


@pytest.mark.parametrize(
    ("use", "apart"),
    [
        ("add.u64 %rd1, %SP, 16;", True), ("add.u64 %rd1, %SPL, 0;", True), ("add.u64 %rd1, %SP, 32;", False),
        ("sub.u64 %rd1, %SP, 16;", False), ("add.u64 %rd1, %SP, %rd2;", False), ("add.u64 %rd1, %rd2, %SP;", False),
        ("ld.u32 %r1, [%SP+16];", False),
    ],
)  # fmt: skip
def test_variables_stay_together_where_a_use_of_their_address_is_not_understood(use: str, apart: bool) -> None:
    text = f""".version 8.8
.target sm_90
.address_size 64
.visible .entry k() {{
.local .align 16 .b8 __local_depot0[32];
.reg .b64 %SP; .reg .b64 %SPL; .reg .b64 %rd<9>; .reg .b32 %r<9>;
mov.u64 %SPL, __local_depot0;
cvta.local.u64 %SP, %SPL;
{use}
ret;
}}"""
    (function,) = parse(text).functions.values()
    separate(function, {"__local_depot0": {0: "one", 16: "two"}})
    assert ("two@16" in {each.name for each in function.variables}) == apart
