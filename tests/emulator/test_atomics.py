"""Atomics: compare results with Python and old values with the order of lanes; check the counters."""

from __future__ import annotations

import numpy as np
import pytest
from harness import Device
from hypothesis import given, settings
from hypothesis import strategies as st

from climb.emulator.counters.counters import ACCESS_SUMS
from climb.emulator.counters.lines import AccessCounters
from climb.emulator.runtime.atomics import apply

FUNCTIONS = {
    "add": lambda a, v, c: (a + v) & 0xFFFFFFFF,
    "min": lambda a, v, c: min(a, v),
    "max": lambda a, v, c: max(a, v),
    "and": lambda a, v, c: a & v,
    "or": lambda a, v, c: a | v,
    "xor": lambda a, v, c: a ^ v,
    "exch": lambda a, v, c: v,
    "cas": lambda a, v, c: c if a == v else a,
    "inc": lambda a, v, c: 0 if a >= v else a + 1,
    "dec": lambda a, v, c: v if a == 0 or a > v else a - 1,
}


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(sorted(FUNCTIONS)),
    st.integers(1, 400),
    st.integers(1, 40),
    st.integers(0, 2**32 - 1),
    st.booleans(),
)
def test_operations_apply_in_the_order_of_lanes(how, lanes, cells, seed, returns):
    rng = np.random.default_rng(seed)
    high = 2**32 if seed % 2 else 5
    memory = rng.integers(0, high, cells).astype(np.uint32)
    index = rng.integers(0, cells, lanes)
    index[rng.random(lanes) < 0.4] = 0
    value, other = (rng.integers(0, high, lanes).astype(np.uint32) for _ in range(2))
    want, olds = memory.tolist(), []
    for i, v, c in zip(index.tolist(), value.tolist(), other.tolist(), strict=True):
        olds.append(want[i])
        want[i] = FUNCTIONS[how](want[i], v, c)
    got = apply(memory, index, how, value, other if how == "cas" else None, returns)
    assert memory.tolist() == want
    if returns:
        assert got.tolist() == olds


KINDS = {"int": "i4", "unsigned": "u4", "float": "f4", "double": "f8", "unsigned long long": "u8"}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("where", ["global", "shared"])
def test_atomic_sums_make_a_histogram(kind, where):
    body = (
        "atomicAdd(o + a[t] % 10, (T)w[t]);"
        if where == "global"
        else "__shared__ T s[10]; if (threadIdx.x < 10) s[threadIdx.x] = 0; __syncthreads();"
        "atomicAdd(s + a[t] % 10, (T)w[t]); __syncthreads();"
        "if (threadIdx.x < 10) atomicAdd(o + threadIdx.x, s[threadIdx.x]);"
    )
    device = Device(
        f"typedef {kind} T;"
        'extern "C" __global__ void k(const int* a, const int* w, T* o) {'
        "int t = blockIdx.x * blockDim.x + threadIdx.x;" + body + "}"
    )
    rng = np.random.default_rng(1)
    data, weight = rng.integers(0, 1000, 640).astype(np.int32), rng.integers(0, 50, 640).astype(np.int32)
    out = np.zeros(10, KINDS[kind])
    device.launch("k", 5, 128, data, weight, out)
    assert out.tolist() == np.bincount(data % 10, weight, 10).tolist()


def test_old_values_are_a_permutation_of_tickets():
    device = Device(
        'extern "C" __global__ void k(int* c, int* o) { o[blockIdx.x * blockDim.x + threadIdx.x] = atomicAdd(c, 1); }'
    )
    count, out = np.zeros(1, np.int32), np.zeros(3000, np.int32)
    device.launch("k", 30, 100, count, out)
    assert count[0] == 3000 and sorted(out.tolist()) == list(range(3000))


def test_all_operations_of_cuda_match_python():
    device = Device(
        r"""extern "C" __global__ void k(unsigned* o, long long* l) { unsigned t = threadIdx.x;
        atomicMin(o, t + 5); atomicMax(o + 1, t * 3); atomicAnd(o + 2, ~(1u << (t % 7))); atomicOr(o + 3, 1u << t % 32);
        atomicXor(o + 4, t); atomicExch(o + 5, t); atomicInc(o + 6, 9); atomicDec(o + 7, 9); atomicSub(o + 8, 2u);
        atomicCAS(o + 9, t, t + 1); atomicMax(l, (long long)t - 100); atomicMin(l + 1, -(long long)t); }"""
    )
    out, wide = np.zeros(10, np.uint32), np.zeros(2, np.int64)
    out[0], out[2], out[8] = 100, 0xFFFFFFFF, 1000
    wide[0] = -1000
    device.launch("k", 1, 64, out, wide)
    xor = 0
    for t in range(64):
        xor ^= t
    dec = 0
    for _ in range(64):
        dec = 9 if dec == 0 or dec > 9 else dec - 1
    # atomicCAS in the order of lanes increases the value by one each time.
    assert out.tolist() == [5, 189, 0xFFFFFFFF & ~0x7F, 0xFFFFFFFF, xor, 63, 64 % 10, dec, 1000 - 128, 64]
    assert wide.tolist() == [-37, -63]


def test_a_cas_loop_keeps_the_maximum():
    device = Device(
        r"""__device__ void maximum(float* p, float v) { int* q = (int*)p; int old = *q, seen;
          do { seen = old; if (__int_as_float(seen) >= v) return; old = atomicCAS(q, seen, __float_as_int(v)); } while (old != seen); }
        extern "C" __global__ void k(const float* a, float* o) { maximum(o + threadIdx.x % 3, a[blockIdx.x * blockDim.x + threadIdx.x]); }"""  # noqa: E501
    )
    data = np.random.default_rng(2).random(400).astype(np.float32)
    out = np.zeros(3, np.float32)
    device.launch("k", 4, 100, data, out)
    index = np.arange(400) % 100 % 3
    assert out.tolist() == [float(data[index == k].max()) for k in range(3)]


def test_atomics_accept_generic_addresses():
    device = Device(
        r"""extern "C" __global__ void k(int* o, int n) { __shared__ int s[4]; int t = threadIdx.x; if (t < 4) s[t] = 0;
        __syncthreads(); int* p = (n && t % 2) ? s : o; int old = atomicAdd(p + 1, 1); __syncthreads();
        if (t < 4) o[4 + t] = s[t]; o[8 + t] = old; }"""
    )
    for n in (0, 1):
        out = np.zeros(72, np.int32)
        device.launch("k", 1, 64, out, n)
        assert (out[1], out[5]) == ((32, 32) if n else (64, 0))
        tickets = sorted(out[8:].tolist())
        assert tickets == (sorted([*range(32)] * 2) if n else list(range(64)))


def test_lanes_at_one_address_are_counted():
    device = Device('extern "C" __global__ void k(const int* a, int* o) { atomicAdd(o + a[threadIdx.x], 1); }')
    data = np.array([0] * 32 + list(range(32)) + [1, 1, 2, 2] * 8, np.int32)
    found = device.launch("k", 1, 96, data, np.zeros(32, np.int32)).total("global atomic")
    # All at one address: 31 lanes come after lane 0. All apart: none. Two addresses for 32 lanes: 30.
    # Sectors: 32 turns at one address; 4 in one turn; 16 turns at two addresses of one sector.
    assert (found.requests, found.same_address, found.sectors) == (3, 61, 32 + 4 + 16)
    device = Device("""extern "C" __global__ void k(const int* a, int* o) {
    __shared__ int s[32]; if (threadIdx.x < 32) s[threadIdx.x] = 0;
    __syncthreads(); atomicAdd(s + a[threadIdx.x], 1); __syncthreads();
    if (threadIdx.x < 32) o[threadIdx.x] = s[threadIdx.x]; }""")
    out = np.zeros(32, np.int32)
    shared = device.launch("k", 1, 96, data, out).total("shared atomic")
    assert (shared.requests, shared.same_address) == (3, 61)
    assert out.tolist() == np.bincount(data, minlength=32).tolist()


def test_counts_that_an_access_does_not_have_are_zero():
    access = AccessCounters("k.cu", 1, "", "tma load", 1, requests=2, lanes=64)
    assert {name: getattr(access, name) for name in ACCESS_SUMS} == {
        **dict.fromkeys(ACCESS_SUMS, 0),
        "requests": 2,
        "lanes": 64,
    }


def test_the_last_block_to_finish_sees_all_results():
    device = Device(
        r"""__device__ unsigned ticket;
        extern "C" __global__ void k(const int* a, int* part, int* o) { __shared__ bool last; int t = threadIdx.x;
        atomicAdd(part + blockIdx.x, a[blockIdx.x * blockDim.x + t]); __threadfence(); __syncthreads();
        if (t == 0) last = atomicInc(&ticket, gridDim.x - 1) == gridDim.x - 1; __syncthreads();
        if (last && t < gridDim.x) atomicAdd(o, part[t]); }"""
    )
    data = np.arange(640, dtype=np.int32)
    part, out = np.zeros(10, np.int32), np.zeros(1, np.int32)
    device.launch("k", 10, 64, data, part, out)
    assert out[0] == data.sum() and not device.module.symbol("ticket").data.any()
