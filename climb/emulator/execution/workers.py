"""Choose which launches run in several processes, and in how many.

`CLIMB_WORKERS` sets the number; the default is the number of CPU cores that this process may use, at most `MOST`. In a
process of pytest-xdist, which has one process for each core already, it is one.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from .. import ptx
from ..simt.code import Code
from ..translation.registers import register_names, roles

VARIABLE = "CLIMB_WORKERS"
MOST = 8  # few launches have more batches, and each process takes memory
#: Instructions through which a block may see other blocks' accesses, and system calls that change more than memory.
_ORDERED = ("ld.volatile", "ld.relaxed", "ld.acquire", "st.volatile", "st.relaxed", "st.release")
_ACQUIRING = ("ld.acquire.gpu", "ld.acquire.sys")
_ELSEWHERE = (
    "tex.", "tld4.", "suld.", "sust.", "sured.", "cp.async.bulk", "cp.reduce", "tensormap.", "call.vprintf",
    "call.malloc", "call.free",
)  # fmt: skip

_CLOCK = re.compile(r"%(clock|globaltimer)")
_FLOAT = re.compile(r"\.(b?f16|f32|f64|bf16)")

_chosen: ContextVar[int | None] = ContextVar("workers", default=None)


def number_of_workers() -> int:
    """Return the number of processes that a launch may use: 1 if workers cannot run, which need Linux and a Python to
    start.

    Raises ValueError if `CLIMB_WORKERS` is not a positive number.
    """
    if sys.platform != "linux" or not sys.executable or getattr(sys, "frozen", False):
        return 1
    chosen = _chosen.get()
    if chosen is not None:
        return chosen
    given = os.environ.get(VARIABLE)
    if given is not None:
        if not given.isdecimal() or int(given) < 1:
            raise ValueError(f"{VARIABLE} is {given!r}; expected a number of processes, at least 1")
        return int(given)
    return 1 if "PYTEST_XDIST_WORKER" in os.environ else min(len(os.sched_getaffinity(0)), MOST)


@contextmanager
def workers(number: int) -> Iterator[None]:
    """Run the launches inside in up to `number` processes: `with workers(1): ...`"""
    token = _chosen.set(number)
    try:
        yield
    finally:
        _chosen.reset(token)


def independent(code: Code) -> bool:
    """Return whether a kernel has no instruction by which a block may see what other blocks of its launch do.

    Blocks can still read what others have written; code that runs them separately must check for that.
    """
    instructions = [one for block in code.blocks for one in block.instructions]
    guards = {block.guard[0].name for block in code.blocks if block.guard is not None}
    read = guards.union(*(roles(one)[1] for one in instructions))
    return not any(_orders(one, read) for one in instructions)


def waits_for_blocks(code: Code) -> bool:
    """Return whether a kernel may wait for other blocks: whether it has a load that acquires what they have written."""
    opcodes = (one.opcode for block in code.blocks for one in block.instructions)
    return any(opcode.startswith(_ACQUIRING) and ".shared" not in opcode for opcode in opcodes)


def commutes(code: Code) -> bool:
    """Return whether a kernel with independent blocks and no races gives the same bits in any order of the blocks: it
    adds no floats by atomics and reads no clock."""
    instructions = [one for block in code.blocks for one in block.instructions]
    floats = any(one.opcode.startswith(("atom.", "red.")) and _FLOAT.search(one.opcode) for one in instructions)
    return not floats and not any(_CLOCK.search(one.text) for one in instructions)


def _orders(instruction: ptx.Instruction, read: set[str]) -> bool:
    opcode = instruction.opcode
    if opcode.startswith("atom."):
        return ".shared" not in opcode and not read.isdisjoint(register_names(instruction.operands[0]))
    return opcode.startswith(_ELSEWHERE) or (opcode.startswith(_ORDERED) and ".shared" not in opcode)
