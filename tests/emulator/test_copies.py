"""cp.async: compare with plain copies. `test_async_races.py` has what goes wrong between issue and wait."""

from __future__ import annotations

import numpy as np
import pytest
from harness import Device

from climb.emulator import (
    ALL_CHECKS,
    AsyncRace,
    Misaligned,
    MissingProxyFence,
    OutOfBounds,
    Race,
    UnsupportedInstruction,
    checking,
)

PIPELINE = r"""
#include <cuda_pipeline.h>
extern "C" __global__ void k(const T* a, T* o, int n) {
    __shared__ T s[2][64];
    int t = threadIdx.x, b = blockIdx.x * n * 64;
    __pipeline_memcpy_async(&s[0][t], &a[b + t], sizeof(T)); __pipeline_commit();
    for (int i = 0; i < n; ++i) {
        if (i + 1 < n) __pipeline_memcpy_async(&s[(i + 1) % 2][t], &a[b + (i + 1) * 64 + t], sizeof(T));
        __pipeline_commit();
        __pipeline_wait_prior(1);
        __syncthreads();
        o[b + i * 64 + t] = s[i % 2][63 - t];
        __syncthreads();
    }
}
"""


@pytest.mark.parametrize("kind,words", [("float", 1), ("float2", 2), ("float4", 4)])
def test_double_buffering_works_for_each_width(kind, words):
    device = Device(PIPELINE.replace("T ", kind + " ").replace("T*", kind + "*").replace("(T)", f"({kind})"))
    data = np.random.default_rng(0).random((3 * 5 * 64, words)).astype(np.float32)
    out = np.zeros_like(data)
    found = device.launch("k", 3, 64, data, out, 5)
    assert (out.reshape(15, 64, words) == data.reshape(15, 64, words)[:, ::-1]).all()
    loads = [line for line in found.lines if line.kind == "global load"]
    # 15 blocks x steps x 2 warps, each with 32 consecutive lanes: 4, 8 or 16 sectors.
    assert sum(line.requests for line in loads) == 30 and {line.width for line in loads} == {4 * words}
    assert sum(line.sectors for line in loads) == 30 * 4 * words
    # Only the five reads of each block count; the copies are not stores.
    assert not any(line.kind == "shared store" for line in found.lines)


ZERO_FILL = r"""
#include <cuda_pipeline.h>
extern "C" __global__ void k(const char* a, char* o, const int* fill) {
    __shared__ __align__(16) char s[32 * W];
    int t = threadIdx.x;
    unsigned to = (unsigned)__cvta_generic_to_shared(s + t * W);
    int present = fill[t];
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" :: "r"(to), "l"(a + t * W), "n"(W), "r"(present));
    asm volatile("cp.async.wait_all;");
    __syncthreads();
    for (int i = 0; i < W; ++i) o[t * W + i] = s[t * W + i];
}
"""


@pytest.mark.parametrize("width", [4, 8, 16])
@pytest.mark.parametrize("every", [1, 0])
def test_a_smaller_source_size_reads_no_more_and_fills_with_zeros(width, every):
    """The source ends where the last lane's size says. With `every` = 0, a lane copies everything or nothing."""
    device = Device(ZERO_FILL.replace("W", str(width)))
    sizes = np.arange(32) % (width + 1) if every else np.where(np.arange(32) % 3, width, 0)
    sizes[31] = 1 if every else 0
    data = np.random.default_rng(1).integers(1, 100, 31 * width + int(sizes[31])).astype(np.int8)
    out = np.full(32 * width, 99, np.int8)
    found = device.launch("k", 1, 32, data, out, sizes.astype(np.int32))
    whole = np.zeros(32 * width, np.int8)
    whole[: data.size] = data
    want = np.where(np.arange(width) < sizes.reshape(-1, 1), whole.reshape(32, width), 0)
    assert (out.reshape(32, width) == want).all()
    (line,) = (line for line in found.lines if "cp.async" in line.text)
    touched = {t * width // 32 for t in range(32) if sizes[t]}
    assert (line.kind, line.width, line.lanes) == ("global load", width, (sizes > 0).sum())
    assert (line.requests, line.sectors) == (1, len(touched))


def test_a_copy_goes_to_the_address_with_its_offset():
    """By an instruction whose address has an offset, as the compiler writes it in unrolled loops."""
    device = Device(r"""
extern "C" __global__ void k(const float* a, float* o) {
    __shared__ float s[96];
    int t = threadIdx.x;
    for (int i = t; i < 96; i += 32) s[i] = -1.f;
    __syncthreads();
    unsigned to = (unsigned)__cvta_generic_to_shared(s + t);
    asm volatile("cp.async.ca.shared.global [%0 + 128], [%1 + 256], 4;" :: "r"(to), "l"(a + t));
    asm volatile("cp.async.wait_all;" ::: "memory");
    for (int i = t; i < 96; i += 32) o[i] = s[i];
}
""")
    data, out = np.arange(96, dtype=np.float32), np.zeros(96, np.float32)
    device.launch("k", 1, 32, data, out)
    assert out.tolist() == [-1] * 32 + list(range(64, 96)) + [-1] * 32


def kernel(body: str, size: int = 64) -> str:
    return (
        '#include <cuda_pipeline.h>\nextern "C" __global__ void k(const float* a, float* o) {'
        f"__shared__ float s[{size}]; int t = threadIdx.x;\n{body}\n o[t] = s[(t + 5) % 64]; }}"
    )


COPY = "__pipeline_memcpy_async(&s[t], &a[t], 4);"


def test_a_forgotten_wait_reads_the_old_contents():
    body = "s[t] = -1.f; __syncthreads();" + COPY + "__pipeline_commit(); __syncthreads();"
    data, out = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    with checking(()):
        Device(kernel(body)).launch("k", 1, 64, data, out)
    assert (out == -1).all()


@pytest.mark.parametrize(
    "body,error",
    [
        (COPY + "__pipeline_commit(); __syncthreads();", AsyncRace),  # no wait
        (COPY + "__pipeline_wait_prior(0); __syncthreads();", AsyncRace),  # no group was closed
        (COPY + "__pipeline_commit(); __pipeline_wait_prior(1); __syncthreads();", AsyncRace),
        (COPY + "__pipeline_commit(); __pipeline_wait_prior(0);", Race),  # no barrier after the wait
        (  # the copy begins while others still read
            "s[t] = 1.f; __syncthreads(); o[t] = s[63 - t];"
            + COPY + "__pipeline_commit(); __syncthreads(); __pipeline_wait_prior(0); __syncthreads();", Race,
        ),
        (COPY.replace("&s[t]", "&s[t + 1]"), OutOfBounds),
        (COPY.replace("&a[t]", "&a[t + 1]"), OutOfBounds),
        (COPY.replace("&a[t]", "(const char*)a + 1"), Misaligned),
    ],
)  # fmt: skip
def test_faulty_copies_raise_errors(body, error):
    device = Device(kernel(body))
    with pytest.raises(error) as caught:
        device.launch("k", 1, 64, np.zeros(64, np.float32), np.zeros(64, np.float32))
    assert caught.value.where.line in (3, 4)


def test_each_thread_waits_for_its_own_groups():
    """Each thread waits for its own groups; odd ones copy twice as often as even ones."""
    body = r"""
    s[t] = 0.f; s[64 + t] = 0.f; __syncthreads();
    __pipeline_memcpy_async(&s[t], &a[t], 4); __pipeline_commit();
    if (t % 2) { __pipeline_memcpy_async(&s[64 + t], &a[64 + t], 4); __pipeline_commit(); }
    __pipeline_wait_prior(1); o[t] = s[t]; o[64 + t] = s[64 + t];
    __pipeline_wait_prior(0); o[128 + t] = s[t]; o[192 + t] = s[64 + t];
    __syncthreads(); return;"""
    data, out = np.arange(1, 129, dtype=np.float32), np.zeros(256, np.float32)
    device = Device(kernel(body, 128))
    with pytest.raises(AsyncRace, match=r"wait_group at test.cu:7 left the latest group open") as caught:
        device.launch("k", 1, 64, data, out)
    assert caught.value.where.thread == caught.value.other.thread == (0, 0, 0)
    with checking(()):
        device.launch("k", 1, 64, data, out)
    odd = np.arange(64) % 2 == 1
    want = [np.where(odd, data[:64], 0), np.zeros(64), data[:64], np.where(odd, data[64:], 0)]
    assert (out.reshape(4, 64) == want).all()


def test_unsupported_copies_are_refused_by_name():
    source = (
        'extern "C" __global__ void k(const int* a, int n) { __shared__ __align__(16) int s[4];\n'
        'asm volatile("{ .reg .pred p; setp.eq.s32 p, %2, 0; cp.async.ca.shared.global [%0], [%1], 4, p; }"'
        ' :: "r"((unsigned)__cvta_generic_to_shared(s)), "l"(a), "r"(n)); }'
    )
    with pytest.raises(UnsupportedInstruction, match="ignore-src is not supported"):
        Device(source).kernel("k")


def test_a_copy_of_no_bytes_reads_nothing_wherever_its_source_lies():
    """Also where every access to global memory is followed, because an array is both stored to and added to."""
    source = r"""
extern "C" __global__ void k(const float* a, unsigned* o) {
    __shared__ float s[32];
    int t = threadIdx.x, bytes = t % 2 ? 4 : 0;
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;"
                 :: "r"((unsigned)__cvta_generic_to_shared(s + t)), "l"(t % 2 ? a + t : a + (1 << 20)), "r"(bytes));
    unsigned* mine = o + 32 * blockIdx.x + t;
    *mine = 7; __syncthreads();
    atomicAdd(o + 64, 1u);
    asm volatile("cp.async.wait_all;" ::: "memory");
    *mine += (unsigned)s[t] - 7;
}
"""
    data, out = np.arange(32, dtype=np.float32), np.zeros(65, np.uint32)
    with checking(ALL_CHECKS):
        Device(source).launch("k", 2, 32, data, out)
    assert out[:32].tolist() == out[32:64].tolist() == [t if t % 2 else 0 for t in range(32)] and out[64] == 64


def test_a_shared_array_that_is_not_aligned_for_a_bulk_copy_is_named():
    source = """#include <cuda/barrier>
    extern "C" __global__ void k(const float* x) {
        __shared__ cuda::barrier<cuda::thread_scope_block> bar;
        __shared__ float tile[4];
        if (threadIdx.x == 0) {
            init(&bar, 1);
            cuda::memcpy_async(tile, x, cuda::aligned_size_t<16>(16), bar);
        }
    }"""
    with pytest.raises(Misaligned, match=r"of a bulk copy at .*, byte 0 of tile, .* 16; declare tile alignas\(16\)"):
        Device(source).launch("k", 1, 32, np.zeros(4, np.float32))


@pytest.mark.parametrize(("fenced", "right"), [("wait", True), ("barrier", True), ("commit", False), ("", False)])
def test_a_bulk_copy_of_what_copies_have_brought_needs_a_proxy_fence_after_the_wait(fenced: str, right: bool):
    """PTX ISA: cp.async is performed in the generic proxy, cp.async.bulk in the asynchronous one."""
    fence = 'asm volatile("fence.proxy.async.shared::cta;" ::: "memory");'
    commit, wait, barrier = (fence if fenced == one else "" for one in ("commit", "wait", "barrier"))
    source = f"""#include <cuda_pipeline.h>
    extern "C" __global__ void k(const float* x, float* o) {{
        __shared__ alignas(16) float tile[64];
        __pipeline_memcpy_async(&tile[threadIdx.x], x + threadIdx.x, 4);
        __pipeline_commit(); {commit}
        __pipeline_wait_prior(0); {wait}
        __syncthreads();
        if (threadIdx.x > 0) return;
        {barrier}
        asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 256;\\ncp.async.bulk.commit_group;\\n"
                     "cp.async.bulk.wait_group 0;" ::"l"(o), "r"((unsigned)__cvta_generic_to_shared(tile)) : "memory");
    }}"""
    x, o = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    if right:
        Device(source).launch("k", 1, 64, x, o)
        assert (o == x).all()
    else:
        with pytest.raises(MissingProxyFence, match="byte 0 of tile"):
            Device(source).launch("k", 1, 64, x, o)
