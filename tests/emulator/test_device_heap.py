"""malloc, free, new and delete in kernels: their memory, their limit, and every misuse by name."""

from __future__ import annotations

import numpy as np
import pytest
from harness import Device

from climb import fake_cupy as cp
from climb.emulator import ALL_CHECKS, BadFree, DeviceMemory, OutOfBounds, Uninitialised, checking
from climb.emulator.memory.device_heap import DeviceHeap

SOURCE = r"""
struct Node { int value; Node* next; };

// Each thread builds a list of its own, adds it up and deletes it.
extern "C" __global__ void lists(int* out, int n, int keep) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    Node* head = nullptr;
    for (int i = 0; i < n + t % 5; ++i) {
        Node* node = new Node;
        node->value = i * t;
        node->next = head;
        head = node;
    }
    int sum = 0;
    while (head) {
        sum += head->value;
        Node* next = head->next;
        if (next || !keep) delete head;
        head = next;
    }
    out[t] = sum;
}

// A block's first thread allocates for all of them.
extern "C" __global__ void together(int* out) {
    __shared__ int* memory;
    int t = threadIdx.x;
    if (t == 0) memory = (int*)malloc(blockDim.x * sizeof(int));
    __syncthreads();
    memory[t] = blockIdx.x * 1000 + t;
    __syncthreads();
    out[blockIdx.x * blockDim.x + t] = memory[blockDim.x - 1 - t];
    __syncthreads();
    if (t == 0) free(memory);
}

__device__ int* kept[64];
extern "C" __global__ void keeps() { kept[threadIdx.x] = new int[4]{1, 2, 3, (int)threadIdx.x}; }
extern "C" __global__ void releases(int* out) { out[threadIdx.x] = kept[threadIdx.x][3]; delete[] kept[threadIdx.x]; }

extern "C" __global__ void fills(int* found, long long nbytes) {
    char* block = (char*)malloc(nbytes);
    atomicAdd(found, block != nullptr);
    if (block) block[0] = 1;
}

extern "C" __global__ void misuse(int what, int* out) {
    int t = threadIdx.x;
    int* p = (int*)malloc(40);
    for (int i = 0; i < 10; ++i) p[i] = i;
    if (what == 1 && t == 3) p[10] = 1;
    if (what == 10 && t == 3) ((char*)p)[40] = 1;
    if (what == 2 && t == 3) out[0] = p[-1];
    free(what == 3 ? p + 4 : p);
    if (what == 4) out[t] = p[2];
    if (what == 5) free(p);
    if (what == 6) { int* q = (int*)malloc(8); out[t] = q[1]; free(q); }
    if (what == 7) free(out);
    if (what == 8) { int* q = (int*)malloc(1ll << 40); q[0] = 1; }
    if (what == 9) { q9(t, out); }
    if (what == 11) {
        __shared__ int* row;
        if (t == 0) row = (int*)malloc(31 * sizeof(int));
        __syncthreads();
        row[t] = t;
    }
}
""".replace("q9(t, out)", "__shared__ int* q; if (t == 0) q = (int*)malloc(4); __syncthreads(); free(q)")


@pytest.fixture
def device(compiled: Device) -> Device:
    """The kernels, with an empty heap."""
    compiled.memory.heap = None
    compiled.memory.heap_bytes = 8 << 20
    return compiled


@pytest.fixture(scope="module")
def compiled() -> Device:
    return Device(SOURCE)


def list_sums(n: int, threads: int) -> list[int]:
    return [t * sum(range(n + t % 5)) for t in range(threads)]


def test_each_thread_builds_and_deletes_a_list(device: Device) -> None:
    out = np.zeros(96, np.int32)
    counters = device.launch("lists", 3, 32, out, 6, 0)
    assert out.tolist() == list_sums(6, 96)
    assert counters.notes == ()


def test_what_is_never_freed_is_noted_with_its_line(device: Device) -> None:
    counters = device.launch("lists", 1, 40, np.zeros(40, np.int32), 3, 1)
    assert counters.notes == ("40 blocks, 640 bytes, allocated in line 9 have not been freed when the kernel ends",)
    assert str(counters).endswith(f"note: {counters.notes[0]}")


def test_the_check_for_races_restarts_a_launch_with_the_heap_as_it_was(device: Device) -> None:
    out = np.zeros(128, np.int32)
    with checking(ALL_CHECKS):
        counters = device.launch("together", 2, 64, out)
    assert out.tolist() == [block * 1000 + 63 - t for block in range(2) for t in range(64)]
    assert counters.notes == ()


def test_blocks_outlive_the_launch_that_allocated_them(device: Device) -> None:
    out = np.zeros(64, np.int32)
    assert device.launch("keeps", 1, 64).notes[0].startswith("64 blocks, 1024 bytes, allocated in line")
    assert device.launch("releases", 1, 64, out).notes == ()
    assert out.tolist() == list(range(64))


def test_malloc_returns_null_when_the_heap_is_full(device: Device) -> None:
    found = np.zeros(1, np.int32)
    device.memory.heap_bytes = 64 << 10
    device.launch("fills", 2, 64, found, np.int64(1008))
    assert found[0] == 64
    device.launch("fills", 1, 1, found, np.int64(1 << 40))
    device.launch("fills", 1, 1, found, np.int64(1000))
    device.launch("fills", 1, 1, found, np.int64(-1))
    assert found[0] == 64


@pytest.mark.parametrize(
    ("what", "error", "says", "thread"),
    [
        (1, OutOfBounds, r"write of 4 bytes at 0x\w+, right after the end of the 40 bytes that line 49 has alloc", 3),
        (10, OutOfBounds, r"write of 1 byte at 0x\w+, right after the end of the 40 bytes that line 49 has", 3),
        (2, OutOfBounds, r"read of 4 bytes at 0x\w+, 4 bytes before the start of the 40 bytes that line 49 has", 3),
        (3, BadFree, "of byte 16 of the 40 bytes that line 49 has allocated; only a pointer to their start", 0),
        (4, OutOfBounds, "byte 8 of the 40 bytes that line 49 has allocated and line 54 has freed", 0),
        (5, BadFree, "of the 40 bytes that line 49 has allocated and line 54 has freed already", 0),
        (6, Uninitialised, "the device heap", 0),
        (7, BadFree, r"of 0x\w+, which malloc has not returned", 0),
        (8, OutOfBounds, "a null pointer", 0),
        (9, BadFree, "of the 4 bytes that line 60 has allocated, by several threads at once", 0),
        (
            11,
            OutOfBounds,
            "write of 4 bytes at .*, right after the end of the 124 bytes that line 63 has allocated",
            31,
        ),
    ],
)
def test_misuse_of_the_heap_is_named(device: Device, what: int, error: type, says: str, thread: int) -> None:
    with pytest.raises(error, match=says) as caught:
        device.launch("misuse", 1, 32, what, np.zeros(32, np.int32))
    assert caught.value.where.thread == (thread, 0, 0)


def test_a_block_of_no_bytes_has_an_address_and_no_room(device: Device) -> None:
    """On an H200, too, malloc(0) does not return a null pointer."""
    with pytest.raises(OutOfBounds, match=r"write of 1 byte at .*, right after the end of the 0 bytes"):
        device.launch("fills", 1, 1, np.zeros(1, np.int32), np.int64(0))


def test_a_restored_heap_allocates_the_same_addresses_again() -> None:
    """Otherwise a launch that restarts would see other addresses, and the check for races would restart it for ever."""
    heap = DeviceHeap(DeviceMemory())
    first = heap.allocate(np.array([40, 8, 100]), 0)
    then, sizes = heap.snapshot(), np.full(3000, 1000)
    second = heap.allocate(sizes, 1)
    assert (np.diff(np.concatenate([first, second])) > 0).all() and second[-1] - second[0] > 1 << 20
    heap.restore(then)
    assert (heap.allocate(sizes, 2) == second).all()
    assert heap.live_bytes == 3 * 16 + 48 + 16 + 112 + 3000 * (1008 + 16)


def test_the_limits_are_those_of_the_runtime() -> None:
    runtime = cp.cuda.runtime
    assert runtime.deviceGetLimit(runtime.cudaLimitMallocHeapSize) == 8 << 20
    assert runtime.deviceGetLimit(runtime.cudaLimitStackSize) == 1024
    runtime.deviceSetLimit(runtime.cudaLimitStackSize, 4096)
    try:
        assert runtime.deviceGetLimit(0) == 4096
    finally:
        runtime.deviceSetLimit(0, 1024)
    with pytest.raises(cp.cuda.runtime.CUDARuntimeError, match="cudaErrorInvalidValue"):
        runtime.deviceSetLimit(9, 1)
