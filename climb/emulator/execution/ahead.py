"""Run the later batches of a launch ahead of time, in worker processes.

The launch runs its batches in order, as without workers. Once it seems long enough, it gives the workers a copy of the
current memory, and each worker a contiguous range of the later batches; it continues with the earlier ones. A worker
records what its batches read and change. It does not execute atomics, but keeps them for later. When the launch comes
to the batches of the workers, it takes their results, in order, unless

- a worker has read a place that the launch, or a worker with earlier batches, has changed since the copy was made, or
  has used a place by an atomic and otherwise;
- a worker has read an allocation that it got no copy of, because no worker had read it in the launch before;
- races in global memory are checked for, and one of them has changed a place that another has used;
- a worker has met an error of the kernel, or has failed or died.

Then all results of the workers are dropped, and the launch runs those batches itself. So results, counters, and errors
with their texts are those of one process: the first part of the launch never sees the workers' changes, and a worker
whose results are taken has read the same values as one process would have.
"""

from __future__ import annotations

import time
from contextlib import ExitStack

from ..memory.footprint import Footprint, note_written, overlap, read_and_changed, take_over
from ..runtime.atomics import apply
from ..simt.batch import Batch
from ..simt.launch_counts import LaunchCounts
from .batches import Batches
from .jobs import Job, Origin, Region, Result, allocation, fill, regions
from .processes import Pool, Worker

#: The estimated seconds that the later batches must take before workers pay off; and the seconds for each copied byte.
WORTH, COPYING = 0.002, 5e-10
MOST_BYTES = 1 << 30  # of memory that is copied for all workers together
#: A worker may take this many times as long as the launch itself has since it began, and some seconds more.
PATIENCE, GRACE = 4, 2.0


class Experience:
    """Lessons from earlier launches of a kernel. `pace`: seconds for each thread. `followed`: positions among the
    regions of a launch at which intervals of loads are too coarse. `unread`: positions that no worker has read, so the
    next launches do not copy them. `alone`: workers do not help."""

    def __init__(self) -> None:
        self.pace = 0.0
        self.followed: set[int] = set()
        self.unread: set[int] = set()
        self.alone = False


class Ahead:
    """The workers of one launch, which has at least two batches; use it in a `with` statement.

    `most`: the largest number of processes, including this one.
    """

    def __init__(
        self, batches: Batches, counts: LaunchCounts, most: int, origin: Origin, pool: Pool, experience: Experience
    ) -> None:
        self.batches, self.counts, self.most, self.origin = batches, counts, most, origin
        self.pool, self.experience = pool, experience
        self.memory, self.span = regions(batches)
        places = sorted(experience.followed & set(range(len(self.memory))))
        self.followed = frozenset(self.memory[place].address for place in places)
        self.unread = frozenset(one.address for place, one in enumerate(self.memory) if place in experience.unread)
        self.footprint: Footprint | None = None
        self.workers: list[Worker] = []
        self._first = -1  # the number of the workers' first batch
        self._current, self._wanted, self._asks, self._in_vain = 0, False, False, False
        self._began = self._asked = time.perf_counter()
        self._stack = ExitStack()

    def __enter__(self) -> Ahead:
        self._asks = self.span <= MOST_BYTES and self._stack.enter_context(self.pool.held())
        if self._asks and self._checks_races:
            self.footprint = Footprint(later=False, followed=self.followed)
        return self

    def __exit__(self, error: object, *_: object) -> None:
        if self._wanted and not self.workers:
            self.pool.miss(time.perf_counter() - self._began)
        # If the launch has failed too, the workers met the same error, and the next launch may succeed.
        self.experience.alone |= self._in_vain and error is None
        self._stack.close()

    @property
    def _checks_races(self) -> bool:
        return self.batches.checks.global_shadow is not None

    def run(self, number: int) -> None:
        """Run one batch; give work to workers before its end if that pays."""
        self._current = number
        self.batches.run(number, self.counts, self.footprint, self._consider if self._asks else None)
        self.experience.pace = (time.perf_counter() - self._began) / (self.batches.threads * (number + 1))

    def finished(self, number: int) -> bool:
        """Return whether workers have run all batches from `number` on; then their results are taken."""
        if number != self._first:
            return False
        limit = time.perf_counter() + PATIENCE * (time.perf_counter() - self._asked) + GRACE
        results: list[Result] = []
        for worker in self.workers:
            result = worker.result(max(limit - time.perf_counter(), 0))
            if result is None:
                break
            results.append(result)
        complete = len(results) == len(self.workers)
        valid = complete and self._had_what_they_read(results) and self._agree(results)
        if valid:
            for worker, result in zip(self.workers, results, strict=True):
                self._take(worker, result)
        elif not complete and not self.unread and not any(worker.ended for worker in self.workers):
            self._in_vain = True
        if not valid:
            self.experience.unread.clear()
        self.footprint = None
        return valid

    def _consider(self, batch: Batch) -> None:
        """Give work to workers if the later batches seem to take long enough; called before each basic block."""
        left = self.batches.number - self._current - 1
        number = min(self.most - 1, left, MOST_BYTES // self.span)
        spent = time.perf_counter() - self._began
        each = max(self.experience.pace * self.batches.threads, spent / (self._current + 1))
        if left * each < WORTH + COPYING * self.span * number:
            return
        self._wanted = True
        workers = self.pool.idle(number, spent)
        if workers:
            batch.tick, self._asks = None, False
            try:
                self._ask(workers, left)
            except (OSError, MemoryError):  # no room for the copies
                self.workers, self._first = [], -1
            batch.footprint = self.footprint

    def _ask(self, workers: list[Worker], left: int) -> None:
        # The launch itself has already begun the first of these batches.
        own, rest = divmod(left + 1, len(workers) + 1)
        sizes = [own + (index > len(workers) - rest) for index in range(len(workers) + 1)]
        self._first = start = self._current + sizes[0]
        self.workers = workers
        for worker, size in zip(workers, sizes[1:], strict=True):
            fill(worker.reserve(self.span), self.memory, self.batches, self.unread)
            worker.send(self._job(range(start, start + size)))
            start += size
        self._asked = time.perf_counter()
        if self.footprint is None:
            self.footprint = Footprint(later=False, followed=self.followed)

    def _job(self, numbers: range) -> Job:
        one = self.batches
        return Job(
            self.origin, numbers, self.memory, self.span, self.followed,
            (one.memory.stack_bytes, one.memory.heap_bytes), one.grid, one.block, one.cluster, one.blocks, one.size,
            one.parameters.tobytes(), one.shared_bytes, one.registers, one.max_steps, one.checks.chosen,
            frozenset(one.checks.thorough),
        )  # fmt: skip

    def _had_what_they_read(self, results: list[Result]) -> bool:
        """Return whether workers have read only what was copied for them. Note what the next launches need not copy."""
        read = {address for _, mine in results for address in mine.reads}
        read |= {address for _, mine in results for address, _ in mine.loads}
        places = enumerate(self.memory)
        self.experience.unread = {place for place, region in places if region.address not in read}
        return read.isdisjoint(self.unread)

    def _agree(self, results: list[Result]) -> bool:
        """Return whether the workers have read what they would have read after the batches before theirs.

        If only the intervals of loads suggest otherwise, later launches record loads exactly.
        """
        before, unclear = [self.footprint], set()
        for _, mine in results:
            unclear |= read_and_changed(mine.reads, mine.atomics)
            wrong = overlap(mine.loads, mine.atomics) or overlap(mine.atomics, mine.stores)
            for earlier in before:
                unclear |= read_and_changed(mine.reads, earlier.stores, earlier.atomics)
                wrong = wrong or overlap(mine.loads, earlier.stores, earlier.atomics)
                if self._checks_races:
                    unclear |= read_and_changed(earlier.reads, mine.stores, mine.atomics)
                    wrong = wrong or self._conflict(earlier, mine)
            if wrong:
                self._in_vain = True
                return False
            before.append(mine)
        if unclear:
            self.experience.followed |= {n for n, region in enumerate(self.memory) if region.address in unclear}
        return not unclear

    @staticmethod
    def _conflict(earlier: Footprint, mine: Footprint) -> bool:
        """Return whether both used a place that at least one of them changed, and not both by atomics."""
        return (
            overlap(earlier.loads, mine.stores, mine.atomics)
            or overlap(earlier.stores, mine.stores, mine.atomics)
            or overlap(earlier.atomics, mine.stores)
        )

    def _take(self, worker: Worker, result: Result) -> None:
        places: dict[int, Region] = {region.address: region for region in self.memory}
        for (address, nbytes), mask in result.footprint.stores.items():
            region = places[address]
            data = worker.shared[region.data : region.data + region.nbytes]
            take_over(allocation(self.batches, address), nbytes, mask, data)
        for update in result.footprint.updates:
            target = allocation(self.batches, update.address)
            apply(target.view(update.element), update.index, update.operation, update.value, update.other, False)
            note_written(update, target)
        self.counts.add(result.counts)


def run(
    batches: Batches, counts: LaunchCounts, processes: int, origin: Origin, pool: Pool, experience: Experience
) -> None:
    """Run all batches of a launch, in up to `processes` processes. Raises one of `errors` for a fault of the kernel."""
    if processes == 1:
        for number in range(batches.number):
            batches.run(number, counts)
        return
    with Ahead(batches, counts, processes, origin, pool, experience) as ahead:
        for number in range(batches.number):
            if ahead.finished(number):
                break
            ahead.run(number)
