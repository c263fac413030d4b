"""Run a batch of blocks: groups of lanes step from basic block to basic block, split, wait and meet."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, NoReturn

import numpy as np

from .errors import BarrierDivergence, EndlessLoop, WarpMismatch, Where
from .groups import Group, merge
from .lanes import Lanes, Selection, divide, rectangle
from .memory import Allocation, DeviceMemory, buffer
from .named import NamedBarriers
from .policy import Waiting
from .ptx import Immediate, Instruction, Location
from .trace import Trace
from .warps import bits_of, from_rows, missing, present, to_rows

if TYPE_CHECKING:
    from .cfg import Block
    from .clock import Clock
    from .copies import Pending
    from .module import Kernel
    from .shadow import SharedShadow
    from .shadow_global import GlobalShadow
    from .watch import Watch


class Tallies:
    """Counts of a launch while it runs:

    Per access site [requests, lanes, achieved, ideal,
    same address], per block [warps, lanes].
    """

    def __init__(self, blocks: int) -> None:
        self.sites: dict[tuple[str, int], list[int]] = {}
        self.executed = [[0, 0] for _ in range(blocks)]
        self.branches = [[0, 0] for _ in range(blocks)]
        self.barriers = 0
        self.printed: list[tuple[int, int, int, str]] = []  # block, event, thread, text
        self.prints = self.unprinted = 0

    def __getitem__(self, key: tuple[str, int]) -> list[int]:
        found = self.sites.get(key)
        if found is None:
            found = self.sites[key] = [0, 0, 0, 0, 0]
        return found


class Batch:
    """Blocks `start` to `start + blocks` of the grid, running together. `shared` is uint8 (blocks, bytes), `extents`
    what of shared and local memory is a variable's."""

    def __init__(
        self,
        kernel: Kernel,
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
        start: int,
        blocks: int,
        parameters: np.ndarray,
        memory: DeviceMemory,
        dynamic_bytes: int,
        counts: Tallies,
        trace: Trace | None,
        max_steps: int,
        watch: Watch,
    ) -> None:
        self.kernel, self.grid, self.block, self.start, self.blocks = kernel, grid, block, start, blocks
        self.threads = block[0] * block[1] * block[2]
        self.memory, self.counts, self.trace, self.max_steps = memory, counts, trace, max_steps
        self.shared_bytes = kernel.layout.shared_span + dynamic_bytes
        self.local_bytes = kernel.layout.local_bytes
        self.extents = {
            "shared": kernel.layout.extents("shared", dynamic_bytes), "local": kernel.layout.extents("local"),
            "param": kernel.layout.extents("param"),
        }  # fmt: skip
        self.shared = _rows(blocks, self.shared_bytes)
        self.local = _rows(blocks * self.threads, self.local_bytes)
        self.local_written: np.ndarray | None = None
        self.parameters = parameters
        self.recent: dict[int, Allocation] = {}
        self.gone: list[Lanes] = []
        self.copies: Pending | None = None
        self._values: dict[tuple[int, str], np.ndarray] = {}
        self.uninitialised = False
        self.clocks = 0
        self.named: NamedBarriers | None = None
        self.clock: Clock | None = None
        self.shadow: SharedShadow | None = None
        self.globals: GlobalShadow | None = None
        watch.attach(self)

    # What generated code and accesses use -----------------------------------------------------------------------------

    def parameter(self, offset: int, dtype: str) -> np.ndarray:
        """A (1,1) value at a byte offset of the parameters."""
        found = self._values.get((offset, dtype))
        if found is None:
            size = np.dtype(dtype).itemsize
            found = np.frombuffer(self.parameters[offset : offset + size].tobytes(), dtype).reshape(1, 1)
            self._values[offset, dtype] = found
        return found

    @cached_property
    def parameter_memory(self) -> np.ndarray:
        """The parameters where a kernel that takes their address finds them: uint8, with what lies between them."""
        layout, out = self.kernel.layout, buffer(self.kernel.layout.param_span)
        for name, offset in layout.parameters.items():
            place, size = layout.addresses[name][1], layout.sizes[name]
            out[place : place + size] = self.parameters[offset : offset + size]
        return out

    def shared_view(self, dtype: np.dtype) -> np.ndarray:
        """Shared memory of all blocks, flat, as elements of `dtype`."""
        return self.shared.reshape(-1).view(dtype)

    def local_view(self, dtype: np.dtype) -> np.ndarray:
        """Local memory of all threads, flat, as elements of `dtype`."""
        return self.local.reshape(-1).view(dtype)

    def find(self, address: int, nbytes: int) -> Allocation | None:
        """The allocation that holds the bytes: of the caller's memory, or a variable of the module."""
        return self.memory.find(address, nbytes) or self.kernel.module.memory.find(address, nbytes)

    def nearest(self, address: int) -> Allocation | None:
        """The allocation nearest to an address."""
        from .memory import distance

        found = [m.nearest(address) for m in (self.memory, self.kernel.module.memory)]
        return min((a for a in found if a is not None), key=lambda a: distance(a, address), default=None)

    def block_index(self, block: int) -> tuple[int, int, int]:
        """(x, y, z) in the grid of a block of this batch."""
        linear = self.start + block
        return linear % self.grid[0], linear // self.grid[0] % self.grid[1], linear // (self.grid[0] * self.grid[1])

    def thread_index(self, thread: int) -> tuple[int, int, int]:
        """(x, y, z) in the block of a linear thread index."""
        return (
            thread % self.block[0],
            thread // self.block[0] % self.block[1],
            thread // (self.block[0] * self.block[1]),
        )

    # Running ----------------------------------------------------------------------------------------------------------

    def run(self) -> None:
        """Run all lanes to their end.

        Raises what the kernel does wrong, as in `errors`.
        """
        code = self.kernel.code
        blocks, functions = code.blocks, code.functions
        executed, branches = self.counts.executed, self.counts.branches
        waiting, parked = Waiting(), {}
        at, steps = 0, 0
        group: Group | None = Group(self, rectangle(self.blocks, self.threads), self._special())
        while True:
            if group is None:
                if not waiting:
                    if not parked:
                        return
                    self._release(waiting, parked)
                at, groups = waiting.pop()
                group = merge(groups, blocks[at].live)
                if not waiting and not parked:
                    group.settle(blocks[at].live)
            block = blocks[at]
            if block.gate == "named":
                self.named = self.named or NamedBarriers(self)
                self.named.come(group, at, parked, waiting)
                group = None
                continue
            if block.gate:
                group = self._gate(group, at, parked)
                if group is None:
                    continue
                if self.clock is not None:
                    self._passed(block, group)
            steps += 1
            if steps > self.max_steps:
                self._endless(at, group, parked)
            lanes = group.lanes
            if block.gate == "barrier":
                self.counts.barriers += lanes.count // self.threads
            count = executed[at]
            count[0] += lanes.warps
            count[1] += lanes.count
            if group.root is not None:
                group.fetch(block.reads)
            outcome = functions[at](group)
            if group.clean:
                group.clean -= block.writes
            last = at
            if outcome is None:
                at = block.next
                if at < 0:
                    self.gone.append(lanes)
                    group = None
                    continue
            else:
                branches[at][0] += lanes.warps
                parts = divide(outcome, lanes)
                if parts is True:
                    at = block.taken
                elif parts is False:
                    at = block.next
                else:
                    branches[at][1] += _divergent(outcome, lanes)
                    targets = (block.taken, block.next)
                    live = [blocks[t].live if t >= 0 else frozenset() for t in targets]
                    for target, part in zip(targets, group.split(list(zip(parts, live, strict=True))), strict=True):
                        if target >= 0:
                            waiting.push(target, part)
                        else:
                            self.gone.append(part.lanes)
                    group = None
                    continue
            if block.spin and at <= last and waiting.stands_back(at, group):
                group = None
            elif not waiting.may_continue(at):
                waiting.push(at, group)
                group = None

    def enter(self, at: int, group: Group) -> None:
        """Run and count the block of a barrier that lanes have passed."""
        block = self.kernel.code.blocks[at]
        count = self.counts.executed[at]
        count[0] += group.lanes.warps
        count[1] += group.lanes.count
        if group.root is not None:
            group.fetch(block.reads)
        self.kernel.code.functions[at](group)
        group.clean -= block.writes

    def _special(self) -> dict[str, np.ndarray]:
        """The special registers, as registers."""
        out = {}
        linear = np.arange(self.start, self.start + self.blocks).reshape(-1, 1)
        thread = np.arange(self.threads).reshape(1, -1)
        out["%ctaid.x"], out["%ctaid.y"] = linear % self.grid[0], linear // self.grid[0] % self.grid[1]
        out["%ctaid.z"] = linear // (self.grid[0] * self.grid[1])
        out["%tid.x"], out["%tid.y"] = thread % self.block[0], thread // self.block[0] % self.block[1]
        out["%tid.z"] = thread // (self.block[0] * self.block[1])
        for name, value in (("%ctaid.", self.grid), ("%tid.", self.block)):
            for axis, extent in zip("xyz", value, strict=True):
                if extent == 1:
                    out[name + axis] = np.zeros((1, 1), np.uint32)
        for index, axis in enumerate("xyz"):
            out[f"%ntid.{axis}"] = np.array([[self.block[index]]])
            out[f"%nctaid.{axis}"] = np.array([[self.grid[index]]])
        lane = thread % 32
        out["%laneid"], out["%warpid"] = lane, thread // 32
        out["%nwarpid"] = np.array([[-(-self.threads // 32)]])
        one = np.ones((), np.uint64)
        bit = one << lane.astype(np.uint64)
        full = np.uint64(0xFFFFFFFF)
        out["%lanemask_eq"], out["%lanemask_lt"], out["%lanemask_le"] = bit, bit - one, 2 * bit - one
        out["%lanemask_ge"], out["%lanemask_gt"] = full & ~(bit - one), full & ~(2 * bit - one)
        registers = {name: value.astype(np.uint32) for name, value in out.items() if name in self.kernel.specials}
        # The compiler may read a register that no path has written, where the value does not matter.
        for name in self.kernel.code.blocks[0].live:
            registers.setdefault(name, self.kernel.zeros[name])
        return registers

    def _gate(self, group: Group, at: int, parked: dict[int, Group]) -> Group | None:
        """The group, joined by those that waited, if all that it waits for are here; else it is parked."""
        if self._ready(group, at) is True:
            return group
        if at in parked:
            group = merge([parked.pop(at), group], self.kernel.code.blocks[at].live)
            if self._ready(group, at) is True:
                return group
        parked[at] = group
        return None

    def _passed(self, block: Block, group: Group) -> None:
        """Note that the lanes of a group have waited for each other at a gate."""
        lanes = group.lanes
        if block.gate != "barrier":
            mask, every = _mask(group, block.instructions[0]), self._existing[0, lanes.thread // 32]
            if ((mask & every) != every).any():
                self.clock.met(lanes, mask)
                return
        (self.shadow or self.clock).passed(block.gate, lanes)

    def _ready(self, group: Group, at: int) -> np.ndarray | bool:
        """Which lanes need not wait at the gate: True for all, else bool, one for each lane."""
        lanes = group.lanes
        if self.kernel.code.blocks[at].gate == "named":
            ready = np.zeros((1, 1), np.bool_)  # those are let go by themselves
        elif self.kernel.code.blocks[at].gate == "barrier":
            if not lanes.ragged and lanes.shape[1] == self.threads:
                return True
            ready = lanes.per_block(self.blocks)[lanes.block] == self.threads
        else:
            ready = self._warp_ready(group, at)
            if ready is True:
                return True
        ready = np.broadcast_to(ready, lanes.shape).reshape(-1)
        return True if ready.all() else ready

    def _warp_ready(self, group: Group, at: int) -> np.ndarray | bool:
        """Lanes whose mask names no lane that is still on its way.

        Lanes that have left the kernel are not waited for, as CUDA has it. But where a value is made of the lanes of a
        mask (all but `__syncwarp`), one that has left is an error. That is stricter than CUDA, which lets a vote or a
        reduction be one of the lanes that are there: whoever wrote the mask has counted on the others.
        """
        instruction = self.kernel.code.blocks[at].instructions[0]
        mask, lanes = _mask(group, instruction), group.lanes
        own = mask >> (lanes.thread % 32).astype(np.uint32) & np.uint32(1)
        if not own.all():
            self._mismatch(group, instruction, own == 0, "a lane is not in its own mask")
        absent = missing(group, mask)
        if not absent.any():
            return True
        alive = self._bits(self._alive())
        warp = lanes.thread // 32
        elsewhere = alive[lanes.block, warp] & absent
        gone = absent & self._existing[0, warp] & ~alive[lanes.block, warp]
        if gone.any() and not instruction.opcode.startswith("bar.warp."):
            lane = int(gone[gone != 0].ravel()[0])
            lane = (lane & -lane).bit_length() - 1
            self._mismatch(group, instruction, gone != 0, f"the mask names lane {lane}, which has left the kernel")
        (rows,) = to_rows(lanes, np.broadcast_to(elsewhere, lanes.shape))
        waits = (np.where(present(lanes, rows.shape[0]), rows, 0) != 0).any(axis=1, keepdims=True)
        return from_rows(lanes, np.broadcast_to(~waits, rows.shape))

    def _alive(self) -> np.ndarray:
        """bool (blocks, threads): the threads that have not left the kernel."""
        alive = np.ones(self.blocks * self.threads, np.bool_)
        for lanes in self.gone:
            alive[lanes.linear()] = False
        return alive.reshape(self.blocks, self.threads)

    @cached_property
    def _existing(self) -> np.ndarray:
        """uint32 (1, warps): the lanes that each warp of a block has."""
        return self._bits(np.ones((1, self.threads), np.bool_))

    def _bits(self, flags: np.ndarray) -> np.ndarray:
        """bool (n, threads) as uint32 (n, warps)."""
        warps = -(-self.threads // 32)
        padded = np.zeros((flags.shape[0], warps * 32), np.bool_)
        padded[:, : self.threads] = flags
        return bits_of(padded.reshape(-1, 32)).reshape(-1, warps)

    def _mismatch(self, group: Group, instruction: Instruction, bad: np.ndarray, what: str) -> NoReturn:
        lanes = group.lanes
        bad = np.broadcast_to(bad, lanes.shape).reshape(-1)
        first = int(np.flatnonzero(bad)[0])
        block, thread = (int(np.broadcast_to(each, lanes.shape).ravel()[first]) for each in (lanes.block, lanes.thread))
        raise WarpMismatch(
            f"warp mismatch: {what}",
            self._at(instruction.location, block, thread, int(np.count_nonzero(bad))),
        )

    def _release(self, waiting: Waiting, parked: dict[int, Group]) -> None:
        """Nothing else can run: let those pass their gate who need not wait.

        Raises BarrierDivergence or WarpMismatch where there are none.
        """
        moved = self.named is not None and self.named.release(parked, waiting)
        for at, group in list(parked.items()):
            ready = self._ready(group, at)
            if ready is True:
                waiting.push(at, parked.pop(at))
                moved = True
            elif ready.any():
                live = self.kernel.code.blocks[at].live
                parts = (Selection(flat=np.flatnonzero(ready)), Selection(flat=np.flatnonzero(~ready)))
                if group.lanes.ragged:
                    parts = tuple(Selection(columns=part.flat) for part in parts)
                passing, parked[at] = group.split([(part, live) for part in parts])
                waiting.push(at, passing)
                moved = True
        if not moved:
            self._stuck(parked)

    def _stuck(self, parked: dict[int, Group]) -> NoReturn:
        blocks = self.kernel.code.blocks
        for at, group in parked.items():
            if blocks[at].gate == "warp":
                bad = ~np.broadcast_to(self._ready(group, at), (group.lanes.count,))
                what = self._awaited(group, at, int(np.flatnonzero(bad)[0]), parked)
                self._mismatch(group, blocks[at].instructions[0], bad, what)
        if self.named is not None:
            self.named.stuck(parked)
        self._divergence(parked)

    def _awaited(self, group: Group, at: int, first: int, parked: dict[int, Group]) -> str:
        """Who of the warp of the group's lane `first` waits at a warp operation, for whom, and where those are."""
        blocks = self.kernel.code.blocks
        block, thread = (int(each[first]) for each in _flat(group.lanes))
        mask = int(np.broadcast_to(_mask(group, blocks[at].instructions[0]), group.lanes.shape).reshape(-1)[first])
        here = self._of_warp(group.lanes, block, thread // 32)
        missing = [lane for lane in range(32) if mask >> lane & 1 and lane not in here]
        places = []
        for other, waiting in sorted(parked.items()):
            found = [lane for lane in self._of_warp(waiting.lanes, block, thread // 32) if lane in missing]
            if found and other != at:
                what = "warp operation" if blocks[other].gate == "warp" else "barrier"
                line = blocks[other].instructions[0].location.line
                places.append(f"lanes {ranges(found)} wait at the {what} in line {line}")
        others = f"; {', '.join(places)}" if places else ""
        return f"lanes {ranges(here)} wait here for lanes {ranges(missing)}, which their mask names{others}"

    def _of_warp(self, lanes: Lanes, block: int, warp: int) -> list[int]:
        """The lanes (0 to 31) of one warp of one block that are among `lanes`."""
        blocks, threads = _flat(lanes)
        return (threads[(blocks == block) & (threads // 32 == warp)] % 32).tolist()

    def _divergence(self, parked: dict[int, Group]) -> NoReturn:
        counts = {at: group.lanes.per_block(self.blocks) for at, group in parked.items()}
        block = min(int(np.flatnonzero(present)[0]) for present in counts.values())
        here = [(at, int(present[block])) for at, present in sorted(counts.items()) if present[block]]
        at, number = here[0]
        instruction = self.kernel.code.blocks[at].instructions[0]
        others = [f"{n} wait at line {self.kernel.code.blocks[b].instructions[0].location.line}" for b, n in here[1:]]
        gone = self.threads - sum(n for _, n in here)
        if gone:
            others.append(f"{gone} {'has' if gone == 1 else 'have'} left the kernel")
        where = self._place(instruction.location, parked[at].lanes, block, number)
        raise BarrierDivergence(
            f"barrier divergence: {number} of {self.threads} threads of the block wait at this barrier, "
            + " and ".join(others),
            where,
            waiting=number,
            exited=gone,
        )

    def _endless(self, at: int, group: Group, parked: dict[int, Group]) -> NoReturn:
        block = self.kernel.code.blocks[at]
        instruction = block.instructions[0] if block.instructions else block.branch
        first = int(np.broadcast_to(group.lanes.block, group.lanes.shape)[0, 0])
        blocks = self.kernel.code.blocks
        waits = "".join(
            f", {one.lanes.count} wait at the {'warp operation' if blocks[b].gate == 'warp' else 'barrier'} "
            f"in line {blocks[b].instructions[0].location.line}"
            for b, one in sorted(parked.items())
        )
        raise EndlessLoop(
            f"endless loop: more than {self.max_steps} steps; {group.lanes.count} threads were running{waits}",
            self._place(instruction.location, group.lanes, first, group.lanes.count),
            steps=self.max_steps,
        )

    def _place(self, location: Location, lanes: Lanes, block: int, number: int) -> Where:
        mine = np.broadcast_to(lanes.block, lanes.shape).ravel() == block
        thread = int(np.broadcast_to(lanes.thread, lanes.shape).ravel()[np.flatnonzero(mine)[0]])
        return self._at(location, block, thread, number)

    def _at(self, location: Location, block: int, thread: int, number: int) -> Where:
        return Where(
            self.kernel.name,
            location.file,
            location.line,
            self.kernel.line_text(location),
            self.block_index(block),
            self.thread_index(thread),
            number,
        )


def _mask(group: Group, instruction: Instruction) -> np.ndarray:
    """uint32: the mask of a warp operation, its last operand."""
    operand = instruction.operands[-1]
    if isinstance(operand, Immediate):
        return np.array([[operand.value & 0xFFFFFFFF]], np.uint32)
    return group.value(operand.name).view(np.uint32)


def _flat(lanes: Lanes) -> tuple[np.ndarray, np.ndarray]:
    """(block, thread) of every lane, 1-D each."""
    block, thread = (np.broadcast_to(each, lanes.shape).reshape(-1) for each in (lanes.block, lanes.thread))
    return block, thread


def ranges(numbers: list[int]) -> str:
    """Ascending numbers in short: 0-7, 9, 16-31."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ", ".join(f"{a}-{b}" if b > a else f"{a}" for a, b in runs)


def _rows(rows: int, nbytes: int) -> np.ndarray:
    """Zeroed uint8 (rows, nbytes rounded up to 16), aligned to 16."""
    from .memory import buffer

    width = -(-nbytes // 16) * 16
    return buffer(rows * width).reshape(rows, width)


def _divergent(predicate: np.ndarray, lanes: Lanes) -> int:
    """The warps whose lanes differ in the predicate."""
    if predicate.shape[1] == 1:
        return 0
    layout = lanes.layout
    matrix, repeat = layout.matrix(predicate, lanes)
    mask = layout.full_mask(matrix.shape[0])
    if mask is None:
        both = matrix.any(axis=1) & ~matrix.all(axis=1)
    else:
        both = (matrix & mask).any(axis=1) & ~(matrix | ~mask).all(axis=1)
    return int(np.count_nonzero(both)) * repeat
