"""Texture reads of memory that copies, launches and stores write are checked as the loads that they are."""

from __future__ import annotations

from contextlib import nullcontext

import numpy as np
import pytest

from climb import fake_cupy as cp
from climb.emulator import ALL_CHECKS, AsyncRace, EarlyAccess, Race, Uninitialised, checking, dependent_launches

SOURCE = r"""
#define ASM asm volatile
extern "C" {
__global__ void writes(float* a) {
    ASM("griddepcontrol.launch_dependents;" ::: "memory");
    a[threadIdx.x] = threadIdx.x;
}
__global__ void reads(cudaTextureObject_t t, float* out, int waits) {
    if (waits) ASM("griddepcontrol.wait;" ::: "memory");
    out[threadIdx.x] = tex1Dfetch<float>(t, threadIdx.x);
}
__global__ void copies(cudaTextureObject_t t, float* a, float* out, int first, int waits) {
    __shared__ alignas(16) float s[32];
    s[threadIdx.x] = 7;
    ASM("fence.proxy.async;" ::: "memory");
    __syncwarp();
    unsigned from = (unsigned)__cvta_generic_to_shared(s);
    if (threadIdx.x == 0) {
        ASM("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 128;" :: "l"(a), "r"(from) : "memory");
        ASM("cp.async.bulk.commit_group;" ::: "memory");
        if (waits) ASM("cp.async.bulk.wait_group 0;" ::: "memory");
        out[0] = tex1Dfetch<float>(t, first);
        ASM("cp.async.bulk.wait_group 0;" ::: "memory");
    }
}
__global__ void stores(cudaTextureObject_t t, float* a, float* out) {
    a[threadIdx.x] = 1;
    out[threadIdx.x] = tex1Dfetch<float>(t, threadIdx.x ^ 1);
}
__global__ void rows(cudaTextureObject_t t, float* out) {
    out[threadIdx.x] = tex2D<float>(t, threadIdx.x % 8 + 1.f, threadIdx.x / 8 + 1.f);
}
}
"""


@pytest.fixture(scope="module")
def module() -> cp.RawModule:
    return cp.RawModule(code=SOURCE, options=("-arch=sm_90",))


def linear(array: cp.ndarray, nbytes: int = 0) -> cp.cuda.texture.TextureObject:
    """A texture of floats in linear memory."""
    kinds, texture = cp.cuda.runtime, cp.cuda.texture
    desc = texture.ChannelFormatDescriptor(32, 0, 0, 0, kinds.cudaChannelFormatKindFloat)
    resource = texture.ResourceDescriptor(
        kinds.cudaResourceTypeLinear, arr=array, chDesc=desc, sizeInBytes=nbytes or array.nbytes
    )
    return texture.TextureObject(resource, texture.TextureDescriptor((), 0, kinds.cudaReadModeElementType))


@pytest.mark.parametrize("waits", [0, 1])
def test_a_read_of_what_a_launch_before_may_still_write_needs_a_wait(module: cp.RawModule, waits: int) -> None:
    array, out = cp.zeros(32, cp.float32), cp.zeros(32, cp.float32)
    texture = linear(array)
    expected = nullcontext() if waits else pytest.raises(EarlyAccess, match=r"read of byte 0 of .*, which thread")
    with checking(ALL_CHECKS), expected:
        module.get_function("writes")((1,), (32,), (array,))
        with dependent_launches():
            module.get_function("reads")((1,), (32,), (texture, out, np.int32(waits)))
    assert out.get().tolist() == (list(range(32)) if waits else [0] * 32)


@pytest.mark.parametrize(("first", "waits", "bad"), [(0, 0, True), (31, 0, True), (32, 0, False), (0, 1, False)])
def test_a_read_of_what_a_bulk_copy_is_still_writing_is_a_race(
    module: cp.RawModule, first: int, waits: int, bad: bool
) -> None:
    array, out = cp.ones(64, cp.float32), cp.zeros(1, cp.float32)
    expected = pytest.raises(AsyncRace, match=r"no cp\.async\.bulk\.wait_group has covered") if bad else nullcontext()
    with checking(ALL_CHECKS), expected:
        module.get_function("copies")((1,), (32,), (linear(array), array, out, np.int32(first), np.int32(waits)))
        assert out.get()[0] == (7 if waits else 1)


def test_a_read_of_what_another_thread_stores_is_a_race(module: cp.RawModule) -> None:
    array, out = cp.zeros(32, cp.float32), cp.zeros(32, cp.float32)
    with checking(ALL_CHECKS), pytest.raises(Race, match="this read of byte 4 of"):
        module.get_function("stores")((1,), (32,), (linear(array), array, out))


def test_a_read_of_what_nothing_has_written_is_named(module: cp.RawModule) -> None:
    array, out = cp.empty(32, cp.float32), cp.zeros(32, cp.float32)
    with checking(ALL_CHECKS), pytest.raises(Uninitialised, match="a load reads byte 0"):
        module.get_function("reads")((1,), (32,), (linear(array), out, np.int32(0)))


def test_a_read_beyond_linear_memory_is_zero_and_reads_nothing(module: cp.RawModule) -> None:
    array, out = cp.zeros(64, cp.float32), cp.ones(1, cp.float32)
    with checking(ALL_CHECKS):
        texture = linear(cp.empty(8, cp.float32))
        module.get_function("copies")((1,), (32,), (texture, array, out, np.int32(100), np.int32(1)))
    assert out.get()[0] == 0


def test_linear_filtering_of_pitched_memory_reads_only_its_texels(module: cp.RawModule) -> None:
    """Between the rows is memory that nothing has written."""
    kinds, texture = cp.cuda.runtime, cp.cuda.texture
    array, out = cp.empty((5, 16), cp.float32), cp.zeros(32, cp.float32)
    array[:, :9] = cp.ones((5, 9), cp.float32)
    desc = texture.ChannelFormatDescriptor(32, 0, 0, 0, kinds.cudaChannelFormatKindFloat)
    resource = texture.ResourceDescriptor(
        kinds.cudaResourceTypePitch2D, arr=array, chDesc=desc, width=9, height=5, pitchInBytes=64
    )
    linear_filter = texture.TextureDescriptor((1, 1), kinds.cudaFilterModeLinear, kinds.cudaReadModeElementType)
    with checking(ALL_CHECKS):
        module.get_function("rows")((1,), (32,), (texture.TextureObject(resource, linear_filter), out))
        assert (out.get() == 1).all()
        array = cp.empty((5, 16), cp.float32)
        resource = texture.ResourceDescriptor(
            kinds.cudaResourceTypePitch2D, arr=array, chDesc=desc, width=9, height=5, pitchInBytes=64
        )
        with pytest.raises(Uninitialised):
            module.get_function("rows")((1,), (32,), (texture.TextureObject(resource, linear_filter), out))
