"""Errors of faulty kernels: they name the place, the lanes and the memory."""

from __future__ import annotations

import numpy as np
import pytest
from harness import Device, pointer, run_ptx

from climb.emulator import (
    BarrierDivergence,
    EmulatorError,
    EndlessLoop,
    LaunchError,
    Misaligned,
    OutOfBounds,
    UnsupportedInstruction,
    load,
)
from climb.emulator.ptx.model import Location

SOURCE = r"""
extern "C" __global__ void past(const float* a, float* o, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i <= n)
        o[i] = a[i];
}
extern "C" __global__ void before(const float* a, float* o) {
    int i = threadIdx.x;
    o[i] = a[i - 1];
}
extern "C" __global__ void row(float* o, int pitch) {
    o[threadIdx.y * pitch + threadIdx.x] = 1;
}
extern "C" __global__ void huge(float* o, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i == 40000)
        o[i * n] = 1;
}
extern "C" __global__ void shared_past(float* o) {
    __shared__ float s[32];
    s[threadIdx.x * 2] = 1;
    __syncthreads();
    o[threadIdx.x] = s[threadIdx.x];
}
extern "C" __global__ void skewed(const float* a, float4* o) {
    o[threadIdx.x] = *(const float4*)(a + threadIdx.x * 4 + 1);
}
extern "C" __global__ void half_barrier(float* o) {
    __shared__ float s[64];
    s[threadIdx.x] = o[threadIdx.x];
    if (threadIdx.x < 40)
        __syncthreads();
    o[threadIdx.x] = s[threadIdx.x];
}
extern "C" __global__ void left_early(float* o, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    o[i] = 1;
    __syncthreads();
    o[i] += 1;
}
extern "C" __global__ void two_barriers(float* o) {
    if (threadIdx.x % 2) { o[threadIdx.x] = 1;
        __syncthreads(); o[threadIdx.x] = 2; }
    else { o[threadIdx.x] = 3;
        __syncthreads(); o[threadIdx.x] = 4; }
}
extern "C" __global__ void forever(volatile int* o) {
    while (o[0] == 0) { }
    o[1] = 1;
}
extern "C" __global__ void fine(float* o) { o[threadIdx.x] = 1; }
extern "C" __global__ void __launch_bounds__(64) bounded(float* o) { o[threadIdx.x] = 1; }
"""


@pytest.fixture(scope="module")
def device():
    return Device(SOURCE)


def test_a_read_one_past_the_end_is_found(device):
    a, o = np.zeros(100, np.float32), np.zeros(200, np.float32)
    with pytest.raises(OutOfBounds) as caught:
        device.launch("past", 4, 32, a, o, 100)
    error = caught.value
    assert (error.where.line, error.where.text) == (5, "o[i] = a[i];")
    assert (error.where.block, error.where.thread, error.where.lanes) == ((3, 0, 0), (4, 0, 0), 1)
    assert (error.allocation.name, error.distance) == ("argument 0", 0)
    text = str(error)
    assert "read of 4 bytes" in text and "right after the end of argument 0 (400 bytes)" in text
    assert "kernel past, test.cu:5: o[i] = a[i];" in text and "block (3,0,0) thread (4,0,0)" in text
    assert "look at:" in text


def test_a_read_before_the_start_is_found(device):
    with pytest.raises(OutOfBounds, match=r"4 bytes before the start of argument 0") as caught:
        device.launch("before", 1, 32, np.zeros(32, np.float32), np.zeros(32, np.float32))
    assert caught.value.where.thread == (0, 0, 0) and caught.value.where.lanes == 1


def test_a_write_far_past_the_end_hits_no_other_array(device):
    first = np.zeros((4, 8), np.float32)
    with pytest.raises(OutOfBounds) as caught:
        device.launch("row", 1, (8, 4), first, 5000)
    # Rows 1 to 3 are out of bounds: row 1 begins 20000 bytes after the start, 19872 after the end of the 128 bytes.
    assert (caught.value.where.thread, caught.value.where.lanes, caught.value.distance) == ((0, 1, 0), 24, 19872)
    assert "write of 4 bytes" in str(caught.value)


def test_an_overflowing_index_is_found(device):
    # 40000 * 60000 is 2.4e9, which overflows to -1894967296: 7579869184 bytes before the start.
    with pytest.raises(OutOfBounds, match="7579869184 bytes before the start of argument 0"):
        Device(SOURCE).launch("huge", 40, 1024, np.zeros(64, np.float32), 60000)


def test_a_null_pointer_is_named():
    device = Device('extern "C" __global__ void k(int* p) { p[threadIdx.x] = 1; }')
    with pytest.raises(OutOfBounds, match="at 0x0, a null pointer") as caught:
        device.kernel("k").launch(1, 32, [bytes(8)], memory=device.memory)
    assert caught.value.where.lanes == 32 and caught.value.allocation is None


@pytest.mark.parametrize(("at", "says"), [(12, "at 0xc, a null pointer"), (123456, "at 0x1e240, far from every array")])
def test_an_address_far_from_every_array_names_no_array(at: int, says: str) -> None:
    device = Device('extern "C" __global__ void k(int* p) { p[0] = 1; }')
    device.memory.allocate(512, "scratch")
    with pytest.raises(OutOfBounds, match=says) as caught:
        device.kernel("k").launch(1, 1, [at.to_bytes(8, "little")], memory=device.memory)
    assert caught.value.allocation is None
    with pytest.raises(Misaligned, match="4-byte store at 0xd, which"):
        device.kernel("k").launch(1, 1, [(13).to_bytes(8, "little")], memory=device.memory)


def test_use_after_free_is_named():
    device = Device('extern "C" __global__ void k(int* p) { p[threadIdx.x + 2] = 1; }')
    held = device.memory.allocate(512, "scratch")
    device.memory.free(held)
    with pytest.raises(OutOfBounds, match=r"byte 8 of scratch \(512 bytes\), which has been freed"):
        device.launch("k", 1, 32, held)


def test_an_access_that_straddles_the_end_is_found():
    device = Device('extern "C" __global__ void k(double* p) { p[threadIdx.x] = 1; }')
    held = device.memory.allocate(20, "odd")
    with pytest.raises(OutOfBounds, match=r"only 4 bytes of odd \(20 bytes\) are left"):
        device.launch("k", 1, 3, held)


def test_an_access_past_shared_memory_is_found(device):
    with pytest.raises(OutOfBounds, match="right after the end of the 128 bytes of shared memory") as caught:
        device.launch("shared_past", 1, 32, np.zeros(32, np.float32))
    # 2 * t reaches 32 at t = 16, so 16 lanes are out of bounds.
    assert (caught.value.where.thread, caught.value.where.lanes) == ((16, 0, 0), 16)
    assert caught.value.where.text == "s[threadIdx.x * 2] = 1;"


def test_missing_dynamic_shared_memory_is_found():
    device = Device(
        'extern "C" __global__ void k(int* o) { extern __shared__ int s[]; s[threadIdx.x] = 1; o[0] = s[threadIdx.x]; }'
    )
    with pytest.raises(OutOfBounds, match="the 0 bytes of shared memory"):
        device.launch("k", 1, 32, np.zeros(1, np.int32))
    device.launch("k", 1, 32, np.zeros(1, np.int32), shared=128)


def test_a_misaligned_vector_access_is_found(device):
    with pytest.raises(Misaligned, match=r"16-byte load at 0x[0-9a-f]+4, byte 4 of argument 0") as caught:
        device.launch("skewed", 1, 4, np.zeros(64, np.float32), np.zeros((4, 4), np.float32))
    assert caught.value.where.lanes == 4 and caught.value.width == 16


def test_a_barrier_that_some_threads_miss_is_found(device):
    with pytest.raises(BarrierDivergence) as caught:
        device.launch("half_barrier", 1, 64, np.zeros(64, np.float32))
    assert "40 of 64 threads of the block wait at this barrier, 24 have left the kernel" in str(caught.value)
    assert caught.value.where.text == "__syncthreads();" and caught.value.where.lanes == 40


def test_an_exit_before_a_barrier_is_found(device):
    with pytest.raises(BarrierDivergence, match=r"4 of 32 threads .* 28 have left the kernel") as caught:
        device.launch("left_early", 4, 32, np.zeros(100, np.float32), 100)
    assert caught.value.where.block == (3, 0, 0)


def test_waiting_at_two_different_barriers_is_found(device):
    with pytest.raises(BarrierDivergence, match=r"16 of 32 threads .*, 16 wait at line"):
        device.launch("two_barriers", 1, 32, np.zeros(32, np.float32))


def test_a_barrier_in_uniform_control_flow_raises_nothing():
    device = Device(
        r"""extern "C" __global__ void k(int* o, int n) { __shared__ int s[64]; int t = threadIdx.x, b = blockIdx.x;
        s[t] = t;
        for (int i = 0; i < b + n; ++i) { __syncthreads(); int v = s[(t + 1) % 64]; __syncthreads(); s[t] = v; }
        if (b % 2) { __syncthreads(); s[t] += 100; } o[b * 64 + t] = s[t]; }"""
    )
    out = np.zeros((9, 64), np.int32)
    found = device.launch("k", 9, 64, out, 2)
    assert out.tolist() == [[(t + b + 2) % 64 + 100 * (b % 2) for t in range(64)] for b in range(9)]
    assert found.barriers == sum(2 * (b + 2) + b % 2 for b in range(9))


def test_early_threads_wait_at_a_barrier_for_late_ones():
    """Lanes that loop longer arrive later; the others wait."""
    device = Device(
        r"""extern "C" __global__ void k(int* o) { __shared__ int s[96]; int t = threadIdx.x, v = 0;
        for (int i = 0; i < t * 3 % 17; ++i) v += i * o[0];
        if (t % 5 == 0) v -= 1; else if (t % 7 == 0) { for (int i = 0; i < t; ++i) v ^= i; }
        s[t] = v; __syncthreads(); o[1 + t] = s[95 - t]; }"""
    )
    out = np.ones(97, np.int32)
    device.launch("k", 1, 96, out)

    def value(t):
        v = sum(range(t * 3 % 17))
        if t % 5 == 0:
            return v - 1
        if t % 7 == 0:
            for i in range(t):
                v ^= i
        return v

    assert out[1:].tolist() == [value(95 - t) for t in range(96)]


def test_an_endless_loop_is_found(device):
    with pytest.raises(EndlessLoop) as caught:
        device.launch("forever", 1, 32, np.zeros(2, np.int32), max_steps=500)
    assert caught.value.where.text == "while (o[0] == 0) { }"


def test_an_unsupported_instruction_is_refused_before_anything_runs():
    source = 'extern "C" __global__ void k(int* o) {\n  o[0] = 1;\n  asm volatile("tcgen05.wait::ld.sync.aligned;");\n}'
    device = Device(source + '\nextern "C" __global__ void other(int* o) { o[0] = 2; }')
    out = np.zeros(1, np.int32)
    with pytest.raises(UnsupportedInstruction, match=r"tcgen05.wait::ld.sync.aligned is not supported") as caught:
        device.launch("k", 1, 1, out)
    assert caught.value.where.line == 3 and out[0] == 0
    device.launch("other", 1, 1, out)
    assert out[0] == 2


def test_a_parameter_read_at_a_variable_of_another_kind_is_refused():
    with pytest.raises(UnsupportedInstruction, match="a parameter is read at an address that is not constant"):
        run_ptx("ld.param.u32 %o0, [table];", [("u32", [1])], ["u32"], ".global .u32 table[2];")


@pytest.mark.parametrize(
    "grid,block,args,message",
    [
        (1, 2048, 1, "2048 threads; at most 1024"),
        ((1, 70000), 32, 1, "larger than"),
        (0, 32, 1, "grid must be one to three positive integers"),
        (1, (32, 0), 1, "block must be"),
        (1, (1, 1, 1, 1), 1, "block must be"),
        (1, 32, 0, "0 arguments given, 1 expected"),
        (1, 32, 2, "2 arguments given, 1 expected"),
    ],
)
def test_impossible_launches_are_refused(device, grid, block, args, message):
    held = device.memory.allocate(4096)
    with pytest.raises(LaunchError, match=message):
        device.kernel("fine").launch(grid, block, [pointer(held)] * args, memory=device.memory)


def test_wrong_argument_sizes_and_launch_bounds_are_refused(device):
    held = device.memory.allocate(4096)
    with pytest.raises(LaunchError, match="argument 0 has 4 bytes, 8 expected"):
        device.kernel("fine").launch(1, 32, [bytes(4)], memory=device.memory)
    with pytest.raises(LaunchError, match="__launch_bounds__ says 64"):
        device.kernel("bounded").launch(1, 96, [pointer(held)], memory=device.memory)
    with pytest.raises(LaunchError, match="bytes of shared memory"):
        device.kernel("fine").launch(1, 32, [pointer(held)], memory=device.memory, shared_bytes=300_000)


def test_an_unknown_kernel_name_is_refused(device):
    with pytest.raises(KeyError, match=r"no kernel nothing in this module; it has: .*past"):
        device.module.kernel("nothing")


def test_text_that_is_not_ptx_is_refused():
    from climb.emulator.ptx import PtxSyntaxError

    with pytest.raises(PtxSyntaxError):
        load(".version 8.8\n.target sm_90\nthis is not ptx")


def test_error_names_how_many_threads_it_affects_if_there_are_several(device) -> None:
    for (grid, kernel, block, *rest), last in (
        (
            (1, "row", (8, 4), np.zeros((4, 8), np.float32), 5000),
            "block (0,0,0) thread (0,1,0), the first of 24 threads",
        ),
        ((4, "past", 32, np.zeros(100, np.float32), np.zeros(200, np.float32), 100), "block (3,0,0) thread (4,0,0)"),
    ):
        with pytest.raises(OutOfBounds) as caught:
            device.launch(kernel, grid, block, *rest)
        assert str(caught.value).splitlines()[2] == "  " + last


def test_error_about_a_place_has_the_text_of_its_line_if_there_is_one() -> None:
    sources = {"a.cu": ["  first;", "last;"]}
    found = [EmulatorError.at("k", Location("a.cu", line), sources, "wrong").where.text for line in range(4)]
    assert found == ["", "first;", "last;", ""]
    assert EmulatorError.at("k", Location("b.cu", 1), sources, "wrong").where.text == ""
