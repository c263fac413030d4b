"""Structs passed by value: indexed, passed on by reference, and separated from neighbouring parameters."""

from __future__ import annotations

import numpy as np
import pytest

from climb.emulator import Misaligned, OutOfBounds, Struct, run
from climb.emulator.running import Result

SOURCE = """
struct Weights { float w[64]; int n; };
extern "C" __global__ void indexed(const __grid_constant__ Weights w, const float* in, float* out) {
    out[threadIdx.x] = in[threadIdx.x] * w.w[threadIdx.x % w.n];
}
extern "C" __global__ void looped(Weights w, const float* in, float* out) {
    float sum = 0;
    for (int k = 0; k < w.n; ++k) sum += in[threadIdx.x] * w.w[k];
    out[threadIdx.x] = sum;
}
__device__ __noinline__ float pick(const Weights& w, int i) { return w.w[i & 63]; }
extern "C" __global__ void handed_on(const __grid_constant__ Weights w, const float* in, float* out) {
    out[threadIdx.x] = in[threadIdx.x] * pick(w, threadIdx.x);
}
extern "C" __global__ void copied(Weights w, const float* in, float* out) {
    w.w[threadIdx.x & 63] += in[threadIdx.x];
    out[threadIdx.x] = w.w[(threadIdx.x * 7) & 63];
}
extern "C" __global__ void too_far(const __grid_constant__ Weights w, const float* in, float* out) {
    out[threadIdx.x] = w.w[threadIdx.x + w.n];
}
extern "C" __global__ void misaligned(const __grid_constant__ Weights w, const float* in, float* out) {
    out[threadIdx.x] = *reinterpret_cast<const float*>(reinterpret_cast<const char*>(w.w) + 4 * threadIdx.x + w.n % 7);
}
__device__ __noinline__ void set(float* w, int i) { w[i] = 1; }
extern "C" __global__ void changed(const __grid_constant__ Weights w, const float* in, float* out) {
    set(const_cast<float*>(w.w), threadIdx.x & 63);
    out[threadIdx.x] = in[0];
}
"""
THREADS, TAPS = 96, 48
RNG = np.random.default_rng(3)
WEIGHTS = RNG.random(64, dtype=np.float32)
INPUT = RNG.random(THREADS, dtype=np.float32)
T = np.arange(THREADS)


def launch(kernel: str) -> tuple[np.ndarray, Result]:
    out = np.zeros(THREADS, np.float32)
    struct = WEIGHTS.tobytes() + np.int32(TAPS).tobytes()
    return out, run(SOURCE, kernel, grid=1, block=THREADS, args=[struct, INPUT, out])


def _copied() -> np.ndarray:
    place = T * 7 & 63
    return WEIGHTS[place] + np.where(place == (T & 63), INPUT, 0)


@pytest.mark.parametrize(
    ("kernel", "expected"),
    [
        ("indexed", INPUT * WEIGHTS[T % TAPS]),
        ("looped", INPUT * WEIGHTS[:TAPS].sum()),
        ("handed_on", INPUT * WEIGHTS[T & 63]),
        ("copied", _copied()),
    ],
)
def test_a_struct_parameter_can_be_indexed(kernel: str, expected: np.ndarray) -> None:
    found, _ = launch(kernel)
    assert np.allclose(found, expected, rtol=1e-5)


def test_a_divergent_index_into_a_parameter_counts_as_a_constant_load() -> None:
    _, done = launch("indexed")
    assert done.counters.total("constant load").lanes >= THREADS


def test_an_access_past_the_end_of_a_struct_parameter_is_found() -> None:
    """The struct has 260 bytes; the next parameter follows it."""
    with pytest.raises(OutOfBounds, match="right after the end of the 260 bytes of parameter 0") as caught:
        launch("too_far")
    assert caught.value.where.thread == (65 - TAPS, 0, 0)
    assert caught.value.where.text == "out[threadIdx.x] = w.w[threadIdx.x + w.n];"


def test_a_misaligned_access_to_a_parameter_is_found() -> None:
    with pytest.raises(Misaligned) as caught:
        launch("misaligned")
    assert caught.value.where.text.startswith("out[threadIdx.x] = *reinterpret_cast<const float*>")


def test_a_store_to_a_parameter_is_refused() -> None:
    with pytest.raises(OutOfBounds, match="store at parameter 0, which is read-only"):
        launch("changed")


@pytest.mark.parametrize(
    ("members", "size"),
    [({"a": np.int8(1)}, 1), ({"a": np.int8(1), "b": np.int16(2)}, 4), ({"a": np.float64(1), "b": np.int8(2)}, 16)],
)
def test_a_struct_is_as_long_as_its_alignment_asks_for(members: dict[str, np.generic], size: int) -> None:
    """The size is `sizeof` in C: a struct of one byte has one byte; others end at a multiple of their widest member."""
    assert len(Struct(members).pack("s", {})) == size
