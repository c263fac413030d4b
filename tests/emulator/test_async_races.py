"""Asynchronous copies may happen at any time between issue and wait: what conflicts with one in flight is named."""

from __future__ import annotations

import numpy as np
import pytest
from harness import Device

from climb.emulator import AsyncRace, Race, Uninitialised, checking

# Each case fills in the lines 7 to 11 of its own kernel; all are compiled as one program.
HEAD = r"""#include <cuda_pipeline.h>
#define COPY(to, from) __pipeline_memcpy_async(&s[to], &(from), 4)
#define COMMIT __pipeline_commit()
#define WAIT(n) __pipeline_wait_prior(n)
#define SYNC __syncthreads()
"""
WINDOW = """extern "C" __global__ void {name}(float* a, float* o) {{
    __shared__ __align__(16) float s[128]; int t = threadIdx.x, w = t ^ 32; {body}
}}"""

FAULTS = {
    # name: body with @ before the access that is wrong and # before the issue, error, text of the message
    "read_before_wait": ("# COPY(t, a[t]); COMMIT; @ o[t] = s[t]; WAIT(0);",
                         AsyncRace, "this read of byte 0 of s, .*no cp.async.wait_group has covered its group"),
    "read_by_another_before_wait": ("# COPY(t, a[t]); COMMIT; SYNC; @ o[t] = s[w]; WAIT(0);",
                                    AsyncRace, "this read of byte 128 of s"),
    "not_committed": ("# COPY(t, a[t]); WAIT(0); SYNC; @ o[t] = s[t];",
                      AsyncRace, "no cp.async.commit_group has closed its group"),
    "wait_for_too_few": ("COPY(t, a[t]); COMMIT; # COPY(64 + t, a[64 + t]); COMMIT; WAIT(1); SYNC;"
                         "o[t] = s[t]; @ o[t] += s[64 + t];",
                         AsyncRace, "wait_group at test.cu:[0-9]+ left the latest group open, and its group is that"),
    "wait_two_open": ("# COPY(t, a[t]); COMMIT; COPY(64 + t, a[64 + t]); COMMIT; WAIT(2); @ o[t] = s[t];",
                      AsyncRace, "left the latest 2 groups open, and its group is one of them"),
    "committed_after_wait": ("COPY(t, a[t]); COMMIT; # COPY(64 + t, a[t]); WAIT(0); COMMIT; @ o[t] = s[64 + t];",
                             AsyncRace, "no cp.async.wait_group has covered its group"),
    "second_copy": ("# COPY(t, a[t]); COMMIT; @ COPY(t, a[64 + t]); COMMIT; WAIT(0);",
                    AsyncRace, "this asynchronous copy writes byte 0 of s, which another asynchronous copy"),
    "second_copy_by_another": ("# COPY(t, a[t]); COMMIT; @ COPY(w, a[64 + t]); COMMIT; WAIT(0);",
                               AsyncRace, "byte 128 of s, which another .* of thread .32,0,0."),
    "store_to_target": ("# COPY(t, a[t]); COMMIT; @ s[t] = 1.f; WAIT(0);", AsyncRace, "this write of byte 0 of s"),
    "atomic_on_target": ("# COPY(t, a[t]); COMMIT; @ atomicAdd(&s[t], 1.f); WAIT(0);",
                         AsyncRace, "this atomic operation of byte 0 of s"),
    "byte_of_target": ("# COPY(t, a[t]); COMMIT; @ ((char*)s)[4 * t + 3] = 1; WAIT(0);",
                       AsyncRace, "this write of byte 3 of s"),
    "write_to_source": ("# COPY(t, a[t]); COMMIT; @ a[t] = 1.f; WAIT(0);",
                        AsyncRace, "this write of byte 0 of argument 0, .* reads, issued at"),
    "write_to_source_by_another": ("# COPY(t, a[t]); COMMIT; if (t == 9) @ a[40] = 1.f; WAIT(0);",
                                   AsyncRace, "this write of byte 160 of argument 0, .* of thread .40,0,0. reads"),
    "atomic_on_source": ("# COPY(t, a[t]); COMMIT; @ atomicAdd(&a[t], 1.f); WAIT(0);",
                         AsyncRace, "this atomic operation of byte 0 of argument 0"),
    "no_barrier_after_wait": ("# COPY(t, a[t]); COMMIT; WAIT(0); @ o[t] = s[w];",
                              Race, "writes by an asynchronous copy at .*; "
                              "no __syncthreads lies between the wait for the copy and this"),
    "one_lane_waits": ("# COPY(t, a[t]); COMMIT; if (t != 7) WAIT(0); SYNC; @ o[t] = s[t]; WAIT(0);",
                       AsyncRace, "of byte 28 of s, .* of thread .7,0,0. writes"),
    "same_value_still_in_flight": ("COPY(t, a[t]); COMMIT; # COPY(t, a[t]); COMMIT; WAIT(1); SYNC; @ o[t] = s[t];",
                                   AsyncRace, "this read of byte 0 of s, .* left the latest group open"),
    "some_blocks_copy_more": ("# COPY(t, a[t]); COMMIT; if (blockIdx.x % 2 == 0) { COPY(64 + t, a[64 + t]); COMMIT; }"
                              "@ o[t] = s[t]; WAIT(0);", AsyncRace, "this read of byte 0 of s"),
    "reader_not_done": ("s[t] = 1.f; SYNC; @ o[t] = s[w]; # COPY(t, a[t]); COMMIT; WAIT(0);",
                        Race, "this write by an asynchronous copy of byte 0 of s, which thread .32,0,0. reads at"),
    "generic_read": ("# COPY(t, a[t]); COMMIT; float* p = s; asm volatile(\"\" : \"+l\"(p)); @ o[t] = p[t];",
                     AsyncRace, "this read of byte 0 of s"),
    "different_values_in_one_copy": ("# @ COPY(t / 2, a[t]); COMMIT; WAIT(0);",
                                     Race, "threads write different values to byte 0 of s at once"),
    "nothing_copied": ("# @ COPY(t, a[t]); COMMIT; WAIT(0); SYNC; o[t] = s[t + 64];",
                       Uninitialised, "a load reads byte 256 of s"),
}  # fmt: skip

RIGHT = {
    "overlap": "COPY(t, a[t]); COMMIT; COPY(64 + t, a[64 + t]); COMMIT; WAIT(1); SYNC; o[t] = s[w];"
               "WAIT(0); SYNC; o[t] += s[64 + w];",
    "reuse": "for (int i = 0; i < 3; ++i) { COPY(t, a[t]); COMMIT; WAIT(0); SYNC; o[t] += s[w]; SYNC; }",
    "same_values_twice": "COPY(t, a[t]); COPY(t, a[t]); COPY(w, a[w]); COPY(t / 2, a[t / 2]); COMMIT; WAIT(0); SYNC;"
                         "o[t] = s[w];",
    "read_of_the_source": "COPY(t, a[t]); COMMIT; o[t] = a[w]; WAIT(0); SYNC; o[t] += s[w];",
    "write_beside_the_source": "COPY(t, a[t]); COMMIT; a[64 + t] = 1.f; WAIT(0); SYNC; o[t] = s[w] + a[64 + t];",
    "source_written_after_the_wait": "COPY(t, a[t]); COMMIT; WAIT(0); a[t] = 2.f; SYNC; o[t] = s[w];",
    "own_data_needs_no_barrier": "COPY(t, a[t]); COMMIT; WAIT(0); o[t] = s[t];",
    "odd_blocks_copy": "s[t] = a[t]; SYNC; if (blockIdx.x % 2) { COPY(t, a[t]); COMMIT; WAIT(0); } SYNC; o[t] = s[w];",
    "even_blocks_read": "s[t] = a[t]; SYNC; if (blockIdx.x % 2) { COPY(t, a[t]); COMMIT; } o[t] = 0;"
                        "if (blockIdx.x % 2 == 0) { SYNC; o[t] = s[w]; SYNC; s[t] = 1.f; } WAIT(0);",
    "third_block_reads": "s[t] = a[t]; SYNC; COPY(t, a[t]); COMMIT; if (blockIdx.x != 3) WAIT(0); SYNC;"
                         "o[t] = s[w]; WAIT(0);",
    "left_in_flight_at_the_end": "COPY(t, a[t]); COMMIT; o[t] = 1.f;",
}  # fmt: skip


def _kernels() -> tuple[str, dict[str, tuple[int, int]]]:
    """The program with all kernels, and for each the lines of the wrong access and of the issue."""
    text, lines = HEAD, {}
    for name, body in {**{name: each[0] for name, each in FAULTS.items()}, **RIGHT}.items():
        body = body.replace("#", "\n#").replace("@", "\n@").replace("#", "/*issue*/").replace("@", "/*wrong*/")
        start = text.count("\n")
        text += WINDOW.format(name=name, body=body) + "\n"
        own = text.split("\n")[start:]
        found = [next((start + 1 + n for n, line in enumerate(own) if mark in line), 0) for mark in ("wrong", "issue")]
        lines[name] = tuple(found)
    return text, lines


SOURCE, LINES = _kernels()


@pytest.fixture(scope="module")
def device():
    return Device(SOURCE)


@pytest.mark.parametrize("name", FAULTS)
def test_conflict_with_a_copy_in_flight_names_both_lines(device, name):
    _, error, text = FAULTS[name]
    with pytest.raises(error, match=text) as caught:
        device.launch(name, 2, 64, np.arange(128, dtype=np.float32), np.zeros(64, np.float32))
    found, (wrong, issue) = caught.value, LINES[name]
    assert type(found) is error and found.where.block == (0, 0, 0)
    if name in ("different_values_in_one_copy", "nothing_copied"):
        return
    here, there = (issue, wrong) if name == "reader_not_done" else (wrong, issue)
    assert (found.where.line, found.other.line) == (here, there)


@pytest.mark.parametrize("name", RIGHT)
def test_kernel_that_waits_is_right(device, name):
    data = np.arange(128, dtype=np.float32)
    out = np.zeros(64, np.float32)
    device.launch(name, 1, 64, data.copy(), out)
    swapped = data[:64].reshape(2, 32)[::-1].ravel()
    want = {
        "overlap": 2 * swapped + 64, "reuse": 3 * swapped, "read_of_the_source": 2 * swapped,
        "write_beside_the_source": swapped + 1, "own_data_needs_no_barrier": data[:64],
        "left_in_flight_at_the_end": np.ones(64),
    }.get(name, swapped)  # fmt: skip
    assert (out == want).all()


@pytest.mark.parametrize("name", ["odd_blocks_copy", "even_blocks_read"])
def test_blocks_that_copy_differ_from_those_that_do_not(device, name):
    data, out = np.arange(128, dtype=np.float32), np.zeros(64, np.float32)
    device.launch(name, 5, 64, data, out)


def test_conflict_in_one_block_names_the_block(device):
    data = np.arange(128, dtype=np.float32)
    with pytest.raises(AsyncRace, match=r"this read of byte 128 of s, .* of thread .32,0,0. writes") as caught:
        device.launch("third_block_reads", 5, 64, data, np.zeros(64, np.float32))
    assert caught.value.where.block == caught.value.other.block == (3, 0, 0)


def test_copies_of_other_blocks_are_no_conflict(device):
    """Each block has shared memory of its own; `w` of block 0 is no address of block 1."""
    data, out = np.arange(128, dtype=np.float32), np.zeros(64, np.float32)
    device.launch("overlap", 600, 64, data, out)
    with checking(()):
        device.launch("read_before_wait", 2, 64, data, out)
    assert (out == 0).all()
