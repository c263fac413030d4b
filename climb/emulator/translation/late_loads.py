"""Late loads: loads of shared memory whose values nothing has used when their thread arrives at a barrier.

Machine code waits for a load only before the first use of its value, so an arrival may overtake the load, and a bulk
copy that another thread then starts may overwrite what the load has yet to read. Only the asynchronous proxy can do
that: ordinary stores go through the same queue as the loads. A fence between the loads and the arrival waits for them.

A forward data flow follows the destinations of each load, also through moves, which are no uses: ptxas removes most of
them. What it finds may hold on one path only, so generated code also notes at run time which threads have loads in
flight: at each late load, where one ends, and at each release. Kernels without bulk copies to shared memory are not
analysed. Loads by wmma.load and by volatile or ordered instructions, which few kernels mix with bulk copies, are left
out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from .. import ptx
from ..ptx.barriers import PREFIX
from ..ptx.control_flow import Block, Roles
from ..simt.lanes import WARP

_COPIES = ("cp.async.bulk.", "cp.reduce.async.bulk.")
_LOADS = ("ld.shared.", "ld.shared::cta.", "ldmatrix.")
#: The parts of a load's opcode that name another space than shared memory, or make it more than a plain load.
_OTHER = frozenset({"global", "const", "param", "local", "shared::cluster", "volatile", "relaxed", "acquire", "nc"})
_RELEASES = ("mbarrier.arrive", "bar.", "barrier.", PREFIX)
_FENCES = ("fence.", "membar.")
_NO_FENCES = ("fence.mbarrier_init", "fence.proxy.tensormap", "fence.proxy.alias")

_State = dict[str, frozenset[int]]


@dataclass
class LateLoads:
    """The result of `analyse` for a kernel, with the late loads numbered.

    `loads`: the numbers by the id of the load. The others list numbers: `ends`, by the id of an instruction that uses
    or drops the values, or is a fence; `releases`, by the id of an instruction after which the loads may be in flight;
    `starts`, by the index of a block that follows a named barrier, which lanes have passed only there.
    """

    loads: dict[int, int] = field(default_factory=dict)
    ends: dict[int, tuple[int, ...]] = field(default_factory=dict)
    releases: dict[int, tuple[int, ...]] = field(default_factory=dict)
    starts: dict[int, tuple[int, ...]] = field(default_factory=dict)


def analyse(blocks: list[Block], roles: Roles) -> LateLoads:
    """Find the late loads of a kernel, whose entry is the first block."""
    out = LateLoads()
    every = [instruction for block in blocks for instruction in block.instructions]
    if not any(_copies_to_shared(each.opcode) for each in every):
        return out
    loads = {key: number for number, key in enumerate(id(each) for each in every if _is_load(each))}
    for block, each, ended, left in _steps(blocks, roles, loads):
        if ended:
            _add(out.ends, id(each), ended)
        if left and each.opcode.startswith(_RELEASES) and ".wait" not in each.opcode:
            if each.opcode.startswith(PREFIX) and ".arrive" not in each.opcode:
                _add(out.starts, block.next, left)
            else:
                _add(out.releases, id(each), left)
    late = {number for found in (out.releases, out.starts) for numbers in found.values() for number in numbers}
    out.loads = {key: number for key, number in loads.items() if number in late}
    kept = {key: tuple(number for number in numbers if number in late) for key, numbers in out.ends.items()}
    out.ends = {key: numbers for key, numbers in kept.items() if numbers}
    return out


def _add(found: dict[int, tuple[int, ...]], key: int, numbers: set[int]) -> None:
    """Add numbers to those of a key: copies of an inlined function may share an instruction."""
    found[key] = tuple(sorted(numbers.union(found.get(key, ()))))


def loaded(opcode: str) -> tuple[int, str, int]:
    """Return what a load reads: the number of elements, their type, and how many lanes of a warp give an address."""
    if opcode.startswith("ldmatrix."):  # each address is that of a row of 16 bytes
        return 4, "u32", 8 * int(next(part for part in opcode.split(".") if part[0] == "x")[1:])
    *_, vector, kind = opcode.split(".")
    return int(vector[1]) if vector in ("v2", "v4") else 1, kind, WARP


def _copies_to_shared(opcode: str) -> bool:
    spaces = (part for part in opcode.split(".") if part == "global" or part.startswith("shared"))
    return opcode.startswith(_COPIES) and next(spaces, "").startswith("shared")


def _is_load(instruction: ptx.Instruction) -> bool:
    """Return whether an instruction is a plain load that may be from the block's own shared memory."""
    opcode = instruction.opcode
    if opcode.startswith(_LOADS):
        return True
    if not opcode.startswith("ld.") or not _OTHER.isdisjoint(opcode.split(".")):
        return False
    return isinstance(instruction.operands[1].base, ptx.Register)


def _steps(
    blocks: list[Block], roles: Roles, loads: dict[int, int]
) -> Iterator[tuple[Block, ptx.Instruction, set[int], set[int]]]:
    """Yield each instruction that may matter: its block, the loads that end at it, and those in flight after it."""
    relevant = _relevant(blocks, roles, loads)
    entries: dict[int, _State] = {0: {}}
    work = {0}
    while work:
        index = min(work)
        work.remove(index)
        state = dict(entries[index])
        for each in relevant[index]:
            _step(state, each, roles, loads)
        for successor in blocks[index].successors:
            if successor not in entries:
                entries[successor] = dict(state)
                work.add(successor)
            elif _join(entries[successor], state):
                work.add(successor)
    for index, state in entries.items():
        after = _all(state)
        for each in relevant[index]:
            before = after
            if _step(state, each, roles, loads):
                after = _all(state)
            if before or after:
                yield blocks[index], each, before - after, after


def _relevant(blocks: list[Block], roles: Roles, loads: dict[int, int]) -> list[list[ptx.Instruction]]:
    """Return the instructions of each block that can matter: fences, releases, and those that use the registers which
    can hold loaded values. Most instructions of a large kernel do not."""
    found: set[str] = set()
    moves: dict[str, list[str]] = {}
    for instruction in (each for block in blocks for each in block.instructions):
        if id(instruction) in loads:
            found.update(roles(instruction)[0])
        elif instruction.opcode.startswith("mov."):
            writes, reads = roles(instruction)
            for source in reads:
                moves.setdefault(source, []).extend(writes)
    left = list(found)
    while left:
        fresh = [name for name in moves.get(left.pop(), ()) if name not in found]
        found.update(fresh)
        left += fresh

    def matters(instruction: ptx.Instruction) -> bool:
        if instruction.opcode.startswith((*_RELEASES, *_FENCES)):
            return True
        return any(not found.isdisjoint(names) for names in roles(instruction))

    return [[each for each in block.instructions if matters(each)] for block in blocks]


def _all(state: _State) -> set[int]:
    return set().union(*state.values())


def _join(mine: _State, other: _State) -> bool:
    """Join another path to the same place; return whether that changes anything."""
    changed = False
    for name, numbers in other.items():
        known = mine.get(name, frozenset())
        if not numbers <= known:
            mine[name], changed = known | numbers, True
    return changed


def _step(state: _State, instruction: ptx.Instruction, roles: Roles, loads: dict[int, int]) -> bool:
    """Let an instruction change which registers wait for which loads; return whether it may have."""
    opcode, number = instruction.opcode, loads.get(id(instruction))
    if not state and number is None:
        return False
    if opcode.startswith(_FENCES):
        if not opcode.startswith(_NO_FENCES):
            state.clear()
        return True
    writes, reads = roles(instruction)
    used = frozenset().union(*(state.get(name, frozenset()) for name in reads))
    if number is None and not used and state.keys().isdisjoint(writes):
        return False
    if used and not opcode.startswith("mov."):
        for name in [name for name, numbers in state.items() if not numbers.isdisjoint(used)]:
            state[name] -= used
            if not state[name]:
                del state[name]
        used = frozenset()
    fresh = used if number is None else frozenset({number})
    for name in writes:
        if fresh:
            state[name] = fresh
        else:
            state.pop(name, None)
    return True
