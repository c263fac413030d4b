"""The steps of a kernel: those of the first warp of the first block, and no others."""

from __future__ import annotations

from harness import DeviceMemory, pointer

from climb.emulator import load
from climb.emulator.execution.steps import follow
from climb.toolchain import compile_cuda

SOURCE = """extern "C" __global__ void k(int* o) {
    int t = threadIdx.x;
    if (t < 8)
        atomicAdd(o, t + 1);
    if (t >= 32)
        atomicAdd(o + 1, t + 2);
    if (blockIdx.x == 1)
        atomicAdd(o + 2, t + 3);
}"""


def test_steps_of_other_warps_and_blocks_are_left_out() -> None:
    compiled = compile_cuda(SOURCE, filename="k.cu")
    memory = DeviceMemory()
    out = memory.allocate(12)
    steps = follow(load(compiled.ptx, compiled.sources).kernel("k"), 2, 64, [pointer(out)], memory=memory)
    assert all(step.lanes.any() for step in steps)
    lanes = {line: step.lanes.tolist() for step in steps for line in step.lines if line in (4, 6, 8)}
    assert lanes == {4: [True] * 8 + [False] * 24}
