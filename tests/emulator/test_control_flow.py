"""Divergence and reconvergence: compare kernels with the same program in Python, one thread at a time, and count."""

from __future__ import annotations

import numpy as np
import pytest
from harness import Device, run_ptx

from climb.emulator.simt import lanes
from climb.emulator.simt.lanes import divide, rectangle

SOURCE = r"""
extern "C" {
__global__ void nested(const int* in, int* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int v = in[i], r = 0;
    if (v & 1) { if (v & 2) r = 10 + v; else { r = 20; if (v & 4) r += v * 3; } }
    else if (v & 8) r = v - 5; else r = -v;
    out[i] = r * 2 + 1;
}
__global__ void trips(const int* in, int* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int s = 0;
    for (int k = 0; k < in[i]; ++k) { s = s * 3 + k; s ^= in[(i + k) % n]; }
    out[i] = s;
}
__global__ void leaps(const int* in, int* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int s = 0;
    for (int k = 0; k < 40; ++k) {
        if ((in[i] + k) % 7 == 0) continue;
        if (s > in[i] * 5) break;
        for (int j = 0; j < (in[i] & 3); ++j) { if (j == 2 && (k & 1)) break; s += j + k; }
        s += 1;
    }
    out[i] = s;
}
__global__ void switches(const int* in, int* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int v = in[i], r;
    switch (v % 9) {
        case 0: r = v * 7; break;
        case 1: r = v ^ 0x55;
        case 2: r = v + 100; break;
        case 5: r = -v; break;
        case 7: if (v > 20) { r = 3; break; }
        default: r = v / 3;
    }
    out[i] = r;
}
__device__ bool costly(const int* in, int i) { return in[i] % 3 == 0; }
__global__ void circuits(const int* in, int* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i + 1 < n && costly(in, i + 1) && (in[i] > 10 || costly(in, i))) out[i] = 1;
    else if (i < n) out[i] = 2;
}
__global__ void returns(const int* in, int* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    for (int k = 0; k < 20; ++k) {
        if (i >= n) return;
        if (in[i] < k) { out[i] = k; return; }
        if ((in[i] ^ k) == 9) return;
    }
    out[i] = -1;
}
__global__ void collatz(const int* in, int* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        unsigned v = in[i] + 1, steps = 0;
        while (v != 1) { v = (v & 1) ? 3 * v + 1 : v / 2; ++steps; }
        out[i] = steps;
    }
}
__global__ void gotos(const int* in, int* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int v = in[i], c = 0;
again:
    if (v > 50) goto high;
low:
    v += 13; c += 1;
    if (v < 40) goto low;
    if (c < 6) goto again;
    goto end;
high:
    v -= 37; c += 10;
    if (v & 1) goto low;
    if (c < 60) goto again;
end:
    out[i] = v * 100 + c;
}
}
"""


def nested(data, i):
    v = data[i]
    if v & 1:
        if v & 2:
            r = 10 + v
        else:
            r = 20
            if v & 4:
                r += v * 3
    elif v & 8:
        r = v - 5
    else:
        r = -v
    return r * 2 + 1


def wrap(v):
    return (v + 2**31) % 2**32 - 2**31


def trips(data, i):
    s = 0
    for k in range(data[i]):
        s = wrap(s * 3 + k) ^ data[(i + k) % len(data)]
    return s


def leaps(data, i):
    s = 0
    for k in range(40):
        if (data[i] + k) % 7 == 0:
            continue
        if s > data[i] * 5:
            break
        for j in range(data[i] & 3):
            if j == 2 and k & 1:
                break
            s += j + k
        s += 1
    return s


def switches(data, i):
    v = data[i]
    m = v % 9
    if m == 0:
        return v * 7
    if m in (1, 2):
        return v + 100
    if m == 5:
        return -v
    if m == 7 and v > 20:
        return 3
    return v // 3


def circuits(data, i):
    if i + 1 < len(data) and data[i + 1] % 3 == 0 and (data[i] > 10 or data[i] % 3 == 0):
        return 1
    return 2


def returns(data, i):
    for k in range(20):
        if data[i] < k:
            return k
        if data[i] ^ k == 9:
            return -7
    return -1


def collatz(data, i):
    v, steps = data[i] + 1, 0
    while v != 1:
        v = 3 * v + 1 if v & 1 else v // 2
        steps += 1
    return steps


def gotos(data, i):
    v, c, at = data[i], 0, "again"
    while True:
        if at == "again":
            at = "high" if v > 50 else "low"
        if at == "low":
            v, c = v + 13, c + 1
            at = "low" if v < 40 else "again" if c < 6 else "end"
        elif at == "high":
            v, c = v - 37, c + 10
            at = "low" if v & 1 else "again" if c < 60 else "end"
        if at == "end":
            return v * 100 + c


@pytest.fixture(scope="module")
def device():
    return Device(SOURCE)


@pytest.mark.parametrize("threads", [1, 31, 32, 64, 100, 256])
@pytest.mark.parametrize("function", [nested, trips, leaps, switches, circuits, returns, collatz, gotos])
def test_results_equal_one_thread_at_a_time(device, function, threads):
    rng = np.random.default_rng(threads)
    for n in (1, 33, 700):
        data = rng.integers(0, 90, n).astype(np.int32)
        out = np.full(n, -7, np.int32)
        counters = device.launch(function.__name__, -(-n // threads), threads, data, out, n)
        plain = data.tolist()
        assert out.tolist() == [function(plain, i) for i in range(n)]
        # Each lane executes its own instructions, whatever the others do.
        assert counters.thread_instructions <= 32 * counters.warp_instructions


def test_a_uniform_branch_does_not_diverge_and_a_lane_dependent_one_does():
    device = Device(
        'extern "C" __global__ void k(int* o, int m) { int i = threadIdx.x;'
        "if (m > 3) { if (i % 2) o[i] = o[i] * i; else o[i] = o[i] / (i + 3); } }"
    )
    out = np.ones(64, np.int32)
    found = device.launch("k", 1, 64, out, 5)
    # Two warps: both execute the uniform branch and the divergent one.
    assert (found.branches, found.divergent_branches) == (4, 2)
    assert device.launch("k", 1, 64, out, 1).divergent_branches == 0


def test_lanes_reconverge_after_a_branch():
    """The load before and the store after the branch are one request each: both halves of the warp store together."""
    device = Device(
        'extern "C" __global__ void k(const int* a, int* o) { int i = threadIdx.x; int v = a[i];'
        "if (i % 2) for (int k = 0; k < i; ++k) v = v * 7 + a[k]; else v = v / 3; o[i] = v; }"
    )
    found = device.launch("k", 1, 32, np.arange(32, dtype=np.int32), np.zeros(32, np.int32))
    store = found.total("global store")
    assert (store.requests, store.lanes, store.sectors) == (1, 32, 4)


def test_a_warp_runs_each_loop_iteration_once():
    """Lane i loads i + 1 times: 32 requests in all, one per iteration, with 32 + 31 + ... + 1 = 528 active lanes."""
    device = Device(
        'extern "C" __global__ void k(const int* a, int* o) { int i = threadIdx.x, s = 0;'
        "#pragma unroll 1\nfor (int k = 0; k <= i; ++k) s ^= a[k * 32 + i]; o[i] = s; }".replace("#pragma", "\n#pragma")
    )
    data = np.arange(1024, dtype=np.int32)
    out = np.zeros(32, np.int32)
    load = device.launch("k", 1, 32, data, out).total("global load")
    assert (load.requests, load.lanes) == (32, 528)
    table = data.reshape(32, 32)
    assert out.tolist() == [int(np.bitwise_xor.reduce(table[: i + 1, i])) for i in range(32)]


def test_an_early_return_does_not_affect_other_lanes():
    device = Device(
        'extern "C" __global__ void k(int* o, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x;'
        "if (i % 5 == 0) return; if (i >= n) return; o[i] = i; }"
    )
    out = np.full(100, -1, np.int32)
    found = device.launch("k", 4, 32, out, 100)
    assert out.tolist() == [-1 if i % 5 == 0 else i for i in range(100)]
    # Among threads 0 to 99, the 20 multiples of five return first; the others store.
    assert found.total("global store").lanes == 80


def test_a_predicated_instruction_affects_only_its_lanes():
    body = "setp.lt.s32 %p1, %i0, 5; mov.s32 %o0, 7; @%p1 add.s32 %o0, %i0, 100; @!%p1 sub.s32 %o0, %o0, 1;"
    (got,) = run_ptx(body, [("s32", list(range(10)))], ["s32"])
    assert got.tolist() == [i + 100 if i < 5 else 6 for i in range(10)]


def test_a_predicated_exit_ends_only_its_lanes():
    body = "setp.gt.s32 %p1, %i0, 3; mov.s32 %o0, 1; st.global.s32 [%a1], %o0; @%p1 exit; mov.s32 %o0, 2;"
    (got,) = run_ptx(body, [("s32", list(range(8)))], ["s32"])
    assert got.tolist() == [2] * 4 + [1] * 4


def test_a_guarded_load_never_faults_for_inactive_lanes():
    device = Device(
        'extern "C" __global__ void k(const float* a, float* o, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x;'
        "float v = i < n ? a[i] : -1.0f; if (i < 64) o[i] = v; }"
    )
    out = np.zeros(64, np.float32)
    device.launch("k", 2, 32, np.arange(40, dtype=np.float32), out, 40)
    assert out.tolist() == [float(i) if i < 40 else -1.0 for i in range(64)]


def test_a_branch_on_the_block_index_does_not_diverge():
    """A branch on blockIdx splits whole blocks, so no warp diverges."""
    device = Device(
        'extern "C" __global__ void k(const int* a, int* o) { int b = blockIdx.x, v = 0;'
        "if (b % 3 == 0) for (int k = 0; k < b; ++k) v += k * a[k]; else v = -b;"
        "o[b * blockDim.x + threadIdx.x] = v + threadIdx.x; }"
    )
    data, out = np.arange(64, dtype=np.int32), np.zeros((40, 8), np.int32)
    found = device.launch("k", 40, 8, data, out)
    each = [sum(k * k for k in range(b)) if b % 3 == 0 else -b for b in range(40)]
    assert out.tolist() == [[v + t for t in range(8)] for v in each]
    assert found.divergent_branches == 0


def test_divisions_by_many_predicates_that_hold_for_as_many_lanes_are_told_apart():
    """Divisions that repeat are remembered: the second round over `k` divides as the first did."""
    device = Device(
        'extern "C" __global__ void k(const int* a, int* o) { int i = blockIdx.x * blockDim.x + threadIdx.x, s = 0;'
        "for (int r = 0; r < 2; ++r) for (int k = 0; k < 5; ++k)"
        "  if ((i + k) % 5 < 2) { s += a[i + k] * (r + 1);"
        "    if ((i / 5 + k) % 4 == 1) s = s * 3 + a[k]; else s ^= a[i]; }"
        "o[i] = s; }"
    )
    data, out = np.random.default_rng(1).integers(-9, 9, 240).astype(np.int32), np.zeros(200, np.int32)
    device.launch("k", 2, 100, data, out)
    wanted = []
    for i in range(200):
        total = 0
        for turn in range(2):
            for k in range(5):
                if (i + k) % 5 < 2:
                    total += int(data[i + k]) * (turn + 1)
                    total = total * 3 + int(data[k]) if (i // 5 + k) % 4 == 1 else total ^ int(data[i])
        wanted.append(total)
    assert out.tolist() == wanted


def test_divided_lanes_are_the_same_object_when_they_divide_alike_again(monkeypatch: pytest.MonkeyPatch) -> None:
    every, predicate = rectangle(4, 64), np.arange(256).reshape(4, 64) % 3 == 0
    first, again = (divide(predicate.copy(), every) for _ in range(2))
    assert [one.lanes(every) for one in first] == [one.lanes(every) for one in again]
    moved = divide(np.roll(predicate, 1), every)
    assert (moved[0].lanes(every).linear() == np.flatnonzero(np.roll(predicate, 1))).all()
    monkeypatch.setattr(lanes, "KEPT", 0)
    alone = rectangle(4, 64)
    assert divide(predicate, alone)[0].lanes(alone) is not divide(predicate, alone)[0].lanes(alone)
