"""Asynchronous copies that a flag announces to another block: the wait comes first, then a fence, then the flag."""

from __future__ import annotations

from contextlib import nullcontext

import numpy as np
import pytest
from harness import Device

from climb.emulator import ALL_CHECKS, AsyncRace, EmulatorError, Race, checking

SOURCE = r"""
#define ASM asm volatile
#define COMMIT ASM("cp.async.bulk.commit_group;" ::: "memory")
#define WAIT ASM("cp.async.bulk.wait_group 0;" ::: "memory")
#define WAIT_READ ASM("cp.async.bulk.wait_group.read 0;" ::: "memory")
__device__ unsigned at(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }
__device__ void set(int* flag) { __threadfence(); atomicExch(flag, 1); }
__device__ void see(int* flag) { while (atomicAdd(flag, 0) == 0) {} __threadfence(); }
extern "C" {
__global__ void gives(float* a, int* flag, float* out, int how) {  // block 0 copies to a, block 1 reads it
    __shared__ alignas(128) float s[32];
    unsigned t = threadIdx.x;
    if (blockIdx.x == 0) {
        s[t] = 7 + t;
        ASM("fence.proxy.async;" ::: "memory");
        __syncwarp();
        if (t == 0) {
            ASM("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 128;" :: "l"(a), "r"(at(s)) : "memory");
            COMMIT;
            if (how == 1) WAIT_READ;
            if (how != 1 && how != 2) WAIT;
            if (how == 3) atomicExch(flag, 1);
            else if (how == 4) ASM("st.release.gpu.s32 [%0], 1;" :: "l"(flag) : "memory");
            else set(flag);
            WAIT;
        }
    } else {
        if (t == 0 && how != 4) see(flag);
        if (t == 0 && how == 4) {
            int v;
            do ASM("ld.acquire.gpu.s32 %0, [%1];" : "=r"(v) : "l"(flag) : "memory"); while (!v);
        }
        __syncwarp();
        out[t] = a[t];
    }
}
__global__ void takes(float* a, int* flag, float* out, int how) {  // block 0 copies from a, block 1 overwrites it
    __shared__ alignas(128) float s[32];
    unsigned t = threadIdx.x;
    if (blockIdx.x == 0) {
        ASM("cp.async.ca.shared.global [%0], [%1], 4;" :: "r"(at(s + t)), "l"(a + t) : "memory");
        ASM("cp.async.commit_group;" ::: "memory");
        if (how == 0) ASM("cp.async.wait_group 0;" ::: "memory");
        __threadfence();
        __syncwarp();
        if (t == 0) set(flag);
        ASM("cp.async.wait_group 0;" ::: "memory");
        out[t] = s[t];
    } else {
        if (t == 0) see(flag);
        __syncwarp();
        a[t] = 5;
    }
}
__global__ void over(float* a, int* flag, float* out, int how) {  // block 0 reads a, block 1 copies to it
    __shared__ alignas(128) float s[32];
    unsigned t = threadIdx.x;
    if (blockIdx.x == 0) {
        out[t] = a[t];
        __threadfence();
        __syncwarp();
        if (t == 0) set(flag);
    } else {
        s[t] = 3;
        ASM("fence.proxy.async;" ::: "memory");
        __syncwarp();
        if (t == 0) {
            if (how == 0) see(flag);
            if (how == 2) while (*(volatile int*)flag == 0) {}  // without a fence, that orders nothing yet
            ASM("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 128;" :: "l"(a), "r"(at(s)) : "memory");
            COMMIT;
            if (how == 1) see(flag);
            __threadfence();
            WAIT;
        }
    }
}
}
"""


@pytest.fixture(scope="module")
def device() -> Device:
    return Device(SOURCE)


@pytest.mark.parametrize(
    ("kernel", "how", "error", "text"),
    [
        ("gives", 0, None, ""),
        ("gives", 1, Race, "writes by an asynchronous copy"),  # its source has been read, no more
        ("gives", 2, Race, "writes by an asynchronous copy"),
        ("gives", 3, Race, "writes by an asynchronous copy"),  # no fence
        ("gives", 4, None, ""),
        ("takes", 0, None, ""),
        ("takes", 1, (Race, AsyncRace), "reads by an asynchronous copy|which an asynchronous copy"),
        ("over", 0, None, ""),
        ("over", 1, (Race, AsyncRace), "of byte 0 of"),
        ("over", 2, Race, r"this write by an asynchronous copy of byte 0 of .* reads at"),
    ],
)
def test_a_copy_is_handed_over_by_its_wait_and_then_by_a_fence_and_the_flag(
    device: Device, kernel: str, how: int, error: type[EmulatorError] | tuple | None, text: str
) -> None:
    a, flag, out = np.arange(32, dtype=np.float32), np.zeros(1, np.int32), np.zeros(32, np.float32)
    with checking(ALL_CHECKS), nullcontext() if error is None else pytest.raises(error, match=text) as caught:
        device.launch(kernel, 2, 32, a, flag, out, how)
    if error is None:
        assert out.tolist() == {"gives": list(range(7, 39))}.get(kernel, list(range(32)))
    else:
        assert caught.value.other is not None and caught.value.where.block != caught.value.other.block
