"""mma.sp: what metadata mean, which lanes hold them, and the faults of wrong ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from harness import Device

from climb.emulator import InvalidMetadata, PendingProduct, UnsupportedInstruction
from climb.emulator.runtime.tensor_cores import sparsity
from climb.emulator.runtime.tensor_cores.arithmetic import Types, warp_product

# Products of a 16 x 32 matrix, stored as half, with a 32 x 8 matrix of halves, by warps.
KERNEL = r"""
template <int kSelector>
__global__ void multiply(const unsigned* a, const unsigned* b, const unsigned* e, float* d)
{
    int t = threadIdx.x, g = t % 32 / 4, l = t % 4;
    float D[4] = {};
    asm volatile("mma.sp@ORDER@.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9, %10, %11}, {%0, %1, %2, %3}, %12, %13;"
        : "+f"(D[0]), "+f"(D[1]), "+f"(D[2]), "+f"(D[3])
        : "r"(a[g * 8 + l]), "r"(a[(g + 8) * 8 + l]), "r"(a[g * 8 + l + 4]), "r"(a[(g + 8) * 8 + l + 4]),
          "r"(b[g * 16 + l]), "r"(b[g * 16 + l + 4]), "r"(b[g * 16 + l + 8]), "r"(b[g * 16 + l + 12]),
          "r"(e[t]), "n"(kSelector));
    for (int i = 0; i < 4; ++i) d[(g + i / 2 * 8) * 8 + l * 2 + i % 2] = D[i];
}
"""


@pytest.fixture(scope="module")
def device() -> dict[bool, Device]:
    """The kernel, by whether its metadata must be ordered."""
    names = ["multiply<0>", "multiply<1>"]
    return {
        ordered: Device(KERNEL.replace("@ORDER@", "::ordered_metadata" * ordered), names) for ordered in (False, True)
    }


def operands() -> tuple[np.ndarray, np.ndarray]:
    """The stored half of A (16 x 16), and B by columns (8 x 32), of small integers."""
    rng = np.random.default_rng(5)
    return tuple(rng.integers(-4, 5, shape).astype(np.float16) for shape in ((16, 16), (8, 32)))


def dense(stored: np.ndarray, words: np.ndarray, selector: int) -> np.ndarray:
    """A with its zeros, from metadata registers as the ISA draws them for k = 32: lanes 4 g + 2 selector + (0, 1)."""
    out = np.zeros((16, 32), np.float16)
    for row in range(16):
        for quad in range(8):
            lane = row % 8 * 4 + 2 * selector + quad // 4
            nibble = int(words[lane]) >> 16 * (row // 8) + 4 * (quad % 4) & 15
            for index, at in enumerate((nibble & 3, nibble >> 2)):
                out[row, 4 * quad + at] = stored[row, 2 * quad + index]
    return out


def launch(device: Device, selector: int, words: np.ndarray) -> tuple[np.ndarray, Any]:
    """Multiply. Returns D and the counters."""
    a, b = operands()
    d = np.zeros((16, 8), np.float32)
    return d, device.launch(f"multiply<{selector}>", 1, 32, a, b, words.astype(np.uint32), d)


@pytest.mark.parametrize("selector", [0, 1])
@pytest.mark.parametrize("ordered", [False, True])
def test_metadata_of_the_selected_lanes_choose_the_elements(device: dict, ordered: bool, selector: int) -> None:
    rng = np.random.default_rng(selector)
    nibbles = rng.choice([0x4, 0x8, 0xC, 0x9, 0xD, 0xE] if ordered else [0x1, 0x4, 0x2, 0x6, 0x9, 0xB], (32, 8))
    words = (nibbles.astype(np.uint64) << np.arange(0, 32, 4, dtype=np.uint64)).sum(axis=1)
    other = np.arange(32) % 4 // 2 != selector
    words[other] = 0  # equal indices, in lanes that are not selected
    d, counters = launch(device[ordered], selector, words)
    a, b = operands()
    assert (d == dense(a, words, selector).astype(np.float64) @ b.astype(np.float64).T).all()
    (line,) = counters.product_lines
    assert (line.instruction, line.instructions) == ("mma.sp.m16n8k32.f32.f16.f16.f32", 1)
    assert line.flops == 2 * 16 * 8 * 32 // 2  # the other half of the products is not computed


GOOD = np.full(32, 0x44444444)


@pytest.mark.parametrize("nibble", [0x0, 0x5, 0xA, 0xF])
def test_an_element_named_twice_is_a_fault(device: dict, nibble: int) -> None:
    words = GOOD.copy()
    words[21] = 0x44444444 & ~(15 << 20) | nibble << 20  # lane 21: group 5, its second lane; row 13, quad 4 + 1
    with pytest.raises(InvalidMetadata, match=f"bits 20 to 23 of lane 21 are 0b{nibble:04b}.*twice") as caught:
        launch(device[False], 0, words)
    error = caught.value
    assert (error.row, error.nibble, error.value) == (13, 5, nibble)
    assert error.where.line == 12 and error.where.thread == (21, 0, 0)


def test_descending_indices_are_a_fault_only_where_order_is_promised(device: dict) -> None:
    words = GOOD.copy()
    words[0] = 0x44444441
    d, _ = launch(device[False], 0, words)
    a, b = operands()
    assert (d == dense(a, words, 0).astype(np.float64) @ b.astype(np.float64).T).all()
    with pytest.raises(InvalidMetadata, match="ordered_metadata needs ascending indices"):
        launch(device[True], 0, words)


def test_the_wrong_selector_finds_metadata_that_nobody_wrote(device: dict) -> None:
    words = np.where(np.arange(32) % 4 < 2, GOOD, 0)
    launch(device[True], 0, words)
    with pytest.raises(InvalidMetadata, match=r"(?s)lane 2 are 0b0000.*look at: .*the sparsity selector"):
        launch(device[True], 1, words)


@pytest.mark.parametrize("selector", ["2", "-1"])
def test_selectors_that_a_shape_does_not_have_are_refused(selector: str) -> None:
    source = KERNEL.replace("@ORDER@", "").replace("%13;", f"{selector};").replace(', "n"(kSelector)', "")
    with pytest.raises(UnsupportedInstruction, match="selector must be one of the constants 0, 1"):
        Device(source, ["multiply<0>"]).kernel("multiply<0>")


@pytest.mark.parametrize(
    "kind,depth,lanes",
    [("f16", 16, 1), ("f16", 32, 2), ("tf32", 8, 1), ("tf32", 16, 2), ("s8", 32, 2), ("s8", 64, 4), ("e4m3", 64, 4)],
)
def test_every_nibble_has_its_own_bits(kind: str, depth: int, lanes: int) -> None:
    for selector in range(4 // lanes):
        lane, shift = sparsity.places(kind, depth, selector)
        assert len(np.unique(lane * 32 + shift)) == lane.size == 8 * lanes * 8
        assert set((lane % 4).ravel()) == set(range(selector * lanes, (selector + 1) * lanes))


@pytest.mark.parametrize("kinds", [("f16", "f16", "f32"), ("tf32", "tf32", "f32"), ("s8", "s8", "s32")])
def test_products_with_zeros_in_place_equal_those_row_by_row(kinds: tuple[str, str, str]) -> None:
    """The emulator takes the quick way if all of B is finite; both add up the same products."""
    rng = np.random.default_rng(8)
    word, low, high, shift = {"f16": ("u2", 0x3000, 0x4400, 0), "tf32": ("u4", 0x3E00, 0x40FF, 16),
                              "s8": ("u1", 0, 256, 0)}[kinds[0]]  # fmt: skip
    a, b = (rng.integers(low, high, shape).astype(word) << shift for shape in ((3, 16, 16), (3, 32, 8)))
    c = rng.integers(0, 1 << 30, (3, 16, 8)).astype("u4")
    at = np.sort(rng.permuted(np.tile(np.arange(4), (3, 16, 8, 1)), axis=3)[..., :2], axis=3)
    at = (at + 4 * np.arange(8)[:, None]).reshape(3, 16, 16)
    types = Types(*kinds[:2], kinds[2], kinds[2])
    quick = sparsity.sparse_product(warp_product, a, b, c, at, types)
    assert (quick == sparsity._row_by_row(warp_product, a, b, c, at, types)).all()
    assert np.unique(quick).size > 300


def test_infinities_that_no_element_meets_do_not_count(device: dict) -> None:
    words = np.where(np.arange(32) % 4 < 2, GOOD, 0)  # elements 0 and 1 of each four
    a, b = operands()
    want = dense(a, words, 0).astype(np.float64) @ b.astype(np.float64).T
    b[:, 2::4], b[:, 3::4] = np.inf, np.nan
    d = np.zeros((16, 8), np.float32)
    device[True].launch("multiply<0>", 1, 32, a, b, words.astype(np.uint32), d)
    assert (d == want).all()


# One warpgroup: products of 64 x 32 and 32 x 8 halves, whose metadata, or whose A in registers, change in each round.
IN_FLIGHT = r"""
extern "C" __global__ void rounds(const unsigned* given, float* out, int count)
{
    __shared__ __align__(1024) unsigned s[1024];
    int t = threadIdx.x;
    for (int i = t; i < 1024; i += 128) s[i] = 0;
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    unsigned long long at = (unsigned)__cvta_generic_to_shared(s) >> 4 | 8ull << 16 | 16ull << 32;
    float D[4] = {};
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
    for (int i = 0; i < count; ++i) {
        unsigned x = given[i * 128 + t];
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
        asm volatile("PRODUCT" : "+f"(D[0]), "+f"(D[1]), "+f"(D[2]), "+f"(D[3])
                               : "r"(x), "l"(at), "r"(0x44444444u) : "memory");
        asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
        asm volatile("wgmma.wait_group.sync.aligned OPEN;" ::: "memory");
    }
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
    for (int i = 0; i < 4; ++i) out[t * 4 + i] = D[i];
}
"""
READ_LATE = {
    "metadata": "wgmma.mma_async.sp.sync.aligned.m64n8k32.f32.f16.f16 {%0,%1,%2,%3}, %5, %5, %4, 0, 1, 1, 1, 0, 0;",
    "a": "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0,%1,%2,%3}, {%4,%4,%4,%4}, %5, 1, 1, 1, 0;",
    "a of a sparse product": "wgmma.mma_async.sp.sync.aligned.m64n8k32.f32.f16.f16 "
    "{%0,%1,%2,%3}, {%4,%4,%4,%4}, %5, %6, 0, 1, 1, 1, 0;",
}


@pytest.mark.parametrize("what", READ_LATE)
def test_a_register_that_a_product_reads_keeps_its_value_until_the_wait(what: str) -> None:
    """An H200 multiplied by the next round's metadata where a kernel loaded them before the products were done."""
    given, out = np.full((3, 128), 0x44444444, np.uint32), np.ones(512, np.float32)
    source = IN_FLIGHT.replace("PRODUCT", READ_LATE[what])
    waiting = Device(source.replace("OPEN", "0"), arch="sm_90a")
    waiting.launch("rounds", 1, 128, given, out, np.int32(3))
    assert (out == 0).all()
    early = Device(source.replace("OPEN", "1"), arch="sm_90a")
    early.launch("rounds", 1, 128, given, out, np.int32(1))  # one round changes nothing
    with pytest.raises(PendingProduct, match="writes a register that is read by the matrix product") as caught:
        early.launch("rounds", 1, 128, given, out, np.int32(2))
    assert "given[i * 128 + t]" in caught.value.where.text
