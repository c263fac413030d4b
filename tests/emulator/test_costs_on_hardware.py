"""Costs that were measured on an H200: 16-byte shared loads, local memory, and atomics of shared memory."""

from __future__ import annotations

import numpy as np
import pytest
from harness import Device

from climb.emulator import run
from climb.emulator.counters import access_cost, address_patterns, cost_model
from climb.emulator.simt.lanes import Lanes

NEIGHBOURS = r"""
extern "C" {
__global__ void quads(const int* index, float4* o) { __shared__ float4 q[64]; int t = threadIdx.x;
  q[t] = q[t + 32] = make_float4(t, t, t, t); __syncwarp(); o[t] = q[index[t]]; }
__global__ void local(const int* index, double2* o, int n) { double2 own[16];
  for (int i = 0; i < n; ++i) own[i * 5 % 16] = make_double2(i, i); o[threadIdx.x] = own[index[threadIdx.x]]; }
}
"""


@pytest.mark.parametrize(
    "name,index,expected,conflicts",
    [
        # LDS.128 on an H200: one address for all lanes takes two wavefronts (matmul's rung `tiled`). Two addresses, for
        # sixteen lanes each, take two (`vectorised`, left factor). Sixteen quads in a row, read twice, take four (its
        # right factor), or eight if they are 32 bytes apart (`register_tile`, right factor).
        ("uniform", lambda t: 0 * t, 2, 0),
        ("halves", lambda t: t // 16 * 16, 2, 0),
        ("two rows", lambda t: t % 16, 4, 0),
        ("two rows apart", lambda t: t % 16 * 2, 8, 4),
        # According to NVIDIA; not measured on hardware yet.
        ("pairs", lambda t: t // 2, 2, 0),
        ("every other", lambda t: t % 2 + t // 4 * 2, 2, 0),
        ("fours but one lane", lambda t: np.where(t == 31, 40, t // 4), 4, 0),
    ],
)
def test_sixteen_byte_loads_shared_by_neighbours_cost_half(name, index, expected, conflicts):
    device = Device(NEIGHBOURS)
    places = index(np.arange(32)).astype(np.int32)
    load = device.launch("quads", 1, 32, places, np.zeros((32, 4), np.float32)).total("shared load")
    assert (load.requests, load.wavefronts, load.bank_conflicts) == (1, expected, conflicts)


@pytest.mark.parametrize(
    "index,sectors",
    # Word w of 32 lanes occupies 128 bytes: 4 sectors for each of the 4 words of 16 bytes. Eight lanes share a sector
    # of a word if they want the same element of their arrays; otherwise each word takes up to 32 sectors.
    [(lambda t: 0 * t, 16), (lambda t: t // 8, 16), (lambda t: t % 2, 32), (lambda t: t % 16, 128)],
)
def test_local_memory_costs_the_sectors_of_interleaved_words(index, sectors):
    device = Device(NEIGHBOURS)
    places = index(np.arange(32)).astype(np.int32)
    out = np.zeros((32, 2))
    found = device.launch("local", 1, 32, places, out, 16)
    assert (out[:, 0] == places * 13 % 16).all()
    load, store = found.total("local load"), found.total("local store")
    # An H200 counts spilled 8-byte registers like this: a request for each word, four sectors each.
    assert (store.requests, store.sectors, store.ideal_sectors) == (16 * 4, 16 * 16, 16 * 16)
    assert (load.requests, load.sectors, load.ideal_sectors) == (4, sectors, 16)


@pytest.mark.parametrize(
    ("operation", "index", "wavefronts"),
    [
        # A bank serves one lane at a time, even if lanes want the same word.
        ("atomicAdd(&s[{}], 2)", "t", 1),
        ("atomicAdd(&s[{}], 2)", "0", 32),
        ("atomicAdd(&s[{}], 2)", "t / 2", 2),
        ("atomicAdd(&s[{}], 2)", "t % 2", 16),
        ("atomicMax(&s[{}], t)", "2 * t", 2),
        ("atomicExch(&s[{}], t)", "t / 4", 4),
        ("o[99] = atomicAdd(&s[{}], 1)", "0", 32),
        # Adding one without using the result: lanes at one word are served together.
        ("atomicAdd(&s[{}], 1)", "0", 1),
        ("atomicAdd(&s[{}], 1)", "32 * t", 32),
        # Compare-and-swap costs twice as much.
        ("atomicCAS(&s[{}], 0, t)", "t", 2),
        ("atomicCAS(&s[{}], 0, t)", "0", 64),
        # Eight bytes: one half-warp after the other.
        ("atomicCAS((unsigned long long*)s + {}, 0ull, 1ull)", "t", 4),
        ("atomicCAS((unsigned long long*)s + {}, 0ull, 1ull)", "0", 64),
    ],
)
def test_shared_atomics_cost_the_wavefronts_of_an_h200(operation, index, wavefronts):
    """The expected wavefronts are those of an H200, from the records of climb.validation.agreement."""
    body = f"""extern "C" __global__ void k(int* o) {{
    __shared__ __align__(8) int s[1024];
    int t = threadIdx.x;
    for (int i = t; i < 1024; i += 32) s[i] = 0;
    __syncthreads();
    {operation.format(index)};
}}"""
    found = Device(body).launch("k", 1, 32, np.zeros(128, np.int32)).total("shared atomic")
    assert (found.requests, found.wavefronts) == (1, wavefronts)


def test_a_float_atomic_in_shared_memory_is_marked_as_a_loop():
    source = """__global__ void k(float* o) {
    __shared__ float s[32];
    s[threadIdx.x] = 0;
    __syncthreads();
    atomicAdd(&s[threadIdx.x / 2], 1.0f);
    __syncthreads();
    o[threadIdx.x] = s[threadIdx.x];
}"""
    result = run(source, grid=1, block=32, args=[np.zeros(32, np.float32)])
    (mark,) = [mark for mark in result.counters.marks if mark.changes and mark.kind == "shared atomic"]
    assert (mark.line, mark.kind, mark.reason) == (5, "shared atomic", "a loop of compare-and-swap")


def test_cost_of_an_access_does_not_depend_on_how_its_warps_are_divided(monkeypatch: pytest.MonkeyPatch) -> None:
    """Warps of one pattern are counted together; with `FEWEST` above 1 only if all warps have it."""
    rng = np.random.default_rng(5)
    for number in range(60):
        count = int(rng.integers(2, 2000))
        here = np.flatnonzero(rng.random(count) < rng.choice([0.2, 0.97, 1]))
        if number % 3 == 0:
            here = np.flatnonzero(np.arange(count) % 64 >= 2)  # half of the warps lack two lanes
        if not here.size:
            continue
        group = Lanes.listed(here, 256)
        place = here * 4 if number % 2 else rng.permutation(count)[here] * 4
        address = (place + 512 * (here // 32 % 3 == 1)).reshape(1, -1)
        costs = []
        for fewest in (address_patterns.FEWEST, 2):
            monkeypatch.setattr(address_patterns, "FEWEST", fewest)
            address_patterns.forget()
            costs.append(access_cost.access_cost(group, address, 8, 4, cost_model.sectors))
        monkeypatch.undo()
        assert costs[0] == costs[1]
        assert costs[0].lowest == address.min() + 8 and costs[0].highest == address.max() + 8
