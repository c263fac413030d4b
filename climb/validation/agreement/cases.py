"""Access patterns whose cost is compared with Nsight Compute's counts.

Each case is one launch of a kernel of `patterns.cu`, `counts.cu` or `copies.cu`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

PATH = Path(__file__).with_name("patterns.cu")
COUNTS = PATH.with_name("counts.cu")
COPIES = PATH.with_name("copies.cu")
#: Bytes of an access, and the type that is accessed.
TYPES = {1: "unsigned char", 2: "unsigned short", 4: "float", 8: "float2", 16: "float4"}
THREADS = 64
GRID, BLOCK = (2,), (THREADS,)
#: Number of elements that the widest pattern reaches.
ELEMENTS = THREADS * 2 * 33 + 64
#: Bytes of static shared memory that every GPU has; patterns that need more are left out.
SHARED_LIMIT = 48 * 1024


@dataclass(frozen=True)
class Case:
    """One launch of one kernel. Arrays in `args` are copied to the device, scalars are passed as they are."""

    label: str
    kernel: str
    args: tuple[np.ndarray | np.generic, ...]
    shared: int = 0
    grid: tuple[int, ...] = GRID
    block: tuple[int, ...] = BLOCK
    path: Path = PATH


def where(
    step: int = 1, flip: int = 0, shift: int = 0, mask: int = -1, offset: int = 0, take: int = 0, taken: int = 0
) -> np.void:
    """The struct `Where` of `patterns.cu`: which lanes run, and the element that each accesses."""
    return np.array([step, flip, shift, mask, offset, take, taken], np.int32).view("V28")[0]


#: Patterns of 32 lanes by name, for accesses of any width.
SHAPES: dict[str, dict[str, int]] = {
    "contiguous": {},
    "stride 2": {"step": 2},
    "stride 3": {"step": 3},
    "stride 4": {"step": 4},
    "stride 8": {"step": 8},
    "stride 16": {"step": 16},
    "stride 32": {"step": 32},
    "stride 33": {"step": 33},
    "one element": {"step": 0},
    "one element, offset 5": {"step": 0, "offset": 5},
    "pairs share": {"shift": 1},
    "fours share": {"shift": 2},
    "eights share": {"shift": 3},
    "halves share": {"mask": 15},
    "quarters share": {"mask": 7},
    "two elements alternate": {"mask": 1},
    "two elements 32 apart alternate": {"step": 32, "mask": 32},
    "pairs share, stride 32": {"step": 16, "mask": ~31},
    "halves share, stride 2": {"step": 2, "mask": 31},
    "permuted by xor 5": {"flip": 5},
    "permuted by xor 21": {"flip": 21},
    "permuted by 7": {"step": 7, "mask": 31},
    "reversed": {"flip": 31},
    "offset 1": {"offset": 1},
    "offset 3": {"offset": 3},
    "lanes 0 to 15": {"take": 16},
    "lanes 8 to 15": {"take": 24, "taken": 8},
    "even lanes": {"take": 1},
    "every fourth lane": {"take": 3},
    "every fourth lane, stride 8": {"take": 3, "step": 8},
    "lane 7": {"take": 31, "taken": 7},
    "even lanes, stride 16": {"take": 1, "step": 16},
}
#: The patterns that atomic operations are measured on.
CONTENDED = (
    "contiguous", "stride 2", "stride 32", "one element", "pairs share", "fours share", "halves share",
    "two elements alternate", "permuted by 7", "even lanes", "lane 7", "offset 1", "pairs share, stride 32",
)  # fmt: skip


def _data(width: int, elements: int = ELEMENTS) -> np.ndarray:
    return np.random.default_rng(width).integers(0, 256, elements * width, dtype=np.uint8)


def _zeros(width: int, elements: int = ELEMENTS) -> np.ndarray:
    return np.zeros(elements * width, np.uint8)


def _moves() -> Iterator[Case]:
    out = THREADS * 2
    for width, kind in TYPES.items():
        words = (THREADS * 33 + 64) * width // 4 + 16
        fits = words * 4 <= SHARED_LIMIT
        for name, shape in SHAPES.items():
            what, lanes = f"{width} bytes, {name}", where(**shape)
            yield Case(f"global load, {what}", f"global_load<{kind}>", (_data(width), _zeros(width, out), lanes))
            yield Case(f"global store, {what}", f"global_store<{kind}>", (_data(width, 1), _zeros(width), lanes))
            if fits:
                args = (_zeros(width, out), lanes, np.int32(words))
                yield Case(f"shared load, {what}", f"shared_load<{kind}>", args, words * 4)
                args = (_data(width), _zeros(4, out), lanes)
                yield Case(f"shared store, {what}", f"shared_store<{kind}>", args, words * 4)


def _atomics() -> Iterator[Case]:
    out = THREADS * 2
    for name in CONTENDED:
        lanes = where(**SHAPES[name])
        for kind, width in (("int", 4), ("float", 4), ("unsigned long long", 8), ("double", 8)):
            yield Case(f"global add, {kind}, {name}", f"global_add<{kind}>", (_zeros(width), lanes))
        for kind, width in (("int", 4), ("float", 4), ("unsigned long long", 8)):
            args = (_zeros(width), _zeros(width, out), lanes)
            yield Case(f"global add with result, {kind}, {name}", f"global_add_returns<{kind}>", args)
        yield Case(f"global max, int, {name}", "global_max", (_zeros(4), lanes))
        yield Case(f"global exchange, {name}", "global_exchange", (_zeros(4), _zeros(4, out), lanes))
        for kind, width in (("unsigned", 4), ("unsigned long long", 8)):
            args = (_zeros(width), _zeros(width, out), lanes)
            yield Case(f"global compare, {kind}, {name}", f"global_compare<{kind}>", args)
        for kind, width in (("int", 4), ("float", 4), ("unsigned long long", 8)):
            args = (_zeros(width, out), lanes)
            yield Case(f"shared add, {kind}, {name}", f"shared_add<{kind}>", args, 4096 * width)
        args = (_zeros(4, out), lanes)
        yield Case(f"shared add with result, {name}", "shared_add_returns", args, 16384)
        yield Case(f"shared max, {name}", "shared_max", args, 16384)
        for kind, width in (("unsigned", 4), ("unsigned long long", 8)):
            args = (_zeros(width, out), lanes)
            yield Case(f"shared compare, {kind}, {name}", f"shared_compare<{kind}>", args, 4096 * width)


#: Accesses scattered over a table, as a histogram's are: the factor of a multiplicative hash, and the table's size.
SCATTERED = {f"scattered {n}, {size} elements": {"step": step, "shift": 7, "mask": size - 1}
             for size in (16, 64, 256, 1024) for n, step in enumerate((40503, 60493, 28657))}  # fmt: skip


def _counts() -> Iterator[Case]:
    for name, shape in {**{name: SHAPES[name] for name in CONTENDED}, **SCATTERED}.items():
        args = (_zeros(4, THREADS * 2), where(**shape))
        yield Case(f"shared count, {name}", "shared_count", args, 16384, path=COUNTS)
        yield Case(f"shared exchange, {name}", "shared_exchange", args, 16384, path=COUNTS)
        if name in SCATTERED:
            yield Case(f"shared max, {name}", "shared_max", args, 16384)
            yield Case(f"shared compare, unsigned, {name}", "shared_compare<unsigned>", args, 16384)


def _locals() -> Iterator[Case]:
    for width, kind in TYPES.items():
        for name in ("one element", "contiguous", "stride 3", "even lanes", "pairs share", "lane 7"):
            args = (_data(width, 16), _zeros(width, THREADS * 2), where(**SHAPES[name]))
            yield Case(f"local array, {width} bytes, {name}", f"local_array<{kind}, 16>", args)


#: The lanes that copy, (lane & keep) == kept; the others store zeros.
KEEPING = {"even lanes": (1, 0), "lanes 0 to 15": (16, 0), "lane 7": (31, 7), "every fourth": (3, 0), "no lane": (0, 1)}
COPIED = ("contiguous", "offset 1", "offset 3", "one element", "stride 2", "stride 3", "pairs share", "permuted by 7",
          "permuted by xor 5", "lanes 0 to 15", "even lanes")  # fmt: skip


def _copies() -> Iterator[Case]:
    for width, kind in TYPES.items():
        if width < 4:
            continue
        for name in COPIED:
            args = (_data(width), _zeros(width, THREADS * 2), where(**SHAPES[name]))
            label = f"global load by copy, {width} bytes, {name}"
            whole = (*args, np.int32(0), np.int32(0))
            yield Case(label, f"global_copy<{kind}, false>", whole, path=COPIES)
            for keeping, (keep, kept) in KEEPING.items():
                part = (*args, np.int32(keep), np.int32(kept))
                yield Case(f"{label}, of {keeping}", f"global_copy<{kind}, true>", part, path=COPIES)


def _other_copies() -> Iterator[Case]:
    for name in COPIED:
        args = (_data(16), _zeros(16, THREADS * 2), where(**SHAPES[name]))
        for other, how in (("false", "through the cache"), ("true", "to scattered places")):
            for keeping, (keep, kept) in {"all": (0, 0), "lanes 0 to 15": (16, 0), "even lanes": (1, 0)}.items():
                some = "false" if keeping == "all" else "true"
                label = f"global load by copy, 16 bytes {how}, {name}, of {keeping}"
                part = (*args, np.int32(keep), np.int32(kept))
                yield Case(label, f"global_copy_other<{some}, {other}>", part, path=COPIES)


def crowd(number: int, words: int) -> np.ndarray:
    """Return int32 (2 * THREADS,): a random word below `words` for each lane of two blocks, more often one of the
    first."""
    lane = np.arange(2 * THREADS, dtype=np.uint64)
    mixed = (lane + np.uint64(1 + 1000 * number)) * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ mixed >> np.uint64(29)) * np.uint64(0xBF58476D1CE4E5B9)
    share = (mixed >> np.uint64(40)).astype(np.float64) / 2**24
    return (words * share**3).astype(np.int32)


def _crowds() -> Iterator[Case]:
    """Yield atomics at random places: the turn in which a lane is served depends on all the other lanes."""
    for words in (16, 64, 256, 1024, 16384):
        for number in range(6):
            table = crowd(number, words)
            for kind, width in (("unsigned", 4), ("unsigned long long", 8)):
                sums, old = _zeros(width, 16384), _zeros(width, 2 * THREADS)
                label = f"{kind}, crowd {number} in {words} words"
                yield Case(f"global add, {label}", f"global_table<{kind}>", (table, sums), path=COUNTS)
                if number < 2:
                    args = (table, sums, old)
                    yield Case(f"global add with result, {label}", f"global_table_returns<{kind}>", args, path=COUNTS)


def cases() -> tuple[Case, ...]:
    """Return all launches, in order."""
    return (*_moves(), *_atomics(), *_locals(), *_counts(), *_copies(), *_crowds(), *_other_copies())
