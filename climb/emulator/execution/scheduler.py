"""The scheduler: groups of lanes step from basic block to basic block, diverge, wait, and reconverge."""

from __future__ import annotations

import weakref
from typing import ClassVar

import numpy as np

from ..ptx.model import Location
from ..simt import masks
from ..simt.batch import Batch
from ..simt.groups import Group, merge
from ..simt.lanes import Lanes, Selection, divide, rectangle
from .cooperative import GridBarrier
from .deadlocks import barrier_divergence, check_cluster_barrier, check_warp_gates, endless_loop
from .effort import EVERY, Effort
from .gates import Gates
from .named_barriers import NamedBarriers
from .policy import SPINS, Waiting
from .progress import FEWEST_ROUNDS, NO_EXIT, PATIENCE, Progress
from .schedules import Teams
from .special_registers import special_registers

LONGER = "; if the kernel is only long, raise max_steps (climb emulate --max-steps)"

#: Gates at which lanes of different teams wait for each other.
MEETINGS = ("barrier", "cluster", "warpgroup")


class Scheduler:
    """Runs a batch of blocks. `parked` maps basic blocks to the groups that wait at their gates.

    `latest`: a weak reference to the scheduler that this process began last. `now`: its steps and its basic block,
    every few steps.
    """

    latest: ClassVar[weakref.ref[Scheduler] | None] = None

    def __init__(self, batch: Batch, max_steps: int) -> None:
        self.batch, self.max_steps = batch, max_steps
        self.now = (0, 0)
        self.waiting = Waiting() if batch.schedule is None else Teams(batch, batch.schedule.random)
        self.parked: dict[int, Group] = batch.parked
        self.gates, self.progress, self.effort = Gates(batch), Progress(batch), Effort(batch, max_steps)
        self.named_barriers: NamedBarriers | None = None  # made at the first one
        self.grid_barrier = GridBarrier(batch) if batch.grid_barrier is not None else None

    def run(self) -> None:
        """Run all lanes to their end. Raises one of `errors` for a fault of the kernel."""
        batch, waiting, parked = self.batch, self.waiting, self.parked
        blocks, functions = batch.kernel.code.blocks, batch.kernel.code.functions
        counts, exited, max_steps = batch.counts, batch.exited, self.max_steps
        executed, branches = counts.executed, counts.branches
        plain = batch.schedule is None and batch.trace is None
        masking = plain and batch.global_shadow is None and batch.dependence is None  # which look at each lane
        Scheduler.latest = weakref.ref(self)
        at, steps = 0, 0
        group: Group | None = Group(batch, rectangle(batch.blocks, batch.threads), special_registers(batch))
        if batch.schedule is not None:
            waiting.push(at, group)
            group = None
        while True:
            if group is None:
                if not waiting.runnable:
                    if parked:
                        self._release(spinning=bool(waiting))
                    elif not waiting:
                        return
                at, groups = waiting.pop()
                group = merge(groups, blocks[at].live)
                if not waiting and not parked and not group.lanes.masked:
                    group.become_root(blocks[at].live)
            block = blocks[at]
            if group.lanes.masked and not (block.maskable and group.lanes.many):
                group = group.dense()
                if not waiting and not parked:
                    group.become_root(block.live)
            if block.gate == "named":
                if self.named_barriers is None:
                    self.named_barriers = NamedBarriers(batch)
                self.named_barriers.arrive(group, at, parked, waiting)
                group = None
                continue
            if block.gate and not group.passed:
                group = self._pass(group, at)
                if group is None:
                    continue
            group.passed = False
            steps += 1
            if not steps % EVERY:
                self.now = (steps, at)
                if why := self.effort.review(steps, at, group):
                    endless_loop(batch, at, group.dense(), parked, why + LONGER)
            if steps > max_steps:
                endless_loop(batch, at, group.dense(), parked, f"more than {max_steps} steps{LONGER}", steps=max_steps)
            if batch.tick is not None:
                batch.tick(batch)
            lanes = group.lanes
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
                    exited.append(lanes)
                    group = None
                    continue
            else:
                branches[at][0] += lanes.warps
                if lanes.masked or (block.join >= 0 and masking):
                    parts = masks.divide(outcome, lanes, (block.taken == block.join, block.next == block.join))
                else:
                    parts = divide(outcome, lanes)
                if parts is True:
                    at = block.taken
                elif parts is False:
                    at = block.next
                else:
                    branches[at][1] += _divergent_warps(outcome, lanes)
                    targets = (block.taken, block.next)
                    live = [blocks[t].live if t >= 0 else frozenset() for t in targets]
                    inside = all(target >= 0 and blocks[target].spin for target in targets)
                    for target, part in zip(targets, group.split(list(zip(parts, live, strict=True))), strict=True):
                        part.spins = group.spins if inside else 0  # no lane has left the loop
                        if target >= 0:
                            waiting.push(target, part)
                        else:
                            exited.append(part.lanes)
                    group = None
                    continue
            if at <= last and steps > PATIENCE and at in self.progress.closed:
                endless_loop(batch, at, group, parked, NO_EXIT)
            if at <= last and (self._yields(at, group) if block.spin else steps > PATIENCE and self._stuck(at, group)):
                group = None
            elif not waiting.may_continue(at, group):
                waiting.push(at, group)
                group = None

    def _pass(self, group: Group, at: int) -> Group | None:
        """Let a group wait at the gate of block `at`. Returns the group that passes it and goes on, or None."""
        group = self._wait(group, at)
        return None if group is None else self._through(group, at)

    def _through(self, group: Group, at: int) -> Group | None:
        """Take a group through the gate of block `at`. Returns it, or None if its teams go on one by one."""
        block, batch = self.batch.kernel.code.blocks[at], self.batch
        if batch.clock is not None:
            self.gates.passed(block, group)
        if self.gates.elsewhere is not None and block.gate == "warp":
            self.gates.elsewhere[group.lanes.block, group.lanes.thread] = True
        if block.gate == "barrier":
            batch.counts.barriers += group.lanes.count // batch.threads
            if batch.trace is not None:
                batch.trace.note(group, "barrier", None, None, 0)
            if isinstance(self.waiting, Teams) and self.waiting.spread(at, group):
                return None
        return group

    def _wait(self, group: Group, at: int) -> Group | None:
        """Return the group, joined by those parked at the gate, if it need not wait; otherwise park it."""
        if self.gates.ready(group, at) is True:
            return group
        if at in self.parked:
            group = merge([self.parked.pop(at), group], self.batch.kernel.code.blocks[at].live)
            if self.gates.ready(group, at) is True:
                return group
        self.parked[at] = group
        return None

    def _yields(self, at: int, group: Group) -> bool:
        """Count an iteration of a waiting loop, at whose block `at` the group is; return whether it now lets others
        run."""
        waiting = self.waiting
        group.spins += 1
        if group.spins < SPINS:
            return False
        group.spins = 0
        if not waiting.runnable and not (self.parked and self._release(spinning=True)):
            if self.grid_barrier is not None:
                self.grid_barrier.check([*waiting.postponed, (at, group)])
            if why := self.progress.idle([*waiting.postponed, (at, group)]):
                endless_loop(self.batch, at, group, self.parked, why)
            if not waiting:
                return False
        waiting.postpone(at, group)
        return True

    def _stuck(self, at: int, group: Group) -> bool:
        """Return whether a group at the head of a loop lets others run, because only they can let it leave the loop.

        Raises EndlessLoop if no group can.
        """
        waiting, progress = self.waiting, self.progress
        why = progress.repeats(at, group, not waiting and not self.parked)
        if not why:
            return False
        if not waiting or not progress.loop(at).memory or progress.postponed > FEWEST_ROUNDS:
            endless_loop(self.batch, at, group, self.parked, why)
        progress.postponed += 1
        waiting.postpone(at, group)
        return True

    def _release(self, spinning: bool) -> bool:
        """Release the parked lanes whose barrier or warp operation is satisfied, when no other group can run.

        Returns whether there are any. Raises BarrierDivergence or WarpMismatch if not, unless other lanes are
        `spinning` in a waiting loop.
        """
        parked, waiting = self.parked, self.waiting
        moved = self.named_barriers is not None and self.named_barriers.release(parked, waiting)
        for at, group in list(parked.items()):
            ready = self.gates.ready(group, at)
            if ready is True:
                self._let_go(parked.pop(at), at)
                moved = True
            elif ready.any():
                live = self.batch.kernel.code.blocks[at].live
                parts = (Selection(flat=np.flatnonzero(ready)), Selection(flat=np.flatnonzero(~ready)))
                if group.lanes.ragged:
                    parts = tuple(Selection(columns=part.flat) for part in parts)
                passing, parked[at] = group.split([(part, live) for part in parts])
                self._let_go(passing, at)
                moved = True
        if moved or spinning:
            return moved
        check_warp_gates(self.gates, parked)
        check_cluster_barrier(self.batch, parked)
        if self.named_barriers is not None:
            self.named_barriers.check(parked)
        barrier_divergence(self.batch, parked)

    def _let_go(self, group: Group, at: int) -> None:
        """Let a parked group whose gate is satisfied go on. Pass the teams together: they would only block on the same
        gate again."""
        waiting = self.waiting
        if not isinstance(waiting, Teams) or self.batch.kernel.code.blocks[at].gate not in MEETINGS:
            waiting.push(at, group)
            return
        through = self._through(group, at)
        if through is not None:
            waiting.push_passed(at, through)


def running() -> tuple[int, Location] | None:
    """Return the number of basic blocks that the latest batch of this process has run, and the location of the last
    one."""
    latest = Scheduler.latest and Scheduler.latest()
    if latest is None:
        return None
    steps, at = latest.now
    block = latest.batch.kernel.code.blocks[at]
    instruction = block.first or block.branch
    return None if instruction is None else (steps, instruction.location)


def _divergent_warps(predicate: np.ndarray, lanes: Lanes) -> int:
    """Return the number of warps whose lanes differ in the predicate."""
    if predicate.shape[1] == 1:
        return 0
    if lanes.masked:
        return lanes.divergent_warps(predicate)
    layout = lanes.layout
    matrix, repeat = layout.matrix(predicate, lanes.shape)
    mask = layout.full_mask(matrix.shape[0])
    if mask is not None:
        matrix = matrix & mask
    hold, present = masks.warp_bits(matrix), masks.ALL if mask is None else masks.warp_bits(mask)
    return int(np.count_nonzero((hold != 0) & (hold != present))) * repeat
