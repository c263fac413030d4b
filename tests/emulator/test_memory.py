"""Memory accesses: widths, vectors, shapes of blocks and grids, memory spaces."""

from __future__ import annotations

import numpy as np
import pytest
from harness import Device, pointer, run_ptx

from climb.emulator import DeviceMemory, LaunchError, OutOfBounds, Uninitialised, checking, load
from climb.emulator.checks.enabled import NONE

SHAPES = [
    ((1,), (1,)),
    ((3,), (33,)),
    ((2, 3), (7, 5)),
    ((2, 2, 3), (4, 3, 5)),
    ((5, 1, 2), (1, 17, 2)),
    ((1,), (1024,)),
]


@pytest.mark.parametrize("grid,block", SHAPES)
def test_indices_are_right_for_every_shape_of_grid_and_block(grid, block):
    device = Device(
        r"""extern "C" __global__ void k(int* o) {
        int b = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
        int t = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
        int* mine = o + (b * blockDim.x * blockDim.y * blockDim.z + t) * 6;
        mine[0] = threadIdx.x; mine[1] = threadIdx.y; mine[2] = threadIdx.z;
        mine[3] = blockIdx.x; mine[4] = blockIdx.y; mine[5] = blockIdx.z; }"""
    )
    full_grid, full_block = ((*s, 1, 1)[:3] for s in (grid, block))
    blocks, threads = int(np.prod(full_grid)), int(np.prod(full_block))
    out = np.full((blocks * threads, 6), -1, np.int32)
    device.launch("k", grid, block, out)
    want = [
        [x, y, z, i, j, k]
        for k in range(full_grid[2])
        for j in range(full_grid[1])
        for i in range(full_grid[0])
        for z in range(full_block[2])
        for y in range(full_block[1])
        for x in range(full_block[0])
    ]
    assert out.tolist() == want


@pytest.mark.parametrize("kind", ["u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64", "f32", "f64"])
def test_loads_extend_and_stores_truncate(kind):
    device = Device(
        {
            "u8": "typedef unsigned char T;", "s8": "typedef signed char T;", "u16": "typedef unsigned short T;",
            "s16": "typedef short T;", "u32": "typedef unsigned T;", "s32": "typedef int T;",
            "u64": "typedef unsigned long long T;", "s64": "typedef long long T;", "f32": "typedef float T;",
            "f64": "typedef double T;",
        }[kind]
        + 'extern "C" __global__ void k(const T* a, T* o, double* w) { int i = threadIdx.x;'
        " w[i] = a[i]; o[i] = a[i] + (T)3; }"
    )  # fmt: skip
    dtype = np.dtype({"u": "u", "s": "i", "f": "f"}[kind[0]] + str(int(kind[1:]) // 8))
    data = np.frombuffer(np.random.default_rng(1).bytes(40 * dtype.itemsize), dtype).copy()
    if kind[0] == "f":
        data = np.linspace(-5, 5, 40).astype(dtype)
    out, wide = np.zeros_like(data), np.zeros(40)
    device.launch("k", 1, 40, data, out, wide)
    assert (wide == data.astype(np.float64)).all()
    assert (out == data + dtype.type(3)).all()


@pytest.mark.parametrize(
    "vector,scalar,count",
    [("float2", "f4", 2), ("float4", "f4", 4), ("int4", "i4", 4), ("double2", "f8", 2), ("uchar4", "u1", 4),
     ("short2", "i2", 2), ("short4", "i2", 4), ("longlong2", "i8", 2), ("uchar2", "u1", 2)],
)  # fmt: skip
def test_vector_types_are_loaded_and_stored(vector, scalar, count):
    fields = "xyzw"[:count]
    device = Device(
        f'extern "C" __global__ void k(const {vector}* a, {vector}* o, int n) {{'
        f" int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) {{ {vector} v = a[i]; {vector} r = v;"
        + "".join(f"r.{f} = v.{g} + (decltype(v.{g}))1;" for f, g in zip(fields, reversed(fields), strict=True))
        + " o[i] = r; } }"
    )
    data = np.arange(77 * count).astype(scalar).reshape(77, count)
    out = np.zeros_like(data)
    found = device.launch("k", 3, 32, data, out, 77)
    assert (out == data[:, ::-1] + 1).all()
    total = found.total("global load")
    width = count * np.dtype(scalar).itemsize
    assert total.bytes == 77 * width and total.lanes * total.width == 77 * width


@pytest.mark.parametrize("size", ["16", "32", "64"])
def test_vectors_of_registers_are_loaded_and_stored(size):
    body = f"ld.global.v2.b{size} {{%t0, %t1}}, [%a0]; st.global.v2.b{size} [%a1], {{%t1, %t0}};"
    kind = {"16": "u32", "32": "u64", "64": None}[size]
    if kind is None:
        source = body.replace("%a0", "%x").replace("%a1", "%y")
        text = (
            ".version 8.8\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 p, .param .u64 q) {"
            ".reg .b64 %t<2>; .reg .b64 %x, %y; ld.param.u64 %x, [p]; ld.param.u64 %y, [q];" + source + "ret; }"
        )
        memory = DeviceMemory()
        a, b = memory.allocate(16), memory.allocate(16)
        a.data[:] = np.arange(16)
        load(text).kernel("k").launch(1, 1, [pointer(a), pointer(b)], memory=memory)
        assert b.data.tolist() == [*range(8, 16), *range(8)]
        return
    (got,) = run_ptx(
        body + f"ld.global.{kind} %o0, [%a1];", [(kind, [1 << int(size), 5])], [kind], f".reg .b{size} %t<2>;"
    )
    assert got.tolist() == [1, 5 << int(size)]


def test_static_and_dynamic_shared_memory_do_not_overlap():
    device = Device(
        r"""extern "C" __global__ void k(int* o) {
        __shared__ int a[40]; __shared__ double b[3]; extern __shared__ short d[];
        int t = threadIdx.x; a[t] = t * t + blockIdx.x; if (t < 3) b[t] = t + 0.5; d[t] = -t; __syncthreads();
        o[blockIdx.x * 40 + t] = a[39 - t] + (int)(b[t % 3] * 2) * 1000 + d[(t + 1) % 40] * 100000; }"""
    )
    out = np.zeros((5, 40), np.int32)
    device.launch("k", 5, 40, out, shared=80)
    want = [
        [(39 - t) ** 2 + b + (2 * (t % 3) + 1) * 1000 - ((t + 1) % 40) * 100000 for t in range(40)] for b in range(5)
    ]
    assert out.tolist() == want


def test_module_variables_can_be_read_and_written():
    device = Device(
        r"""__constant__ float weights[4] = {1.5f, 2.5f, -1.0f, 8.0f};
        __device__ int counter = 5; __device__ int table[3];
        __device__ int* where = &table[1];
        extern "C" __global__ void k(float* o) { o[threadIdx.x] = weights[threadIdx.x % 4] * counter;
          if (threadIdx.x == 0) { table[2] = 77; *where = 66; } }"""
    )
    out = np.zeros(8, np.float32)
    device.launch("k", 1, 8, out)
    assert out.tolist() == [7.5, 12.5, -5.0, 40.0] * 2
    assert device.module.symbol("table").data.view(np.int32).tolist() == [0, 66, 77]
    device.module.symbol("weights").data[:] = np.ones(4, np.float32).view(np.uint8)
    device.module.symbol("counter").data[:] = np.array([3], np.int32).view(np.uint8)
    device.launch("k", 1, 8, out)
    assert out.tolist() == [3.0] * 8
    with pytest.raises(KeyError, match="no variable nothing"):
        device.module.symbol("nothing")


def test_templates_take_structs_by_value():
    device = Device(
        r"""struct S { char c; double d; int v[3]; };
        template <int N, typename T> __global__ void k(T* o, S s) { o[threadIdx.x] = (T)(s.d * N + s.v[2] + s.c); }""",
        names=["k<3,float>", "k<5,int>"],
    )
    value = np.zeros(1, np.dtype([("c", "i1"), ("d", "f8"), ("v", "i4", 3)], align=True))
    value["c"], value["d"], value["v"] = 4, 1.5, [1, 2, 3]
    out = np.zeros(2, np.float32)
    device.launch("k<3,float>", 1, 2, out, value[0])
    assert out.tolist() == [11.5, 11.5]
    whole = np.zeros(2, np.int32)
    device.launch("k<5,int>", 1, 2, whole, value[0])
    assert whole.tolist() == [14, 14]


def test_one_access_may_reach_several_allocations():
    device = Device(
        'extern "C" __global__ void k(const float* const* p, float* const* q) { int i = threadIdx.x;'
        " q[i % 3][i / 3] = *p[i] * 2; }"
    )
    sources = [device.upload(np.array([float(i)], np.float32)) for i in range(6)]
    targets = [device.memory.allocate(8) for _ in range(3)]
    p = np.array([s.address for s in sources], np.uint64)
    q = np.array([t.address for t in targets], np.uint64)
    device.launch("k", 1, 6, p, q)
    assert [t.data.view(np.float32).tolist() for t in targets] == [[0.0, 6.0], [2.0, 8.0], [4.0, 10.0]]


def test_one_atomic_may_reach_several_allocations_at_an_offset_from_its_address():
    """`[a+8]` is an address that each lane computes for itself: the third element of its own array."""
    out = [np.arange(4, dtype=np.uint32) + 10 * i for i in range(3)]
    device = Device(
        'extern "C" __global__ void k(unsigned* const* p, unsigned* old) { unsigned* a = p[threadIdx.x % 3];'
        ' asm volatile("atom.global.add.u32 %0, [%1+8], 5;" : "=r"(old[threadIdx.x]) : "l"(a) : "memory"); }'
    )
    targets = [device.upload(values) for values in out]
    old = np.zeros(6, np.uint32)
    device.launch("k", 1, 6, np.array([target.address for target in targets], np.uint64), old)
    assert [target.data.view(np.uint32).tolist() for target in targets] == [[0, 1, 12, 3], [10, 11, 22, 13],
                                                                           [20, 21, 32, 23]]  # fmt: skip
    assert old.tolist() == [2, 12, 22, 7, 17, 27]


def test_the_last_lane_wins_if_lanes_store_to_one_address():
    device = Device(
        'extern "C" __global__ void k(int* o) { o[0] = threadIdx.x; o[1 + threadIdx.x / 8] = threadIdx.x; }'
    )
    out = np.zeros(5, np.int32)
    device.launch("k", 1, 32, out)
    assert out.tolist() == [31, 7, 15, 23, 31]


def test_each_thread_has_its_own_local_array():
    device = Device(
        r"""extern "C" __global__ void k(const int* a, int* o, int n) {
        int v[16]; int t = blockIdx.x * blockDim.x + threadIdx.x;
        #pragma unroll 1
        for (int i = 0; i < 16; ++i) v[i] = a[(t + i) % n];
        #pragma unroll 1
        for (int i = 1; i < 16; ++i) {
            int x = v[i], j = i; while (j > 0 && v[j - 1] > x) { v[j] = v[j - 1]; --j; } v[j] = x; }
        o[t] = v[a[t] % 16] * 100 + v[15]; }"""
    )
    data = np.random.default_rng(2).integers(0, 90, 96).astype(np.int32)
    out = np.zeros(96, np.int32)
    device.launch("k", 3, 32, data, out, 96)
    for t in range(96):
        row = sorted(data[(t + i) % 96] for i in range(16))
        assert out[t] == row[data[t] % 16] * 100 + row[15]


def test_generic_pointers_reach_shared_and_global_memory():
    device = Device(
        r"""__device__ __noinline__ int pick(const int* p, int i) { return p[i]; }
        extern "C" __global__ void k(const int* a, int* o, int s) {
        __shared__ int m[32]; int t = threadIdx.x; m[t] = -t;
        __syncthreads(); const int* p = s ? m : a; o[t] = p[(t + 1) % 32]; }"""
    )
    data = np.arange(100, 132, dtype=np.int32)
    out = np.zeros(32, np.int32)
    for s in (0, 1):
        device.launch("k", 1, 32, data, out, s)
        assert out.tolist() == [(-((t + 1) % 32) if s else 100 + (t + 1) % 32) for t in range(32)]


def test_one_warp_may_use_generic_pointers_to_several_spaces():
    device = Device(
        r"""extern "C" __global__ void k(const int* a, int* o) { __shared__ int m[32]; int t = threadIdx.x; m[t] = -t;
        __syncthreads(); const int* p = t % 3 ? m : a; int* q = t % 2 ? m : o; int v = p[(t + 1) % 32];
        __syncthreads(); q[t] = v; __syncthreads(); if (t % 2) o[t] = m[t]; }"""
    )
    data = np.arange(100, 132, dtype=np.int32)
    out = np.zeros(32, np.int32)
    device.launch("k", 1, 32, data, out)
    assert out.tolist() == [-((t + 1) % 32) if t % 3 else 100 + (t + 1) % 32 for t in range(32)]


def test_addresses_are_deterministic_aligned_and_never_reused():
    one, two = DeviceMemory(), DeviceMemory()
    sizes = [1, 100, 0, 5_000_000, 512]
    first = [one.allocate(n).address for n in sizes]
    assert first == [two.allocate(n).address for n in sizes]
    assert all(a % 512 == 0 for a in first) and first == sorted(set(first))
    held = one.allocate(64, "held")
    one.free(held)
    assert one.allocate(64).address > held.address and one.find(held.address) is None
    with pytest.raises(ValueError, match="held is not allocated"):
        one.free(held)
    gaps = [b - a - n for a, b, n in zip(first[:-1], first[1:], sizes[:-1], strict=True)]
    assert min(gaps) >= 1 << 20 and gaps[3] >= 5_000_000
    with pytest.raises(ValueError, match="negative"):
        one.allocate(-1)


def test_an_empty_allocation_may_be_passed_but_not_read():
    device = Device('extern "C" __global__ void k(const int* a, int* o, int n) { if (threadIdx.x < n) o[0] = a[0]; }')
    out = np.zeros(1, np.int32)
    device.launch("k", 1, 32, np.zeros(0, np.int32), out, 0)
    assert out.tolist() == [0]


def test_variables_of_many_modules_never_overlap():
    from climb.emulator.memory.device_memory import (
        BASE,
        LOCAL_WINDOW,
        SHARED_WINDOW,
        SYMBOL_BASE,
        SYMBOL_RANGE,
        SYMBOL_RANGES,
    )

    assert SYMBOL_BASE + SYMBOL_RANGES * SYMBOL_RANGE <= BASE and 2 * LOCAL_WINDOW - SHARED_WINDOW <= SYMBOL_BASE
    text = ".version 8.8\n.target sm_90\n.address_size 64\n.visible .global .align 4 .b8 v[4000];\n"
    addresses = [load(text).symbol("v").address for _ in range(40)]
    assert len(set(addresses)) == 40 and max(addresses) < BASE


TWO_ARRAYS = r"""extern "C" __global__ void k(const int* a, int* o) {
    __shared__ int first[32];
    __shared__ int second[64];
    int t = threadIdx.x;
    second[t] = 5; second[t + 32] = 6;
    first[t] = t;
    __syncthreads();
    o[t] = first[t + a[0]] + second[t];
}"""


def test_an_overrun_of_a_shared_array_does_not_reach_the_next_one():
    """On a GPU the two arrays touch, so the sum would be silently wrong."""
    out = np.zeros(32, np.int32)
    device = Device(TWO_ARRAYS)
    device.launch("k", 1, 32, np.array([0], np.int32), out)
    assert out.tolist() == [t + 5 for t in range(32)]
    with pytest.raises(OutOfBounds, match="right after the end of the 128 bytes of first in shared memory") as caught:
        device.launch("k", 1, 32, np.array([4], np.int32), out)
    assert (caught.value.where.thread, caught.value.where.lanes, caught.value.distance) == ((28, 0, 0), 4, 0)
    with pytest.raises(OutOfBounds, match="800 bytes after the end of the 128 bytes of first") as caught:
        device.launch("k", 1, 32, np.array([232], np.int32), out)
    assert caught.value.where.thread == (0, 0, 0)


def test_gaps_do_not_count_as_shared_memory_of_a_block():
    """Two arrays of 24 KiB use all static shared memory; dynamic memory fills the rest of the block's limit."""
    body = r"""extern "C" __global__ void k(int* o) {
    extern __shared__ int more[];
    __shared__ int a[6144], b[6144];
    int t = threadIdx.x;
    a[t] = t; b[t] = 2 * t; more[t] = 3 * t;
    __syncthreads();
    o[t] = a[31 - t] + b[31 - t] + more[31 - t];
}"""
    device, out = Device(body), np.zeros(32, np.int32)
    most = 227 * 1024 - 2 * 24576
    device.launch("k", 1, 32, out, shared=most)
    assert out.tolist() == [6 * (31 - t) for t in range(32)]
    with pytest.raises(LaunchError, match="bytes of shared memory"):
        device.launch("k", 1, 32, out, shared=most + 16)
    with pytest.raises(OutOfBounds, match="right after the end of the 64 bytes of more"):
        device.launch("k", 1, 32, out, shared=64)


def test_an_overrun_of_a_local_array_does_not_reach_another_function():
    """Local arrays of one function have no gap between them: the compiler makes one variable of them."""
    body = r"""__device__ __noinline__ int pick(const int* a) {
    int mine[4];
    for (int i = 0; i < 4; ++i) mine[a[i]] = 10 * i;
    return mine[a[5]];
}
extern "C" __global__ void k(const int* a, int* o) {
    int first[4];
    for (int i = 0; i < 4; ++i) first[a[i]] = i;
    o[threadIdx.x] = first[a[4]] + pick(a);
}"""
    device, out = Device(body), np.zeros(32, np.int32)
    device.launch("k", 1, 32, np.array([0, 1, 2, 3, 3, 2], np.int32), out)
    assert out.tolist() == [23] * 32
    for place in (4, 5):
        wrong = np.array([0, 1, 2, 3, 3, 2], np.int32)
        wrong[place] = 5
        with pytest.raises(OutOfBounds, match=r"4 bytes after the end of the 16 bytes of .* in local memory"):
            device.launch("k", 1, 32, wrong, out)


def test_a_read_of_unwritten_local_memory_is_found():
    body = r"""extern "C" __global__ void k(const int* a, int* o) {
    int mine[8];
    for (int i = 0; i < a[0]; ++i) mine[i] = i;
    o[threadIdx.x] = mine[a[1] + threadIdx.x % 2];
}"""
    device, out = Device(body), np.zeros(32, np.int32)
    device.launch("k", 1, 32, np.array([8, 6], np.int32), out)
    with pytest.raises(Uninitialised, match=r"a load reads byte 28 of .* in local memory, which nothing has") as caught:
        device.launch("k", 1, 32, np.array([7, 6], np.int32), out)
    assert (caught.value.where.thread, caught.value.where.lanes) == ((1, 0, 0), 16)


def test_a_structure_with_padding_may_be_copied():
    """The compiler copies the whole structure, with the padding between its members."""
    body = r"""struct Pair { char small; int large; };
extern "C" __global__ void k(const int* a, Pair* o) {
    Pair mine[4];
    for (int i = 0; i < 4; ++i) { mine[a[i]].small = i; mine[a[i]].large = 100 * i; }
    o[threadIdx.x] = mine[a[threadIdx.x % 4]];
}"""
    out = np.zeros(64, np.int32)
    Device(body).launch("k", 1, 32, np.array([2, 0, 3, 1], np.int32), out)
    assert out[1::2].tolist() == [100 * (t % 4) for t in range(32)]


def test_last_lane_wins_if_lanes_store_to_one_word_of_shared_memory() -> None:
    source = """extern "C" __global__ void k(int* o) { __shared__ int s; int t = threadIdx.x;
    s = 2 * t; __syncthreads(); o[blockIdx.x * blockDim.x + t] = s; }"""
    for grid in (1, 2):
        out = np.zeros(grid * 40, np.int32)
        with checking(NONE):
            Device(source).launch("k", grid, 40, out)
        assert (out == 78).all()


def test_address_of_a_variable_may_have_an_offset():
    body = "mov.u32 %at, cells; mov.u32 %further, cells+8; sub.u32 %o0, %further, %at;"
    declare = ".shared .align 4 .b32 cells[8]; .reg .b32 %at, %further;"
    (got,) = run_ptx(body, [("u32", [0])], ["u32"], declare)
    assert got.tolist() == [8]
