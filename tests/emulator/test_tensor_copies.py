"""Tensor copies against NumPy: types, ranks, swizzles, boxes partly outside, element strides, reductions."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import tensor_boxes
from tensor_boxes import BITS, Case, emulate

from climb.emulator import AsyncMisuse, Misaligned, Tensor, run
from climb.emulator.memory.tensor_map import TensorMap, TensorMapError, decode, encode


def _view(case: Case, data: np.ndarray) -> np.ndarray:
    """The tensor as an array, outermost dimension first."""
    kind = np.dtype(BITS[case.dtype])
    strides = (*reversed(case.strides), kind.itemsize)
    return np.ndarray(tuple(reversed(case.dims)), kind, data, strides=strides)


def _positions(case: Case) -> list[tuple[tuple[int, ...], bool, int]]:
    """For each element of the box: its index in the tensor, whether that is inside, and its byte in shared memory."""
    steps = (1, *(case.steps or (1,) * case.rank)[1:])
    tile = [-(-extent // step) for extent, step in zip(case.box, steps, strict=True)]
    size, out = np.dtype(BITS[case.dtype]).itemsize, []
    for number, index in enumerate(np.ndindex(*reversed(tile))):
        at = [s + i * step for s, i, step in zip(case.start, reversed(index), steps, strict=True)]
        inside = all(0 <= a < d for a, d in zip(at, case.dims, strict=True))
        row, column = divmod(number, tile[0])
        byte = case.offset + row * max(tile[0] * size, case.swizzle) + column * size  # narrow rows have gaps
        chunks = case.swizzle // 16
        if chunks:  # the chunk of 16 bytes, exclusive-ored with the number of the 128-byte row
            row, chunk = byte // 128, byte // 16 % 8
            byte = row * 128 + (chunk ^ row % chunks) * 16 + byte % 16
        out.append((tuple(reversed(at)), inside, byte))
    return out


def _loaded(case: Case) -> np.ndarray:
    whole, _ = case.contents()
    kind = np.dtype(BITS[case.dtype])
    tensor, out = _view(case, whole), np.full(case.shared_bytes, 0xEE, np.uint8)
    fill = np.full(kind.itemsize // 2, 0x7FF7, np.uint16)
    for index, inside, byte in _positions(case):
        value = tensor[index].tobytes() if inside else fill.tobytes() if case.nan_fill else bytes(kind.itemsize)
        out[byte : byte + kind.itemsize] = np.frombuffer(value, np.uint8)
    return out


_REDUCE = {
    "store": lambda old, new: new, "add": lambda old, new: old + new, "min": min, "max": max,
    "inc": lambda old, new: 0 if old >= new else old + 1,
    "dec": lambda old, new: new if old == 0 or old > new else old - 1,
    "and": lambda old, new: old & new, "or": lambda old, new: old | new, "xor": lambda old, new: old ^ new,
}  # fmt: skip


def _stored(case: Case) -> np.ndarray:
    whole, box = case.contents()
    kind = np.dtype(BITS[case.dtype])
    tensor, shared = _view(case, whole), np.zeros(case.shared_bytes, np.uint8)
    shared[: box.size] = box

    def number(value: np.ndarray) -> float:
        return (np.uint32(value) << 16).view("f4") if case.dtype == "bfloat16" and case.how != "store" else value

    with np.errstate(over="ignore"):
        for index, inside, byte in _positions(case):
            if not inside:
                continue
            new = _REDUCE[case.how](number(tensor[index]), number(shared[byte:][: kind.itemsize].view(kind)[0]))
            if case.dtype == "bfloat16" and case.how != "store":
                bits = int(np.float32(new).view("u4"))
                new = bits + 0x7FFF + (bits >> 16 & 1) >> 16
            tensor[index] = new
    return whole


@pytest.mark.parametrize("case", tensor_boxes.LOADS, ids=lambda case: case.name)
def test_load_fills_shared_memory(case: Case) -> None:
    assert (emulate(case) == _loaded(case)).all()


@pytest.mark.parametrize("case", tensor_boxes.STORES, ids=lambda case: case.name)
def test_store_changes_the_tensor(case: Case) -> None:
    assert (emulate(case) == _stored(case)).all()


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"start": (-8, 4)}, r"a store of a box that starts at \(-8, 4\): a GPU stops at negative coordinates"),
        ({"how": "or", "dtype": "int64"}, "there is no reduction or of int64"),
    ],
)
def test_what_stops_an_h200_is_a_fault(change: dict, says: str) -> None:
    """It was an illegal instruction there."""
    case = replace(Case("outside", "float16", (40, 6), (16, 4), (32, 4), "store"), **change)
    with pytest.raises(AsyncMisuse, match=says):
        emulate(case)


def test_a_sum_that_is_nan_is_the_canonical_nan() -> None:
    case = next(each for each in tensor_boxes.SPECIALS if each.name == "special add float32")
    found = emulate(case).view(np.uint32)
    before = case.contents()[0].view(np.uint32)
    nan = np.isnan(found.view(np.float32)) & (found != before)
    assert nan.any() and (found[nan] == 0x7FFFFFFF).all()


GOOD = TensorMap("float32", 1 << 20, (100, 60), (400,), (32, 16), (1, 1), 128)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"dtype": "float8"}, "dtype"), ({"dims": ()}, "0 dimensions"), ({"dims": (1,) * 6}, "6 dimensions"),
        ({"dims": (0, 60)}, "2^32"), ({"address": 8}, "multiple of 16"), ({"strides": (404,)}, "multiple of 16"),
        ({"strides": (1 << 40,)}, "below 2^40"), ({"strides": (400, 800)}, "strides has 2 entries"),
        ({"box": (32, 257)}, "1 to 256"), ({"box": (0, 16)}, "1 to 256"), ({"box": (30, 16)}, "multiple of 16"),
        ({"box": (36, 16)}, "at most 128"), ({"element_strides": (1, 9)}, "1 to 8"), ({"swizzle": 16}, "swizzle is 16"),
        ({"nan_fill": True, "dtype": "int32"}, "only in a tensor of floats"), ({"l2_promotion": 32}, "l2_promotion"),
    ],
)  # fmt: skip
def test_encoding_refuses_what_the_driver_refuses(change: dict, words: str) -> None:
    with pytest.raises(TensorMapError, match=words.replace("^", r"\^")):
        encode(replace(GOOD, **change))


def test_encoding_is_read_back_and_tampering_is_noticed() -> None:
    data = bytearray(encode(GOOD))
    assert decode(bytes(data)) == GOOD and len(data) == 128
    for byte in range(128):
        data[byte] ^= 1
        assert decode(bytes(data)) is None
        data[byte] ^= 1


#: Bits of float32 in global memory, and what an H200's copy engine left of them in shared memory as TFLOAT32.
ROUNDED_BY_AN_H200 = {
    0x00001000: 0x00000000, 0x00001001: 0x00002000, 0x00003000: 0x00004000, 0x00005000: 0x00004000,
    0x007FFFFF: 0x00800000, 0x3F800FFF: 0x3F800000, 0x3F801000: 0x3F800000, 0x3F801001: 0x3F802000,
    0x3F803000: 0x3F804000, 0xBF805000: 0xBF804000, 0x7F7FD000: 0x7F7FC000, 0x7F7FFFFF: 0x7F800000,
    0x7F800000: 0x7F800000, 0xFF800000: 0xFF800000, 0x7F800001: 0x7FFFE000, 0x7FC00000: 0x7FFFE000,
}  # fmt: skip
HOPPER = (f"-I{Path(__file__).parents[2] / 'kernels' / 'common' / 'hopper'}",)
LOAD = """
#include "tma.cuh"
extern "C" __global__ void load(const __grid_constant__ TensorMap map, unsigned* to)
{
    __shared__ __align__(128) unsigned box[16];
    __shared__ Barrier full;
    if (threadIdx.x == 0) {
        mbarrier_init(&full, 1);
        fence_mbarrier_init();
        mbarrier_arrive_expect(&full, sizeof(box));
        tma_load(box, map, 0, 0, &full);
    }
    __syncthreads();
    mbarrier_wait(&full, 0);
    to[threadIdx.x] = box[threadIdx.x];
}"""


@pytest.mark.parametrize("dtype", ["tfloat32", "float32_ftz"])
def test_copies_round_as_an_h200_does(dtype: str) -> None:
    bits = np.array([list(ROUNDED_BY_AN_H200)], np.uint32)
    out = np.zeros(bits.size, np.uint32)
    run(LOAD, "load", grid=1, block=16, args=[Tensor(bits, (1, 16), dtype=dtype), out], arch="sm_90a", options=HOPPER)
    kept = dict.fromkeys(ROUNDED_BY_AN_H200) if dtype == "float32_ftz" else ROUNDED_BY_AN_H200
    assert out.tolist() == [after if after is not None else before for before, after in kept.items()]


def test_copies_that_do_not_fit_the_tensor_map_are_faults() -> None:
    case = tensor_boxes.LOADS[0]
    with pytest.raises(Misaligned, match="no multiple of 128"):
        emulate(replace(case, offset=16))
    with pytest.raises(AsyncMisuse, match=r"starts 17 bytes from the beginning of a row \(coordinate 17\)"):
        emulate(replace(case, start=(17, 0)))
    with pytest.raises(AsyncMisuse, match="a copy with 2 coordinates, but the tensor map has 3 dimensions"):
        _wrong_rank(case)


def _wrong_rank(case: Case) -> None:
    class Wrong(Case):
        def tensor(self, address: int) -> TensorMap:
            return TensorMap("uint8", address, (16, 4, 2), (16, 64), (16, 4, 1), (1, 1, 1))

    emulate(Wrong(**{name: getattr(case, name) for name in Case.__dataclass_fields__}))
