"""System calls of a kernel: printf, assertions, traps and clocks."""

from __future__ import annotations

import math
import re
import struct
from typing import NoReturn

import numpy as np

from ..checks.faults import place_of
from ..errors import AssertionFailed, OutOfBounds, Trap, UnsupportedInstruction, Where
from ..memory.device_memory import LOCAL_WINDOW, PARAM_WINDOW, SHARED_WINDOW
from ..simt.groups import Group
from ..simt.launch_counts import LaunchCounts
from ..simt.site import Site

TICK = 1000  # a clock advances by this much at each reading
LIMIT = 4096  # outputs of one launch that are shown; a GPU too keeps only as many as fit into its buffer
LONGEST = 4096  # bytes after which a string without an end is cut off
_CONVERSION = re.compile(r"%([-+ #0]*)(\*|\d+)?(?:\.(\*|\d*))?(hh|h|ll|l|z|j|t)?(.)", re.S)
_WIDE = ("ll", "l", "z", "j", "t")
_NARROW = {"h": 16, "hh": 8}


class _Reader:
    """Reads the memory of one lane at generic addresses."""

    def __init__(self, group: Group, site: Site, lane: int) -> None:
        self.group, self.site, self.lane = group, site, lane
        lanes = group.lanes
        self.block, self.thread = (
            int(np.broadcast_to(each, lanes.shape).ravel()[lane]) for each in (lanes.block, lanes.thread)
        )

    def read(self, address: int, nbytes: int) -> bytes:
        """Return the bytes at an address. Raises OutOfBounds."""
        batch = self.group.batch
        if LOCAL_WINDOW <= address < PARAM_WINDOW:
            data = batch.local[self.block * batch.threads + self.thread, : batch.local_bytes]
            start = address - LOCAL_WINDOW
        elif SHARED_WINDOW <= address < LOCAL_WINDOW:
            data, start = batch.shared[self.block, : batch.shared_bytes], address - SHARED_WINDOW
        else:
            found = batch.find(address, nbytes)
            data, start = (found.data, address - found.address) if found else (np.zeros(0, np.uint8), 0)
        if start + nbytes > data.size:
            raise OutOfBounds(
                f"out of bounds: printf or assert reads {nbytes} bytes at {address:#x}",
                self.where(),
                address=address,
                allocation=self.group.batch.nearest(address),
                distance=None,
            )
        return data[start : start + nbytes].tobytes()

    def string(self, address: int) -> str:
        """Return the zero-terminated text at an address."""
        out = bytearray()
        while len(out) < LONGEST:
            (letter,) = self.read(address + len(out), 1)
            if not letter:
                break
            out.append(letter)
        return out.decode("utf-8", "replace")

    def where(self) -> Where:
        """Return the place of this lane, for errors."""
        bad = np.zeros(self.group.lanes.shape, np.bool_)
        bad.ravel()[self.lane] = True
        return place_of(self.group, self.site, bad)


class _Values:
    """The arguments of a printf, one after the other, each aligned to its size."""

    def __init__(self, reader: _Reader, address: int) -> None:
        self.reader, self.address, self.count, self.offset = reader, address, 0, 0

    def next(self, code: str) -> int | float:
        """Return the next value; `code` is its `struct` type."""
        size = struct.calcsize(code)
        start = -(-self.offset // size) * size
        self.offset, self.count = start + size, self.count + 1
        return struct.unpack("<" + code, self.reader.read(self.address + start, size))[0]


def _integer(value: int, flags: str, width: str, precision: str | None, letter: str) -> str:
    if precision is not None:
        flags = flags.replace("0", "")
        if not int(precision or 0) and not value:
            return f"%{flags.replace('#', '')}{width}s" % ("+" if "+" in flags and letter in "di" else "")
    if letter not in "di":
        flags = flags.replace("+", "").replace(" ", "")
    if letter == "o" and "#" in flags:
        flags = flags.replace("#", "")
        digits = len(f"{value:o}") + bool(value)
        precision = str(max(int(precision or 0), digits))
    elif not value:
        flags = flags.replace("#", "")
    return f"%{flags}{width}{'' if precision is None else '.' + (precision or '0')}{letter}" % value


def _floating(value: float, flags: str, width: str, precision: str | None, letter: str) -> str:
    if math.isfinite(value):
        return f"%{flags}{width}{'' if precision is None else '.' + (precision or '0')}{letter}" % value
    sign = "-" if math.copysign(1, value) < 0 else "+" if "+" in flags else " " if " " in flags else ""
    text = sign + ("nan" if math.isnan(value) else "inf")
    left = "-" if "-" in flags else ""
    return f"%{left}{width}s" % (text.upper() if letter.isupper() else text)


def _format(form: str, values: _Values) -> str:
    """Format the text, as in the CUDA C++ Programming Guide, "Formatted Output", and C17, 7.21.6.1."""

    def one(match: re.Match) -> str:
        flags, width, precision, size, letter = match.groups()
        if letter == "%":
            return "%"
        width = width or ""
        if width == "*":
            number = values.next("i")
            flags, width = flags + "-" * (number < 0), str(abs(number))
        if precision == "*":
            number = values.next("i")
            precision = str(number) if number >= 0 else None
        if letter in "diuxXo":
            signed = letter in "di"
            value = values.next(("q" if signed else "Q") if size in _WIDE else ("i" if signed else "I"))
            if size in _NARROW:
                bits = _NARROW[size]
                value &= (1 << bits) - 1
                value -= (1 << bits) * (signed and value >> (bits - 1))
            return _integer(value, flags, width, precision, "d" if letter in "iu" and signed else letter)
        if letter in "feEgGF" and size in (None, "l"):
            return _floating(values.next("d"), flags, width, precision, letter)
        left = "-" if "-" in flags else ""
        if letter == "c" and size is None:
            return f"%{left}{width}s" % chr(values.next("i") & 0xFF)
        if letter == "p" and size is None:
            return f"%{left}{width}s" % hex(values.next("Q"))
        if letter == "s" and size is None:
            text = values.reader.string(values.next("Q"))
            return f"%{left}{width}s" % (text if precision is None else text[: int(precision or 0)])
        raise UnsupportedInstruction(f"printf: {match.group()!r} is not supported", values.reader.where())

    return _CONVERSION.sub(one, form)


def print_formatted(group: Group, site: Site, form: np.ndarray, values: np.ndarray) -> np.ndarray:
    """vprintf. Returns the number of arguments; the output is kept until the launch ends."""
    lanes, batch = group.lanes, group.batch
    forms, places = (np.broadcast_to(each, lanes.shape).ravel() for each in (form, values))
    counts = np.zeros(lanes.shape, np.uint64)
    printed = batch.counts.printed
    event = batch.counts.print_events
    batch.counts.print_events += 1
    for lane in range(lanes.count):
        if len(printed) >= LIMIT:
            batch.counts.unprinted += lanes.count - lane
            break
        reader = _Reader(group, site, lane)
        arguments = _Values(reader, int(places[lane]))
        text = _format(reader.string(int(forms[lane])), arguments)
        counts.ravel()[lane] = arguments.count
        printed.append((batch.start + reader.block, event, reader.thread, text))
    return counts


def print_output(counts: LaunchCounts) -> None:
    """Print the output of a launch: block by block, in order of time, and by thread for outputs at the same time."""
    for *_, text in sorted(counts.printed, key=lambda each: each[:3]):
        print(text, end="")
    if counts.unprinted:
        print(f"\n(and {counts.unprinted} more outputs of printf; a launch shows at most {LIMIT})")
    counts.printed, counts.unprinted = [], 0


def _everyone(group: Group) -> np.ndarray:
    return np.ones(group.lanes.shape, np.bool_)


def fail(group: Group, site: Site, message: np.ndarray) -> NoReturn:
    """Raise AssertionFailed."""
    expression = _Reader(group, site, 0).string(int(message.ravel()[0]))
    raise AssertionFailed(f"assertion failed: {expression}", place_of(group, site, _everyone(group)))


def trap(group: Group, site: Site) -> NoReturn:
    """Raise Trap."""
    what = "the kernel stops itself (__trap)"
    if "%envreg2" in group.batch.kernel.special_registers and group.batch.grid_barrier is None:
        what += "; it uses a grid group, as grid.sync() does, and the launch is not cooperative"
    raise Trap(what, place_of(group, site, _everyone(group)))


def clock(group: Group) -> np.ndarray:
    """%clock and %globaltimer: uint64 (1,1), TICK more at each reading. It is not real time, but it grows, and it is
    the same in every run. It starts at TICK in every batch of blocks."""
    group.batch.timer += TICK
    return np.array([[group.batch.timer]], np.uint64)


RUNTIME = {"system_clock": clock, "system_print": print_formatted, "system_assert": fail, "system_trap": trap}
