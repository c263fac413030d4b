"""Bulk copies that the lanes of one instruction issue together do what they do when they are issued one by one."""

from __future__ import annotations

import re

import numpy as np
import pytest
from harness import Device
from hopper_kernels import FOLDER

from climb.emulator import (
    ALL_CHECKS,
    AsyncMisuse,
    AsyncRace,
    Deadlock,
    EmulatorError,
    OutOfBounds,
    checking,
)
from climb.emulator.runtime import joint_copies
from climb.emulator.simt.asynchronous import Operation

PTX = (FOLDER / "ptx.cuh").read_text(encoding="utf-8").replace("#pragma once", "")
BLOCKS = 6
#: One thread of each block copies 256 bytes. Odd blocks wait at once, the others after a barrier of the block.
BY_BLOCK = r"""
extern "C" __global__ void k(int* in, int* out) {
    __shared__ alignas(128) int s[64];
    __shared__ Word bar;
    int t = threadIdx.x, at = 64 * blockIdx.x;
    if (t == 0) init(&bar, 1);
    __syncthreads();
    if (t == 0) { expect(&bar, 256); copy_in(s, in + at, 256, &bar); }
    if (blockIdx.x & 1) { wait(&bar, 0); out[at + t] = 3 * s[t]; return; }
    out[at + t] = -1;
    __syncthreads();
    wait(&bar, 0);
    out[at + t] = s[t];
}"""
#: Each lane of a warp copies 16 bytes; the last eight have an mbarrier of their own, on which nobody waits at first.
BY_LANE = r"""
extern "C" __global__ void k(int* in, int* out) {
    __shared__ alignas(128) int s[4 * 64];
    __shared__ Word bar[2];
    int t = threadIdx.x, at = 256 * blockIdx.x + 4 * t;
    if (t == 0) { init(&bar[0], 1); init(&bar[1], 1); expect(&bar[0], 16 * 56); expect(&bar[1], 16 * 8); }
    __syncthreads();
    copy_in(s + 4 * t, in + at, 16, &bar[t >= 56]);
    wait(&bar[0], 0);
    if (t < 56) out[at] = s[4 * t];
    wait(&bar[1], 0);
    for (int i = 0; i < 4; ++i) out[at + i] = s[4 * t + i];
}"""


def run(text: str, cells: int) -> tuple[np.ndarray, object]:
    """The outputs of a kernel, and what it counted."""
    given = np.arange(cells, dtype=np.int32)
    out = np.zeros_like(given)
    with checking(ALL_CHECKS):
        counted = Device(PTX + text).launch("k", BLOCKS, 64, given, out)
    return out, counted.lines


def refused(text: str) -> str:
    """The message of a kernel's error, without the number of threads: where copies are compared one by one, the first
    that conflicts is found in one block."""
    with pytest.raises(EmulatorError) as caught:
        run(text, 64 * BLOCKS)
    return re.sub(r",? the first of \d+ threads", "", f"{type(caught.value).__name__}: {caught.value}")


@pytest.fixture
def divisions(monkeypatch: pytest.MonkeyPatch) -> list[set[int]]:
    """The mbarriers of each operation that has been divided."""
    found, plain = [], Operation.parts

    def parts(self: Operation, words: set[int]) -> list[Operation]:
        out = plain(self, words)
        found.extend(set(one.barriers) for one in out if len(out) > 1)
        return out

    monkeypatch.setattr(Operation, "parts", parts)
    return found


@pytest.mark.parametrize(("text", "cells"), [(BY_BLOCK, 64 * BLOCKS), (BY_LANE, 256 * BLOCKS)], ids=["block", "lane"])
def test_copies_are_divided_where_only_some_are_waited_for(text, cells, divisions, monkeypatch) -> None:
    out, counted = run(text, cells)
    expected = np.arange(cells)
    assert np.array_equal(out, np.where(expected // 64 % 2, 3, 1) * expected if text is BY_BLOCK else expected)
    assert len(divisions) == 2 and divisions[0].isdisjoint(divisions[1])
    divisions.clear()
    monkeypatch.setattr(joint_copies, "issue", lambda *_: False)
    apart = run(text, cells)
    assert divisions == [] and np.array_equal(apart[0], out) and apart[1] == counted


@pytest.mark.parametrize(
    ("old", "new", "error"),
    [
        ("    __syncthreads();\n    wait", "    int v = s[t]; out[at] = v;\n    wait", AsyncRace),
        ("{ wait(&bar, 0); out[at + t] = 3", "{ out[at + t] = 3", AsyncRace),
        ("copy_in(s,", "s[5] = 1; copy_in(s,", None),
        ("    out[at + t] = -1;\n", "    in[at + t] = -1;\n", AsyncRace),
        ("if (t == 0) { expect(&bar, 256); copy_in(s", "if (t < 2) { if (!t) expect(&bar, 512); copy_in(s", AsyncRace),
        ("expect(&bar, 256)", "expect(&bar, 240)", Deadlock),
        ("{ wait(&bar, 0); out[at + t] = 3 * s[t]; return; }", "return;", AsyncMisuse),
        ("copy_in(s,", "copy_in(s + 4,", OutOfBounds),
        ("in + at, 256", "in + at + 128, 256", OutOfBounds),
    ],
    ids=["read early", "no wait", "written before", "source", "twice", "bytes", "left", "target", "far"],
)  # fmt: skip
def test_mistakes_are_named_as_if_copies_were_issued_one_by_one(old, new, error, monkeypatch) -> None:
    planted = BY_BLOCK.replace(old, new)
    assert planted != BY_BLOCK
    if error is None:
        together = run(planted, 64 * BLOCKS)[1]
        monkeypatch.setattr(joint_copies, "issue", lambda *_: False)
        assert run(planted, 64 * BLOCKS)[1] == together
        return
    together = refused(planted)
    assert together.startswith(error.__name__)
    monkeypatch.setattr(joint_copies, "issue", lambda *_: False)
    assert refused(planted) == together


def test_a_phase_that_ends_before_its_copies_is_named(monkeypatch) -> None:
    """The arrival ends the phase to which the copy belongs; the waits ask for the next one."""
    issue = "copy_in(s, in + at, 256, &bar);"
    planted = BY_BLOCK.replace(f"expect(&bar, 256); {issue}", f"{issue} arrive(&bar);")
    planted = planted.replace("wait(&bar, 0)", "wait(&bar, 1)")
    together = refused(planted)
    assert together.startswith("BarrierMisuse: mbarrier: the phase of the mbarrier ended before this copy of 256 bytes")
    monkeypatch.setattr(joint_copies, "issue", lambda *_: False)
    assert refused(planted) == together
