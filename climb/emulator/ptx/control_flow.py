"""The control flow graph: basic blocks, their order, liveness, and where branches reconverge."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from . import model as ptx
from .listing import Listing

MEMORY = ("ld.", "ldu.", "atom.", "tex.", "tld4.", "suld.", "mbarrier.", "bar.red", "barrier.", "named.")


@dataclass
class Block:
    """A basic block. Control falls through to `next` (-1: the end) and goes to `taken` when `guard` holds.

    `gate` names the condition that lanes wait for before the block runs: "barrier", "cluster", "warp", "warpgroup", or
    "named" (see `barriers`). `predicated` marks a branch that implements the guard of a single instruction: it counts
    as that instruction, not as a branch. `spin`: the block is in a loop that may wait for other lanes. `first`: its
    first instruction; `lines`: the number of its instructions by file and line, its branch included; see `pack`.
    `maskable`: the block can run for lanes that a mask marks; `join`: the block where the paths of its branch meet, if
    all blocks up to there are maskable.
    """

    index: int
    instructions: list[ptx.Instruction] = field(default_factory=list)
    guard: tuple[ptx.Register, bool] | None = None
    branch: ptx.Instruction | None = None
    taken: int = -1
    next: int = -1
    gate: str = ""
    predicated: bool = False
    spin: bool = False
    maskable: bool = False
    join: int = -1
    reads: frozenset[str] = frozenset()
    writes: frozenset[str] = frozenset()
    live: frozenset[str] = frozenset()
    first: ptx.Instruction | None = None
    lines: dict[tuple[str, int], int] = field(default_factory=dict)
    listing: Listing | None = None

    def __getattr__(self, name: str) -> list[ptx.Instruction]:
        """Return the instructions, if they are packed."""
        listing = vars(self).get("listing")
        if name != "instructions" or listing is None:
            raise AttributeError(name)
        listing.restore()
        return self.instructions

    @property
    def successors(self) -> tuple[int, ...]:
        """Blocks that may run next."""
        return tuple(s for s in ((self.next,) if self.guard is None else (self.taken, self.next)) if s >= 0)


def pack(blocks: list[Block]) -> None:
    """Pack the instructions of blocks, and note what launches need of them."""
    for block in blocks:
        block.first = block.instructions[0] if block.instructions else None
        every = [*block.instructions, *([block.branch] if block.branch is not None else ())]
        block.lines = dict(Counter((one.location.file, one.location.line) for one in every))
    listing = Listing(blocks)
    for block in blocks:
        block.listing = listing


class Rule(Protocol):
    """The graph's view of an instruction: whether it ends a block, and whether lanes wait at it."""

    @property
    def terminator(self) -> str:
        """The way the instruction ends a block: "branch" or "exit"; empty if it does not."""

    @property
    def gate(self) -> str:
        """The condition that lanes wait for before the instruction runs; empty if none."""

    @property
    def waits(self) -> bool:
        """Return whether a loop can wait for other lanes with this instruction."""


Roles = Callable[[ptx.Instruction], tuple[list[str], list[str]]]


def build(function: ptx.Function, rule: Callable[[ptx.Instruction], Rule], roles: Roles) -> list[Block]:
    """Build the function's blocks, ordered so that lanes which run the lowest block first reconverge where their paths
    join.

    `roles` gives the registers that an instruction writes and reads.
    """
    blocks, labels = _split_into_blocks(function, rule)
    _connect(blocks, labels)
    order = _order(blocks)
    if _violations(blocks, list(range(len(blocks)))) > _violations(blocks, order):
        blocks = _renumber(blocks, order)
    _liveness(blocks, roles)
    rank = {node: i for i, node in enumerate(reversed(_post_order(blocks)))}
    for body in _loops(blocks, rank).values():
        inside = [blocks[node] for node in sorted(body)]
        if any(rule(one).waits for block in inside for one in block.instructions) and _depends_on_memory(inside, roles):
            for block in inside:
                block.spin = True
    return blocks


def _depends_on_memory(loop: list[Block], roles: Roles) -> bool:
    """Return whether a branch of the loop depends on what the loop reads from memory; otherwise the loop cannot
    wait."""
    found: set[str] = set()
    known = -1
    while len(found) > known:
        known = len(found)
        for instruction in (one for block in loop for one in block.instructions):
            writes, reads = roles(instruction)
            if instruction.opcode.startswith(MEMORY) or not found.isdisjoint(reads):
                found.update(writes)
    return any(block.guard is not None and block.guard[0].name in found for block in loop)


def _split_into_blocks(
    function: ptx.Function, rule: Callable[[ptx.Instruction], Rule]
) -> tuple[list[Block], dict[str, int]]:
    blocks: list[Block] = []
    labels: dict[str, int] = {}
    targets: list[str] = []
    current: Block | None = None
    open_ends: list[Block] = []

    def start() -> Block:
        block = Block(len(blocks))
        blocks.append(block)
        for end in open_ends:
            end.next = block.index
        open_ends.clear()
        return block

    for item in function.body:
        if isinstance(item, ptx.Label):
            if current is not None:
                open_ends.append(current)
                current = None
            targets.append(item.name)
            continue
        what = rule(item)
        if current is not None and what.gate:
            open_ends.append(current)
            current = None
        if current is None:
            current = start()
            for name in targets:
                labels[name] = current.index
            targets.clear()
        if what.gate:
            current.gate = what.gate
        if what.terminator == "branch":
            current.guard, current.branch = item.guard, item
            if item.guard is not None:
                open_ends.append(current)
            current = None
        elif item.guard is not None:
            # A guarded instruction is a branch around it.
            current.guard = (item.guard[0], not item.guard[1])
            current.branch, current.predicated = item, True
            open_ends.append(current)
            skipping = current
            current = start()
            current.gate = what.gate
            current.instructions.append(item)
            skipped = f" after {skipping.index}"
            targets.append(skipped)
            skipping.branch = ptx.Instruction("bra", (ptx.Symbol(skipped),), item.location, None, item.text)
            if what.terminator != "exit":
                open_ends.append(current)
            current = None
        elif what.terminator == "exit":
            current.instructions.append(item)
            current = None
        else:
            current.instructions.append(item)
            if what.gate == "named":  # lanes that have passed the barrier continue behind it
                open_ends.append(current)
                current = None
    if current is not None:
        open_ends.append(current)
    if targets or open_ends:
        last = start()
        for name in targets:
            labels[name] = last.index
    return blocks, labels


def _connect(blocks: list[Block], labels: dict[str, int]) -> None:
    for block in blocks:
        if block.branch is not None:
            target = labels[block.branch.operands[0].name]
            if block.guard is None:
                block.next = target
            else:
                block.taken = target


def _post_order(blocks: list[Block]) -> list[int]:
    seen, out, stack = {0}, [], [(0, iter(blocks[0].successors))]
    while stack:
        node, rest = stack[-1]
        for successor in rest:
            if successor not in seen:
                seen.add(successor)
                stack.append((successor, iter(blocks[successor].successors)))
                break
        else:
            out.append(node)
            stack.pop()
    return out


def _order(blocks: list[Block]) -> list[int]:
    """Return the blocks in reverse post-order with the blocks of a loop kept together, unreachable blocks last."""
    rank = {node: i for i, node in enumerate(reversed(_post_order(blocks)))}
    loops = _loops(blocks, rank)

    def lay(nodes: list[int], inside: frozenset[int]) -> list[int]:
        out: list[int] = []
        placed: set[int] = set()  # in a loop that begins with an earlier node
        for node in nodes:
            if node in placed:
                continue
            body = loops.get(node)
            if body is not None and body != inside and body <= (inside or body):
                members = [n for n in nodes if n in body and n != node]
                out.append(node)
                out.extend(lay(members, body))
                placed |= body
            else:
                out.append(node)
        return out

    order = lay(sorted(rank, key=rank.get), frozenset())
    return order + [b.index for b in blocks if b.index not in rank]


def _loops(blocks: list[Block], rank: dict[int, int]) -> dict[int, frozenset[int]]:
    """Map each loop header to the blocks of its loop (natural loops of retreating edges)."""
    before: dict[int, list[int]] = {node: [] for node in rank}
    for node in rank:
        for successor in blocks[node].successors:
            before[successor].append(node)
    loops: dict[int, set[int]] = {}
    for node in rank:
        for header in blocks[node].successors:
            if rank[header] <= rank[node]:
                body, stack = loops.setdefault(header, {header}), [node]
                while stack:
                    one = stack.pop()
                    if one not in body and rank[one] >= rank[header]:
                        body.add(one)
                        stack.extend(before[one])
    return {header: frozenset(body) for header, body in loops.items()}


def post_dominators(blocks: list[Block]) -> list[int]:
    """Return the immediate post-dominator of every block, -1 for the end of the function."""
    end = len(blocks)
    every = (1 << (end + 1)) - 1
    sets = [every] * end + [1 << end]
    backwards = [(block, block.successors) for block in reversed(blocks)]
    changed = True
    while changed:
        changed = False
        for block, successors in backwards:
            meet = every if successors else sets[end]
            for successor in successors:
                meet &= sets[successor]
            new = meet | 1 << block.index
            if new != sets[block.index]:
                sets[block.index] = new
                changed = True
    whose = {one: index for index, one in enumerate(sets)}
    out = []
    for block in blocks:
        strict = sets[block.index] & ~(1 << block.index)
        # The other post-dominators are exactly those of the closest one. If no path ends, there is none.
        best = whose.get(strict, end)
        out.append(best if best < end else -1)
    return out


def _violations(blocks: list[Block], order: list[int]) -> int:
    """Count the branches with a block that can run before their paths join but comes after the join in `order`."""
    place = {node: i for i, node in enumerate(order)}
    joins, count = post_dominators(blocks), 0
    successors = [block.successors for block in blocks]
    for block in blocks:
        if block.guard is None or joins[block.index] < 0:
            continue
        join = joins[block.index]
        seen, stack = {join}, list(successors[block.index])
        while stack:
            node = stack.pop()
            if node not in seen:
                seen.add(node)
                stack.extend(successors[node])
        count += any(place[node] > place[join] for node in seen)
    return count


def _renumber(blocks: list[Block], order: list[int]) -> list[Block]:
    place = {node: i for i, node in enumerate(order)}
    out = [blocks[node] for node in order]
    for block in out:
        block.index = place[block.index]
        block.next = place.get(block.next, -1)
        block.taken = place.get(block.taken, -1)
    return out


def _liveness(blocks: list[Block], roles: Roles) -> None:
    for block in blocks:
        reads: set[str] = set()
        writes: set[str] = set()
        for instruction in block.instructions:
            written, read = roles(instruction)
            reads.update(name for name in read if name not in writes)
            writes.update(written)
        if block.guard is not None and block.guard[0].name not in writes:
            reads.add(block.guard[0].name)
        block.reads, block.writes = frozenset(reads), frozenset(writes)
        block.live = block.reads
    changed = True
    backwards = [(block, [blocks[each] for each in block.successors]) for block in reversed(blocks)]
    while changed:
        changed = False
        for block, successors in backwards:
            after = frozenset().union(*(each.live for each in successors))
            live = block.reads | (after - block.writes)
            if live != block.live:
                block.live = live
                changed = True
