"""The cost of global atomics: compare the rule, lane by lane, and the address tables that were counted on an H200."""

from __future__ import annotations

import numpy as np
import pytest
from harness import Device

from climb.emulator.counters.cost_model import PERIOD, atomic_sectors, sectors
from climb.emulator.simt.warp_layout import INACTIVE
from climb.validation.agreement.cases import crowd


def turns(addresses: list[int]) -> list[set[int]]:
    """The sectors of each turn in which a warp's atomics are served, in plain Python, one lane per address."""
    left, out = list(enumerate(addresses)), []
    while left:
        offers: dict[tuple[int, int], tuple[int, int]] = {}
        lines: dict[int, int] = {}
        for lane, address in left:
            line, bank = address // 128, address // 4 % 32
            group = which_set(line)
            offers.setdefault((group, bank), (lane, address))
            lines.setdefault(group, line)
        served = {lane for lane, address in offers.values() if lines[which_set(address // 128)] == address // 128}
        out.append({address // 32 for lane, address in left if lane in served})
        left = [each for each in left if each[0] not in served]
    return out


def which_set(line: int) -> int:
    """The set of a cache line: two parities of bits of its number."""
    odd = sum(line >> bit & 1 for bit in (0, 2, 4, 5, 7, 9)) % 2
    return odd + 2 * (sum(line >> bit & 1 for bit in (1, 3, 4, 6, 7, 8, 10)) % 2)


def cost(addresses: list[int], width: int = 4) -> int:
    row = np.array([addresses]) - addresses[0]
    return int(atomic_sectors(row, np.array([addresses[0] % PERIOD]), width)[0, 0])


@pytest.mark.parametrize("width", [4, 8])
@pytest.mark.parametrize("words", [4, 24, 100, 256, 3000, 60000])
def test_the_cost_model_serves_random_addresses_in_turns(words: int, width: int) -> None:
    for number in range(12):
        addresses = (7 * 512 + width * crowd(number, words)[:32].astype(int)).tolist()
        assert cost(addresses, width) == sum(map(len, turns(addresses)))


#: The words that a warp accesses, from a base at 512 * n bytes, and an H200's counts of sectors and turns.
COUNTED = (
    # Word 168 is in a line of the same set as words 0 to 31 and in the bank of word 8, and its lane precedes both.
    ([92, 3, 33, 1, 15, 61, 0, 47, 0, 198, 9, 6, 45, 13, 48, 0, 17, 16, 168, 0, 8, 26, 15, 0, 20, 1, 1, 121, 1, 8, 55,
      42], 0, 19, 6),
    ([8, 198, 33, 47, 0, 20, 6, 0, 45, 16, 1, 121, 42, 0, 1, 8, 3, 17, 1, 55, 168, 15, 1, 0, 9, 13, 15, 92, 61, 26, 48,
      0], 0, 17, 6),
    ([0, 39, 120, 9, 107, 252, 245, 82, 220, 1, 13, 25, 5, 15, 1, 1, 198, 0, 39, 53, 40, 86, 2, 223, 34, 148, 113, 92,
      4, 6, 9, 17], 0, 21, 3),
    ([0, 128], 3, 2, 2), ([0, 160], 3, 2, 1), ([0, 288], 3, 2, 2), ([0, 1088], 3, 2, 2), ([0, 32832], 3, 2, 2),
)  # fmt: skip


@pytest.mark.parametrize(("words", "base", "expected", "rounds"), COUNTED)
def test_sectors_equal_the_counts_of_an_h200(words: list[int], base: int, expected: int, rounds: int) -> None:
    """The base was at 0x600 modulo 4096 in the later runs; only its last bits matter."""
    start = 0x7F9540807600 if base else 0
    addresses = [start + 4 * word for word in words]
    found = turns(addresses)
    assert (len(found), sum(map(len, found))) == (rounds, expected)
    relative = np.full((1, 32), INACTIVE)
    relative[0, : len(words)] = np.array(addresses) - addresses[0]
    assert atomic_sectors(relative, np.array([addresses[0] % PERIOD]), 4)[0, 0] == expected


def test_atomics_without_bank_collisions_cost_as_much_as_stores() -> None:
    lane = np.arange(32)
    for row in (4 * lane, 8 * lane, 132 * lane, 4 * (lane ^ 21)):
        start = np.array([96])
        spread = np.unique(row // 4 % 32).size == 32
        same = atomic_sectors(row.reshape(1, -1), start, 4)[0, 0] == sectors(row.reshape(1, -1), start, 4)[0, 0]
        assert same or not spread


def test_a_launch_counts_sectors_by_its_addresses() -> None:
    """Warps with many patterns at once, and warps with one pattern at many places."""
    source = """extern "C" __global__ void k(const int* table, int* out, int step) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    atomicAdd(&out[table[i % 128] + blockIdx.x * step], 1);
}"""
    for step in (0, 96):
        table, out = crowd(3, 256), np.zeros(4096, np.int32)
        device = Device(source)
        held = device.memory.allocate(out.nbytes, "out")
        found = device.launch("k", 12, 64, table, held, step).total("global atomic")
        want = 0
        for warp in range(24):
            words = table[warp * 32 % 128 :][:32] + warp // 2 * step
            want += sum(map(len, turns((held.address + 4 * words.astype(int)).tolist())))
        assert (found.requests, found.sectors) == (24, want)
