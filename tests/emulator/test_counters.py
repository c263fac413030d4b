"""Counters: exact values, with the arithmetic in comments."""

from __future__ import annotations

import numpy as np
import pytest
from harness import Device, DeviceMemory, pointer

from climb.emulator import Trace, load
from climb.emulator.counters.cost_model import load_wavefronts, sectors
from climb.emulator.counters.lines import AccessCounters
from climb.emulator.simt.warp_layout import INACTIVE

ACCESS = r"""
extern "C" {
__global__ void strided(const float* a, float* o, int s) { int i = threadIdx.x; o[i] = a[(size_t)i * s]; }
__global__ void offset(const float* a, float* o, int s) {
  int i = blockIdx.x * blockDim.x + threadIdx.x; o[i] = a[i + s]; }
__global__ void bytes(const unsigned char* a, unsigned char* o) { int i = threadIdx.x; o[i] = a[i]; }
__global__ void quads(const float4* a, float4* o, int s) { int i = threadIdx.x; o[i] = a[i * s]; }
__global__ void indexed(const float* a, const int* index, float* o) { int i = threadIdx.x; o[i] = a[index[i]]; }
__global__ void shared_words(const int* index, float* o, int n) { extern __shared__ float s[]; int t = threadIdx.x;
  for (int i = t; i < n; i += blockDim.x) s[i] = i; __syncthreads(); o[t] = s[index[t]]; }
__global__ void shared_doubles(const int* index, double* o, int n) { extern __shared__ double d[]; int t = threadIdx.x;
  for (int i = t; i < n; i += blockDim.x) d[i] = i; __syncthreads(); o[t] = d[index[t]]; }
__global__ void shared_quads(const int* index, float4* o, int n) { extern __shared__ float4 q[]; int t = threadIdx.x;
  for (int i = t; i < n; i += blockDim.x) q[i] = make_float4(i, i, i, i); __syncthreads(); o[t] = q[index[t]]; }
__global__ void shared_bytes(const int* index, unsigned char* o, int n) {
  extern __shared__ unsigned char b[]; int t = threadIdx.x;
  for (int i = t; i < n; i += blockDim.x) b[i] = i; __syncthreads(); o[t] = b[index[t]]; }
}
"""


@pytest.fixture(scope="module")
def device():
    return Device(ACCESS)


@pytest.mark.parametrize(
    "stride,expected",
    # 32 lanes, 4 bytes each, `stride` floats apart: they span 4 * stride sectors, but touch at most 32.
    [(1, 4), (2, 8), (4, 16), (8, 32), (32, 32), (0, 1)],
)
def test_strided_loads_cost_the_expected_sectors(device, stride, expected):
    found = device.launch("strided", 1, 32, np.zeros(32 * 32, np.float32), np.zeros(32, np.float32), stride)
    load = found.total("global load")
    # There are 128 distinct bytes, or 4 if all lanes read one float.
    assert (load.requests, load.sectors, load.ideal_sectors) == (1, expected, 4 if stride else 1)
    assert found.total("global store").sectors == 4


@pytest.mark.parametrize("shift,expected", [(0, 4), (1, 5), (7, 5), (8, 4), (9, 5)])
def test_an_offset_costs_one_more_sector_per_warp(device, shift, expected):
    found = device.launch("offset", 10, 128, np.zeros(1280 + 16, np.float32), np.zeros(1280, np.float32), shift)
    # 40 warps; 128 bytes from byte 4 * shift on take 4 sectors if that is a multiple of 32, otherwise 5.
    load = found.total("global load")
    assert (load.requests, load.sectors, load.ideal_sectors) == (40, 40 * expected, 160)


def test_byte_loads_cost_the_expected_sectors(device):
    found = device.launch("bytes", 1, 96, np.zeros(96, np.uint8), np.zeros(96, np.uint8))
    # 32 bytes per warp: one sector.
    load = found.total("global load")
    assert (load.requests, load.sectors, load.ideal_sectors, load.width) == (3, 3, 3, 1)


@pytest.mark.parametrize("stride,expected", [(1, 16), (2, 32), (3, 32), (0, 1)])
def test_vector_loads_cost_the_expected_sectors(device, stride, expected):
    found = device.launch("quads", 1, 32, np.zeros((96, 4), np.float32), np.zeros((32, 4), np.float32), stride)
    # 512 bytes: 16 sectors; with a stride of two, each lane's 16 bytes have a sector of their own.
    load = found.total("global load")
    assert (load.requests, load.sectors, load.ideal_sectors) == (1, expected, 16 if stride else 1)


def test_partial_warps_count_only_their_lanes(device):
    # 50 threads: one full warp (4 sectors) and one with 18 lanes (72 bytes, 3 sectors).
    found = device.launch("strided", 1, 50, np.zeros(50, np.float32), np.zeros(50, np.float32), 1)
    for kind in ("global load", "global store"):
        total = found.total(kind)
        assert (total.requests, total.lanes, total.sectors, total.ideal_sectors) == (2, 50, 7, 7)
    assert found.lane_efficiency == 50 / 64


def brute_sectors(addresses: np.ndarray, width: int) -> int:
    return len({byte // 32 for a in addresses.tolist() for byte in range(a, a + width)})


def brute_parts(addresses: np.ndarray, width: int) -> int:
    """The parts in which a load is served: half as many if all neighbours (at distance 1 or 2) read the same."""
    parts = {8: 2, 16: 4}.get(width, 1)
    if parts == 1:
        return 1
    lanes = [lane for lane in range(32) if addresses[lane] >= 0]
    for bit in (1, 2):
        if all(addresses[lane ^ bit] < 0 or addresses[lane ^ bit] == addresses[lane] for lane in lanes):
            return parts // 2
    return parts


def brute_wavefronts(addresses: np.ndarray, width: int) -> int:
    """The rule in plain Python: for lanes served together, the most distinct words that one bank must deliver."""
    lanes = 32 // brute_parts(addresses, width)
    total = 0
    for start in range(0, 32, lanes):
        words = {(a + byte) // 4 for a in addresses[start : start + lanes].tolist() if a >= 0 for byte in range(width)}
        banks = [sum(1 for w in words if w % 32 == bank) for bank in range(32)]
        total += max(banks)
    return total


@pytest.mark.parametrize("warps", [1, 4, 32])
def test_random_gathers_cost_their_distinct_sectors(device, warps):
    rng = np.random.default_rng(warps)
    index = rng.integers(0, 5000, 32 * warps).astype(np.int32)
    data = np.arange(5000, dtype=np.float32)
    out = np.zeros(32 * warps, np.float32)
    found = device.launch("indexed", 1, 32 * warps, data, index, out)
    assert (out == data[index]).all()
    gather = max(found.lines, key=lambda one: one.sectors)
    want = sum(brute_sectors(4 * each, 4) for each in index.reshape(warps, 32)) + 4 * warps
    ideal = sum(-(-len(set(each.tolist())) * 4 // 32) for each in index.reshape(warps, 32)) + 4 * warps
    # The line also loads the index: four sectors for each warp.
    assert (gather.requests, gather.sectors, gather.ideal_sectors) == (2 * warps, want, ideal)


SHARED = {"shared_words": (4, np.float32, 1), "shared_doubles": (8, np.float64, 1), "shared_quads": (16, np.float32, 4)}


@pytest.mark.parametrize("name", SHARED)
@pytest.mark.parametrize(
    "pattern",
    [
        lambda t: t,
        lambda t: t * 0,
        lambda t: t * 2,
        lambda t: t * 32 % 1024,
        lambda t: t // 2,
        lambda t: t ^ 5,
        lambda t: t * 7 % 64,
        lambda t: t * 33 % 1024,
        lambda t: np.random.default_rng(0).integers(0, 1024, 32),
    ],
)
def test_shared_accesses_cost_the_expected_wavefronts(device, name, pattern):
    width, dtype, count = SHARED[name]
    index = np.asarray(pattern(np.arange(32))).astype(np.int32)
    out = np.zeros((32, count), dtype)
    found = device.launch(name, 1, 32, index, out, 1024, shared=1024 * width)
    assert (out[:, 0] == index).all()
    load = found.total("shared load")
    assert (load.requests, load.wavefronts) == (1, brute_wavefronts(index * width, width))
    assert load.bank_conflicts == load.wavefronts - brute_parts(index * width, width)


def test_bytes_of_one_word_are_one_bank_access(device):
    out = np.zeros(32, np.uint8)
    index = (np.arange(32) + 3).astype(np.int32)
    found = device.launch("shared_bytes", 1, 32, index, out, 64, shared=64)
    # Bytes 3 to 34 are in words 0 to 8, hence in nine banks.
    assert found.total("shared load").wavefronts == 1
    index = (np.arange(32) * 130 % 1024).astype(np.int32)
    found = device.launch("shared_bytes", 1, 32, index, np.zeros(32, np.uint8), 1024, shared=1024)
    assert found.total("shared load").wavefronts == brute_wavefronts(index, 1)


def test_the_cost_model_follows_the_written_rules():
    """Compare the vectorised counts with sets of bytes, for absent lanes and all widths and alignments."""
    rng = np.random.default_rng(5)
    for width in (1, 2, 4, 8, 16):
        for spread in (40, 300, 5000):
            address = rng.integers(0, spread, (60, 32)) * width + 32
            absent = rng.random((60, 32)) < 0.3
            absent[:, 0] = False
            relative = np.where(absent, INACTIVE, address - address[:, :1])
            got = sectors(relative, address[:, 0] % 32, width)
            fronts = load_wavefronts(relative, address[:, 0] % (4 if width < 4 else 1), width)
            for row in range(60):
                active = address[row][~absent[row]]
                assert got[row, 0] == brute_sectors(active, width)
                assert got[row, 1] == -(-len(set(active.tolist())) * width // 32)
                assert fronts[row, 0] == brute_wavefronts(np.where(absent[row], -1, address[row]), width)


TRANSPOSE = r"""
template <int PAD> __global__ void shared(const float* a, float* b, int n) {
  __shared__ float t[32][32 + PAD];
  int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
  for (int j = 0; j < 32; j += 8) t[threadIdx.y + j][threadIdx.x] = a[(y + j) * n + x];
  __syncthreads();
  x = blockIdx.y * 32 + threadIdx.x; y = blockIdx.x * 32 + threadIdx.y;
  for (int j = 0; j < 32; j += 8) b[(y + j) * n + x] = t[threadIdx.x][threadIdx.y + j];
}
extern "C" __global__ void naive(const float* a, float* b, int n) {
  int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
  b[x * n + y] = a[y * n + x];
}
"""


def test_transpose_counts_equal_nsight_compute():
    """Nsight Compute counted these four numbers on an H200 for the unpadded 1024 x 1024 transpose."""
    device = Device(TRANSPOSE, names=["shared<0>", "shared<1>"])
    data = np.random.default_rng(0).random((1024, 1024), dtype=np.float32)
    out = np.zeros_like(data)
    found = device.launch("shared<0>", (32, 32), (32, 8), data, out, 1024)
    assert (out == data.T).all()
    load, store = found.total("global load"), found.total("shared load")
    assert (load.requests, load.sectors, store.wavefronts, store.bank_conflicts) == (32768, 131072, 1048576, 1015808)
    # 1024 blocks pass one barrier each.
    assert found.barriers == 1024 and found.divergent_branches == 0
    padded = device.launch("shared<1>", (32, 32), (32, 8), data, out, 1024)
    assert padded.total("shared load").bank_conflicts == padded.total("shared store").bank_conflicts == 0
    naive = device.launch("naive", (32, 32), (32, 32), data, out, 1024)
    # Each store of a warp goes to 32 rows: 32 sectors.
    assert naive.total("global store").sectors_per_request == 32


def test_rows_cost_32_sectors_and_a_broadcast_costs_one():
    device = Device(
        r"""extern "C" __global__ void naive(const float* a, const float* b, float* c, int n) {
        int r = blockIdx.x * 32 + threadIdx.x, q = blockIdx.y * 4 + threadIdx.y; float s = 0;
        for (int k = 0; k < n; ++k)
          s += a[r * n + k]
             * b[k * n + q];
        c[r * n + q] = s; }"""
    )
    n = 64
    a, b = (np.random.default_rng(s).integers(-3, 4, (n, n)).astype(np.float32) for s in (1, 2))
    c = np.zeros((n, n), np.float32)
    found = device.launch("naive", (2, 16), (32, 4), a, b, c, n)
    assert (c == a @ b).all()
    loads = {one.line: one for one in found.lines if one.kind == "global load"}
    # 2 * 16 blocks of 4 warps, 64 steps: 8192 requests each. a: 32 rows, 32 sectors. b: one float for all lanes.
    assert {line: (one.requests, one.sectors) for line, one in loads.items()} == {4: (8192, 32 * 8192), 5: (8192, 8192)}
    assert loads[4].text == "s += a[r * n + k]" and loads[5].text == "* b[k * n + q];"


def test_instructions_and_lane_efficiency_are_counted():
    device = Device('extern "C" __global__ void k(int* o) { o[threadIdx.x] = 1; }')
    found = device.launch("k", 3, 40, np.zeros(40, np.int32))
    # 3 blocks of two warps; the second warp has 8 lanes.
    instructions = found.warp_instructions // 6
    assert found.warp_instructions == 6 * instructions and found.thread_instructions == 120 * instructions
    assert found.lane_efficiency == 40 / 64


def test_a_uniform_shared_address_costs_one_wavefront():
    device = Device(
        'extern "C" __global__ void k(float* o) { __shared__ float s[4]; int t = threadIdx.x; if (t < 4) s[t] = t;'
        "__syncthreads(); o[blockIdx.x * blockDim.x + t] = s[blockIdx.x % 4]; }"
    )
    out = np.zeros((6, 64), np.float32)
    found = device.launch("k", 6, 64, out)
    assert (out == (np.arange(6) % 4)[:, None]).all()
    load = found.total("shared load")
    assert (load.requests, load.wavefronts, load.lanes) == (12, 12, 384)


def test_counts_do_not_depend_on_how_blocks_are_batched(device, monkeypatch):
    from climb.emulator.execution import batches

    rng = np.random.default_rng(8)
    data, index = rng.random(5000).astype(np.float32), rng.integers(0, 5000, 64).astype(np.int32)
    kernels = {
        "offset": (13, 64, np.zeros(13 * 64 + 8, np.float32), np.zeros(13 * 64, np.float32), 3),
        "indexed": (1, 64, data, index, np.zeros(64, np.float32)),
    }
    first = [device.launch(name, *args) for name, args in kernels.items()]
    monkeypatch.setattr(batches, "LANES", 64)
    monkeypatch.setattr(batches, "MOST_LANES", 64)
    assert [device.launch(name, *args) for name, args in kernels.items()] == first


def test_counters_of_launches_add_up(device):
    args = (np.zeros(32, np.float32), np.zeros(32, np.float32), 1)
    one = device.launch("strided", 1, 32, *args)
    both = one + device.launch("strided", 1, 32, *args)
    assert both.warp_instructions == 2 * one.warp_instructions and both.kernel == "strided"
    assert both.total("global load").sectors == 8 and len(both.lines) == len(one.lines)
    other = one + device.launch("offset", 1, 32, *args[:2], 0)
    assert other.kernel == "strided + offset" and other.total("global load").requests == 2


def test_a_kind_that_did_not_occur_counts_zero(device):
    found = device.launch("bytes", 1, 32, np.zeros(32, np.uint8), np.zeros(32, np.uint8))
    nothing = found.total("shared load")
    assert (nothing.requests, nothing.wavefronts) == (0, 0) and np.isnan(nothing.wavefronts_per_request)


def test_a_trace_records_the_accesses_of_one_warp():
    device = Device(TRANSPOSE, names=["shared<0>"])
    trace = Trace(block=(1, 2, 0), warp=3)
    data = np.zeros((96, 96), np.float32)
    device.launch("shared<0>", (3, 3), (32, 8), data, np.zeros_like(data), 96, trace=trace)
    kinds = [one.kind for one in trace.accesses]
    assert sorted(kinds) == ["global load"] * 4 + ["global store"] * 4 + ["shared load"] * 4 + ["shared store"] * 4
    first = next(one for one in trace.accesses if one.kind == "global load")
    base = first.addresses[0] - 4 * ((64 + 3) * 96 + 32)
    assert base % 512 == 0 and first.active.all() and first.allocation == "argument 0"
    assert (np.diff(first.addresses) == 4).all()
    load = next(one for one in trace.accesses if one.kind == "shared load")
    assert load.addresses.tolist() == [128 * lane + 4 * 3 for lane in range(32)]


def test_a_trace_of_a_partial_warp_marks_absent_lanes(device):
    trace = Trace(block=0, warp=1)
    device.launch("strided", 1, 40, np.zeros(40, np.float32), np.zeros(40, np.float32), 1, trace=trace)
    assert [int(one.active.sum()) for one in trace.accesses] == [8, 8]
    assert trace.accesses[0].addresses[8:].tolist() == [0] * 24


def test_the_report_shows_lines_and_totals(device):
    text = str(device.launch("strided", 1, 32, np.zeros(256, np.float32), np.zeros(32, np.float32), 8))
    assert "strided: grid 1x1x1, block 32x1x1" in text
    row = next(line for line in text.splitlines() if "global load" in line)
    assert "32 sectors" in row and "o[i] = a[(size_t)i * s];" in row


def test_constant_loads_are_counted_without_sectors() -> None:
    device = Device(
        """__constant__ float w[64];
        extern "C" __global__ void k(float* o) { o[threadIdx.x] = w[63 - threadIdx.x]; }"""
    )
    load = device.launch("k", 1, 64, np.zeros(64, np.float32)).total("constant load")
    assert (load.requests, load.lanes, load.width, load.sectors) == (2, 64, 4, 0)


def test_line_without_shared_memory_accesses_has_no_bank_conflicts() -> None:
    line = AccessCounters("k.cu", 3, "o[i] = 1;", "global store", 4, 1, 32, sectors=4, ideal_sectors=4)
    assert (line.wavefronts, line.bank_conflicts, line.wavefronts_per_request) == (0, 0, 0)


LOOP = """.version 8.8
.target sm_90
.address_size 64
.visible .entry k(.param .u64 p) {
.reg .b64 %a;
.reg .b32 %t, %i;
.reg .pred %p, %q;
ld.param.u64 %a, [p];
mov.u32 %t, %tid.x;
mov.u32 %i, 0;
AGAIN:
setp.gt.u32 %p, %t, 15;
@%p bra BEHIND;
red.global.add.u32 [%a], 1;
red.global.add.u32 [%a+4], 2;
BEHIND:
add.u32 %i, %i, 1;
setp.lt.u32 %q, %i, 3;
@%q bra AGAIN;
ret;
}"""


def test_loop_counts_its_branches_and_each_divergence_of_each_round() -> None:
    """Three rounds: each has a branch that splits the warp, half of which adds twice, and a uniform branch back.

    `ret` counts too.
    """
    memory = DeviceMemory()
    counters = load(LOOP).kernel("k").launch(1, 32, [pointer(memory.allocate(8))], memory=memory)
    assert (counters.branches, counters.divergent_branches) == (6, 3)
    assert counters.warp_instructions == 3 + 3 * (2 + 2 + 3) + 1
    assert counters.thread_instructions == 32 * 3 + 3 * (32 * 2 + 16 * 2 + 32 * 3) + 32
