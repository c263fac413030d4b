"""Cooperative launches: every block is resident, and `grid.sync()` is a barrier of them all that orders memory."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from harness import Device

from climb.cli import main
from climb.emulator import ALL_CHECKS, BarrierDivergence, LaunchError, Race, Trap, checking
from climb.emulator.execution.cooperative import GridBarrier

SOURCE = r"""
#include <cooperative_groups.h>
namespace cg = cooperative_groups;

// Each step reads what other blocks have written in the step before.
extern "C" __global__ void smooth(float* a, float* b, int n, int steps, int synchronise) {
    cg::grid_group grid = cg::this_grid();
    int i = grid.thread_rank();
    for (int step = 0; step < steps; ++step) {
        if (i < n) b[i] = 0.5f * (a[(i + n - 33) % n] + a[(i + 33) % n]);
        if (synchronise) grid.sync();
        float* other = a; a = b; b = other;
    }
}

// Block `absent` leaves without having arrived.
extern "C" __global__ void leaves(int* out, int absent) {
    if (blockIdx.x == absent) return;
    cg::this_grid().sync();
    out[blockIdx.x] = 1;
}

// Blocks below `stay` wait for the grid; later ones leave, or wait for threads that they do not have.
extern "C" __global__ void parts(int* out, int stay, int leave) {
    if (blockIdx.x < stay) cg::this_grid().sync();
    else if (!leave) asm volatile("bar.sync 1, 128;");
    out[blockIdx.x] = 1;
}

// Block 1 arrives a second time, the others do not.
extern "C" __global__ void arrives_twice(int* out) {
    cg::this_grid().sync();
    if (blockIdx.x == 1) cg::this_grid().sync();
    __syncthreads();
    out[blockIdx.x] = 1;
}

extern "C" __global__ void split(int* out, int* sums) {
    cg::grid_group grid = cg::this_grid();
    out[grid.thread_rank()] = grid.thread_rank();
    auto token = grid.barrier_arrive();
    int own = out[grid.thread_rank()];
    grid.barrier_wait(static_cast<decltype(token)&&>(token));
    sums[grid.thread_rank()] = own + out[grid.num_threads() - 1 - grid.thread_rank()];
}
"""


@pytest.fixture(scope="module")
def device() -> Device:
    return Device(SOURCE)


def launch(device: Device, name: str, grid: int, block: int, *args: object) -> None:
    device.launch(name, grid, block, *args, cooperative=True)


def smoothed(a: np.ndarray, steps: int) -> np.ndarray:
    for _ in range(steps):
        a = np.float32(0.5) * (np.roll(a, 33) + np.roll(a, -33))
    return a


@pytest.mark.parametrize(("grid", "block"), [(4, 32), (7, 96), (132, 64)])
def test_grid_sync_separates_the_steps_of_all_blocks(device: Device, grid: int, block: int) -> None:
    n = grid * block - 5
    a, b = np.random.default_rng(1).random(n, np.float32), np.zeros(n, np.float32)
    expected = smoothed(a, 5)
    with checking(ALL_CHECKS):
        launch(device, "smooth", grid, block, a, b, n, 5, 1)
    assert b.tobytes() == expected.tobytes()


def test_a_missing_grid_sync_is_a_race_between_blocks(device: Device) -> None:
    a, b = np.ones(128, np.float32), np.zeros(128, np.float32)
    with checking(ALL_CHECKS), pytest.raises(Race) as caught:
        launch(device, "smooth", 4, 32, a, b, 128, 2, 0)
    assert caught.value.where.text.startswith("if (i < n) b[i]")


def test_arriving_and_waiting_separately_is_ordered_too(device: Device) -> None:
    out, sums = np.zeros(256, np.int32), np.zeros(256, np.int32)
    with checking(ALL_CHECKS):
        launch(device, "split", 4, 64, out, sums)
    assert (sums == 255).all()


def test_a_block_that_leaves_before_the_grid_barrier_is_named(device: Device) -> None:
    with pytest.raises(BarrierDivergence, match=r"4 of 5 blocks wait at this barrier of the grid, block \(3, 0, 0\) "
                       r"has left the kernel") as caught:  # fmt: skip
        launch(device, "leaves", 5, 64, np.zeros(5, np.int32), 3)
    assert caught.value.where.text == "cg::this_grid().sync();"


@pytest.mark.parametrize(
    ("leave", "says"),
    [
        (1, "block (1, 0, 0) has left the kernel (and so have 2 more)"),
        (0, "block (1, 0, 0) waits elsewhere (and so do 2 more)"),
    ],
)
def test_blocks_that_do_not_come_to_the_grid_barrier_are_counted(device: Device, leave: int, says: str) -> None:
    with pytest.raises(BarrierDivergence, match=f"1 of 4 blocks wait at this barrier of the grid, {re.escape(says)}"):
        launch(device, "parts", 4, 64, np.zeros(4, np.int32), 1, leave)


def test_a_block_that_arrives_once_more_than_the_others_is_found(device: Device) -> None:
    with pytest.raises(BarrierDivergence, match="1 of 3 blocks wait at this barrier of the grid"):
        launch(device, "arrives_twice", 3, 64, np.zeros(3, np.int32))


def test_a_grid_barrier_is_given_up_once_each_group_has_polled_an_unchanged_counter_twice() -> None:
    class Found(Exception):
        pass

    class Barrier(GridBarrier):
        def _never(self, polling: object) -> None:
            raise Found

    workspace = SimpleNamespace(data=np.zeros(8, np.uint8))
    site, poll = SimpleNamespace(ptx="ld", action="load", index=0), SimpleNamespace(text="ld")
    code = SimpleNamespace(sites=[site], blocks=[SimpleNamespace(instructions=[poll])])
    batch = SimpleNamespace(grid_barrier=workspace, recent={0: workspace}, kernel=SimpleNamespace(code=code))
    barrier = Barrier(batch)
    for arrived in (1, 2, 3):
        workspace.data[0] = arrived
        for _ in range(5):  # two groups poll; the fifth time nobody has arrived since the first
            barrier.check([(0, None), (0, None)])
    with pytest.raises(Found):
        barrier.check([(0, None), (0, None)])
    batch.recent[0] = object()  # they wait for something else
    barrier.check([(0, None), (0, None)])


def test_grid_sync_in_an_ordinary_launch_stops_the_kernel_and_says_why(device: Device) -> None:
    with pytest.raises(Trap, match="the launch is not cooperative"):
        device.launch("leaves", 2, 32, np.zeros(2, np.int32), 5)


def test_more_blocks_than_are_resident_cannot_be_launched(device: Device) -> None:
    with pytest.raises(LaunchError, match="265 blocks in a cooperative launch; 264 of them fit"):
        launch(device, "leaves", 265, 1024, np.zeros(265, np.int32), 500)


@pytest.mark.thorough
def test_the_command_line_launches_cooperatively(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    (tmp_path / "k.cu").write_text(SOURCE)
    given = [
        "emulate",
        str(tmp_path / "k.cu"),
        "--kernel",
        "leaves",
        "--grid",
        "3",
        "--block",
        "32",
        "--arg",
        "o:int32:3",
    ]
    assert main([*given, "--arg", "-1", "--cooperative"]) == 0
    assert "o (int32, 3): 1 1 1" in capsys.readouterr().out
    assert main([*given, "--arg", "-1"]) == 8
    assert "the launch is not cooperative" in capsys.readouterr().err
