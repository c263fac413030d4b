"""Calls of functions that the compiler does not inline."""

from __future__ import annotations

import math

import numpy as np
import pytest
from harness import Device

SOURCE = r"""
struct Point { float x, y, z; char c; };
__device__ __noinline__ float power(float a, int b) {
    float s = a;
    for (int i = 0; i < b; i++) { if (s > 1000.f) return -1.f; s = s * a + i; }
    return s;
}
__device__ __noinline__ Point turn(Point a, bool flip, short k) {
    Point r; r.x = a.y; r.y = flip ? a.z : -a.z; r.z = k; r.c = a.c - 1; return r;
}
__device__ __noinline__ void exchange(int* a, int i, int j) { int t = a[i]; a[i] = a[j]; a[j] = t; }
extern "C" __global__ void k(float* f, int n, int* q) {
    int t = threadIdx.x;
    float a = power(f[t], n);
    if (t & 1) a = power(a, 2) + 1;
    Point v; v.x = a; v.y = t; v.z = 2 * t; v.c = -3;
    v = turn(v, t % 3 == 0, (short)(-t));
    v = turn(v, true, 5);
    f[t] = v.x + v.y * 1000 + v.z + v.c;
    exchange(q + 2 * t, 0, 1);
}
extern "C" __global__ void doubles(double* d) {
    int t = threadIdx.x; d[t] = sin(d[t] * 1e6) + pow(d[t], 2.5) + exp(-d[t]);
}
extern "C" __global__ void singles(float* f) {
    int t = threadIdx.x;
    f[t] = sinf(f[t] * 1e5f) + powf(f[t], 2.5f) + expf(-f[t]) + logf(f[t]) + tanhf(f[t]) + cosf(f[t]);
}
"""


@pytest.fixture(scope="module")
def device():
    return Device(SOURCE)


def power(a: np.float32, b: int) -> np.float32:
    s = a
    for i in range(b):
        if s > 1000:
            return np.float32(-1)
        s = np.float32(float(s) * float(a) + i)
    return s


def turn(v: tuple, flip: bool, k: int) -> tuple:
    return v[1], v[2] if flip else -v[2], float(k), v[3] - 1


def test_calls_pass_values_structs_and_pointers(device):
    f = np.linspace(0, 3, 64).astype(np.float32)
    given, q = f.copy(), np.arange(128, dtype=np.int32)
    device.launch("k", 1, 64, f, 6, q)
    for t in range(64):
        a = power(given[t], 6)
        if t & 1:
            a = np.float32(power(a, 2) + np.float32(1))
        v = turn(turn((float(a), float(t), 2.0 * t, -3), t % 3 == 0, -t), True, 5)
        assert f[t] == v[0] + v[1] * 1000 + v[2] + v[3]
    assert q.reshape(-1, 2)[:, 0].tolist() == list(range(1, 128, 2))


def test_library_functions_with_slow_paths_match_python(device):
    x = np.linspace(0.1, 3, 64)
    d = x.copy()
    device.launch("doubles", 1, 64, d)
    want = [math.sin(v * 1e6) + v**2.5 + math.exp(-v) for v in x]
    assert np.allclose(d, want, rtol=1e-13, atol=1e-13)
    f = x.astype(np.float32)
    given = f.astype(np.float64)
    device.launch("singles", 1, 64, f)
    large = (given.astype(np.float32) * np.float32(1e5)).astype(np.float64)
    want = np.sin(large) + given**2.5 + np.exp(-given) + np.log(given) + np.tanh(given) + np.cos(given)
    assert np.allclose(f, want, rtol=2e-6, atol=2e-6)
