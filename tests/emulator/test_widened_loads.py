"""Loads that the compiler has widened: the bytes that the source does not ask for must not cause errors."""

from __future__ import annotations

import numpy as np
import pytest
from harness import DeviceMemory, pointer

from climb.emulator import OutOfBounds, Uninitialised, load, run
from climb.emulator.running import Result

SOURCE = """
constexpr int kLength = @@;  // of it the kernel reads seven floats
extern "C" __global__ void shared_end(float* out, int filled) {
    __shared__ __align__(16) float s[kLength];
    if (threadIdx.x < filled) s[threadIdx.x] = threadIdx.x + 1;
    __syncthreads();
    out[threadIdx.x] = s[0] + s[1] + s[2] + s[4] + s[5] + s[6];
}
extern "C" __global__ void global_end(const float* __restrict__ in, float* out) {
    const float* own = static_cast<const float*>(__builtin_assume_aligned(in + 4 * threadIdx.x, 16));
    out[threadIdx.x] = own[0] + own[1] + own[2];
}
extern "C" __global__ void bytes_of_a_word(float* out) {
    __shared__ __align__(4) unsigned char s[4];
    if (threadIdx.x < 3) s[threadIdx.x] = threadIdx.x + 1;
    __syncthreads();
    out[threadIdx.x] = s[0] | s[1] << 8 | s[2] << 16;
}
extern "C" __global__ void whole(const float4* __restrict__ in, float* out) {
    const float4 four = in[threadIdx.x];
    out[threadIdx.x] = four.x + four.y + four.z;
}
"""


def launch(kernel: str, *args: object, length: int = 7) -> tuple[np.ndarray, Result]:
    out = np.zeros(8, np.float32)
    given = [out if arg is None else arg for arg in args]
    return out, run(SOURCE.replace("@@", str(length)), kernel, grid=1, block=8, args=given)


def test_a_widened_load_at_the_end_of_a_shared_array_raises_nothing() -> None:
    """Seven floats are loaded, and counted, as two loads of 16 bytes."""
    out, done = launch("shared_end", None, 7)
    assert "used_bytes_mask 4095" in done.compiled.ptx
    assert (out == 24).all()
    loads = done.counters.total("shared load")
    assert (loads.width, loads.requests, loads.lanes) == (16, 2, 16)


def test_a_source_read_past_the_end_is_found() -> None:
    with pytest.raises(OutOfBounds, match="the 24 bytes of"):
        launch("shared_end", None, 6, length=6)


def test_a_source_read_of_unwritten_memory_is_found() -> None:
    """Six of seven are filled: byte 24 is asked for, byte 28 is not."""
    with pytest.raises(Uninitialised, match="a load reads byte 24 of s"):
        launch("shared_end", None, 6)


def test_a_widened_load_at_the_end_of_global_memory_raises_nothing() -> None:
    values = np.arange(31, dtype=np.float32)
    out, done = launch("global_end", values, None)
    assert (out == 3 + 12 * np.arange(8)).all()
    assert done.counters.total("global load").width == 16
    with pytest.raises(OutOfBounds, match="right after the end of argument 0"):
        launch("global_end", values[:30], None)


def test_some_bytes_of_a_word_are_loaded() -> None:
    out, _ = launch("bytes_of_a_word", None)
    assert (out == 0x030201).all()


def test_a_float4_of_the_source_is_read_whole() -> None:
    """Its last member is unused, but the source asks for it, so a GPU would fault."""
    with pytest.raises(OutOfBounds):
        launch("whole", np.arange(31, dtype=np.float32), None)


def test_widened_load_of_local_memory_makes_a_request_for_each_word_of_each_warp() -> None:
    """Two warps load four words each: eight requests, although the source asks for three of the words."""
    text = """.version 8.8
.target sm_90
.address_size 64
.visible .entry k(.param .u64 p) {
.local .align 16 .b8 v[16];
.reg .b64 %a;
.reg .b32 %x, %y, %z, %w;
mov.u32 %x, %tid.x;
st.local.u32 [v], %x;
st.local.u32 [v+4], %x;
st.local.u32 [v+8], %x;
.pragma "used_bytes_mask 4095";
ld.local.v4.u32 {%x, %y, %z, %w}, [v];
ld.param.u64 %a, [p];
st.global.u32 [%a], 1;
ret;
}"""
    memory = DeviceMemory()
    counters = load(text).kernel("k").launch(1, 64, [pointer(memory.allocate(4))], memory=memory)
    found = counters.total("local load")
    assert (found.width, found.requests, found.lanes) == (16, 8, 64)


def test_element_that_the_mask_leaves_out_is_loaded_if_its_register_is_read() -> None:
    """NVRTC has been seen to leave one out; mask 0xf0f of a vector whose second element is stored."""
    text = """.version 8.8
.target sm_90
.address_size 64
.visible .entry k(.param .u64 p, .param .u64 q) {
.reg .b64 %a, %b;
.reg .b32 %x, %y, %z, %w;
ld.param.u64 %a, [p];
ld.param.u64 %b, [q];
.pragma "used_bytes_mask 3855";
ld.global.v4.u32 {%x, %y, %z, %w}, [%a];
st.global.v2.u32 [%b], {%y, %z};
ret;
}"""
    memory = DeviceMemory()
    source, target = memory.allocate(12), memory.allocate(8)
    source.view(np.dtype(np.uint32))[:] = [5, 6, 7]
    load(text).kernel("k").launch(1, 1, [pointer(source), pointer(target)], memory=memory)
    assert target.view(np.dtype(np.uint32)).tolist() == [6, 7]  # the fourth lies behind the array and is not read
