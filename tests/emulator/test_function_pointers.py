"""Function pointers, virtual functions and recursion, compared with Python; and what is wrong with them in kernels."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from harness import Device, run_ptx

from climb.emulator import (
    ALL_CHECKS,
    BadCall,
    OutOfBounds,
    StackOverflow,
    Uninitialised,
    UnsupportedInstruction,
    checking,
)

SOURCE = r"""
typedef float (*Operation)(float, float);
__device__ float sum(float a, float b) { return a + b; }
__device__ float product(float a, float b) { return a * b; }
__device__ int other(int a) { return a + 1; }
__device__ Operation operations[3] = {sum, product, nullptr};
__device__ int (*wrong)(int) = other;

extern "C" __global__ void apply(const int* which, float* x) {
    int t = threadIdx.x;
    x[t] = operations[which[t]](x[t], 3.f);
}
extern "C" __global__ void given(float* x, Operation operation) {
    if (threadIdx.x % 3) x[threadIdx.x] = operation(x[threadIdx.x], 2.f);
}
extern "C" __global__ void mistaken(float* x) {
    x[threadIdx.x] = ((Operation)wrong)(x[threadIdx.x], 1.f);
}

struct Shape {
    float size;
    __device__ Shape(float s) : size(s) {}
    __device__ virtual float area() const = 0;
    __device__ virtual float twice() const { return 2 * area(); }
};
struct Square : Shape {
    __device__ Square(float s) : Shape(s) {}
    __device__ float area() const override { return size * size; }
};
struct Frame : Shape {
    const Shape* inner;
    __device__ Frame(float s, const Shape* i) : Shape(s), inner(i) {}
    __device__ float area() const override { return size * size - inner->area(); }
    __device__ float twice() const override { return inner->twice() + area(); }
};
extern "C" __global__ void shapes(float* x) {
    int t = threadIdx.x;
    Square a(t), b(t + 1.f);
    Frame c(t + 2.f, &a), d(t + 3.f, &c);
    const Shape* all[4] = {&a, &b, &c, &d};
    x[t] = all[(t * 7 + 1) % 4]->area() + 100 * all[t % 4]->twice();
}

__device__ int fibonacci(int n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }
__device__ __noinline__ bool odd(int n);
__device__ __noinline__ bool even(int n) { return n == 0 || odd(n - 1); }
__device__ __noinline__ bool odd(int n) { return n != 0 && even(n - 1); }
extern "C" __global__ void recursive(const int* n, int* f, int* e) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    f[t] = fibonacci(n[t]);
    e[t] = even(n[t]);
}

// Sorts by recursion; each call has an array of its own in local memory.
__device__ void sort(float* x, int n, int past) {
    if (n < 2) return;
    float left[8], right[8];
    int l = 0, r = 0;
    for (int i = 1; i < n; ++i) if (x[i] < x[0]) left[l++] = x[i]; else right[r++] = x[i];
    float pivot = x[0];
    sort(left, l, past);
    sort(right, r, past);
    for (int i = 0; i < l; ++i) x[i] = left[i];
    x[l] = pivot;
    for (int i = 0; i < r + past; ++i) x[l + 1 + i] = right[i];
}
extern "C" __global__ void sorts(float* x, int past) {
    float own[8];
    for (int i = 0; i < 8; ++i) own[i] = x[8 * threadIdx.x + i];
    sort(own, 8, past);
    for (int i = 0; i < 8; ++i) x[8 * threadIdx.x + i] = own[i];
}

__device__ __noinline__ int deep(int n, int* x) { return n == 0 ? 1 : deep(n - 1, x) * 3 + x[n & 1]; }
extern "C" __global__ void depth(int n, int* x) { x[2] = deep(n, x); }
"""


@pytest.fixture(scope="module")
def device() -> Device:
    return Device(SOURCE)


@cache
def fibonacci(n: int) -> int:
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)


def area(shape: tuple) -> float:
    size, inner = shape
    return size * size - (area(inner) if inner else 0)


def twice(shape: tuple) -> float:
    return twice(shape[1]) + area(shape) if shape[1] else 2 * area(shape)


def test_each_lane_calls_the_function_that_its_pointer_holds(device: Device) -> None:
    which = np.random.default_rng(0).integers(0, 2, 64).astype(np.int32)
    x = np.arange(64, dtype=np.float32)
    device.launch("apply", 1, 64, which, x)
    assert x.tolist() == [t * 3 if w else t + 3 for t, w in enumerate(which)]


def test_a_pointer_that_the_host_has_read_from_a_variable_can_be_passed_to_a_kernel(device: Device) -> None:
    address = device.module.symbol("operations").data[8:16].view(np.uint64)[0]
    x = np.arange(48, dtype=np.float32)
    device.launch("given", 1, 48, x, np.uint64(address))
    assert x.tolist() == [2.0 * t if t % 3 else t for t in range(48)]


@pytest.mark.parametrize(("pointer", "says"), [(0, "a null pointer"), (0x1234, "0x1234, which is no function")])
def test_a_call_through_no_function_is_a_fault(device: Device, pointer: int, says: str) -> None:
    with pytest.raises(BadCall, match=says) as caught:
        device.launch("given", 1, 48, np.zeros(48, np.float32), np.uint64(pointer))
    assert caught.value.where.thread == (1, 0, 0)
    assert "operation(x[threadIdx.x], 2.f)" in caught.value.where.text


def test_one_null_pointer_among_others_is_named_with_its_thread(device: Device) -> None:
    which = np.zeros(32, np.int32)
    which[9] = 2
    with pytest.raises(BadCall, match="null pointer") as caught:
        device.launch("apply", 1, 32, which, np.zeros(32, np.float32))
    assert caught.value.where.thread == (9, 0, 0)


def test_a_function_with_another_signature_is_named(device: Device) -> None:
    with pytest.raises(BadCall, match="to the function other, whose parameters or results"):
        device.launch("mistaken", 1, 32, np.zeros(32, np.float32))


def test_virtual_functions_call_each_other(device: Device) -> None:
    x = np.zeros(64, np.float32)
    with checking(ALL_CHECKS):
        device.launch("shapes", 1, 64, x)
    for t in range(64):
        a, b = (t, None), (t + 1, None)
        c = (t + 2, a)
        every = [a, b, c, (t + 3, c)]
        assert x[t] == area(every[(t * 7 + 1) % 4]) + 100 * twice(every[t % 4])


def test_lanes_recurse_to_different_depths(device: Device) -> None:
    n = np.random.default_rng(3).integers(0, 12, 96).astype(np.int32)
    f, e = np.zeros(96, np.int32), np.zeros(96, np.int32)
    device.launch("recursive", 3, 32, n, f, e)
    assert f.tolist() == [fibonacci(int(each)) for each in n]
    assert e.tolist() == [int(each % 2 == 0) for each in n]


def test_each_call_has_its_own_local_arrays(device: Device) -> None:
    x = np.random.default_rng(4).random((40, 8), np.float32)
    expected = np.sort(x, axis=1)
    with checking(ALL_CHECKS):
        device.launch("sorts", 1, 40, x, 0)
    assert (x == expected).all()


def test_reading_past_what_a_call_has_written_is_found(device: Device) -> None:
    with pytest.raises(Uninitialised, match="of the stack in local memory, which nothing has written") as caught:
        device.launch("sorts", 1, 40, np.random.default_rng(4).random((40, 8), np.float32), 8)
    assert caught.value.where.text.startswith("for (int i = 0; i < r + past; ++i)")


def test_recursion_deeper_than_the_stack_is_a_fault_that_names_depth_and_limit(device: Device) -> None:
    x = np.zeros(3, np.int32)
    with pytest.raises(StackOverflow, match=r"calls inside each other need at least \d+ bytes of stack"):
        device.launch("depth", 1, 1, 1000, x)
    device.memory.stack_bytes = 65536
    try:
        device.launch("depth", 1, 1, 1000, x)
    finally:
        device.memory.stack_bytes = 1024
    assert x[2] == np.int32(pow(3, 1000, 2**32) - 2**32 * (pow(3, 1000, 2**32) >> 31))


ALLOCA = """
stacksave.u64 %top;
alloca.u64 %a, %i0, 16;
cvt.u32.u64 %n, %i0;
LOOP:
sub.u32 %n, %n, 4;
cvt.u64.u32 %at, %n;
add.u64 %at, %at, %a;
st.local.u32 [%at+{past}], %n;
setp.ne.u32 %p1, %n, 0;
@%p1 bra LOOP;
add.u64 %at, %a, %i0;
ld.local.u32 %o0, [%at+-4];
stackrestore.u64 %top;
"""


def test_alloca_gives_each_lane_as_many_bytes_as_it_asks_for() -> None:
    declare = ".reg .b64 %a, %at, %top; .reg .b32 %n;"
    (out,) = run_ptx(ALLOCA.format(past=0), [("u64", [4 + 4 * (t % 9) for t in range(40)])], ["u32"], declare)
    assert out.tolist() == [4 * (t % 9) for t in range(40)]
    with pytest.raises(OutOfBounds, match="the stack has no variable that is alive"):
        run_ptx(ALLOCA.format(past=16), [("u64", [4 + 4 * (t % 9) for t in range(40)])], ["u32"], declare)


@pytest.mark.parametrize("size", [1 << 20, 2**64 - 16])
def test_alloca_of_more_than_a_stack_or_of_a_negative_size_is_a_fault(size: int) -> None:
    declare = ".reg .b64 %a, %at, %top; .reg .b32 %n;"
    with pytest.raises(StackOverflow, match="a variable alone"):
        run_ptx(ALLOCA.format(past=0), [("u64", [8, size, 8])], ["u32"], declare)


def test_a_kernel_that_launches_a_kernel_is_refused_by_name() -> None:
    source = """__global__ void child(int* x) { x[threadIdx.x] = 1; }
extern "C" __global__ void parent(int* x) {
    child<<<1, 32>>>(x);
}"""
    device = Device(source, options=("-rdc=true",))
    with pytest.raises(UnsupportedInstruction, match="dynamic parallelism") as caught:
        device.launch("parent", 1, 1, np.zeros(32, np.int32))
    assert caught.value.where.line == 3


@pytest.mark.parametrize("result", ["int", "float4", "char"])
def test_a_call_through_a_pointer_that_no_function_fits_is_a_fault_when_it_is_made(result: str) -> None:
    body = f"""__device__ {result} (*none)(int, double);
    extern "C" __global__ void k({result}* o) {{ if (threadIdx.x < 32) return; o[0] = none(3, 2.0); }}"""
    device = Device(body)
    device.launch("k", 1, 32, np.zeros(16, np.int8))
    with pytest.raises(BadCall, match="wrong call: through a null pointer"):
        device.launch("k", 1, 64, np.zeros(16, np.int8))
