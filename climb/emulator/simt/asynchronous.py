"""mbarriers of a batch, and the bulk operations that are in flight.

A bulk operation may take effect at any time between its issue and its completion. Here it takes effect as late as
possible: when a thread waits for it and could not continue otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import numpy as np

from .async_access import AsyncAccess
from .lanes import Lanes
from .published_mbarriers import PublishedMbarriers
from .site import Site


@dataclass(eq=False)
class Operation:
    """A bulk operation of one thread, or of several that copy alike, that is in flight.

    `fetch` reads the source, `deliver` writes the target and completes. `barriers`: the words (see `Asynchronous`) of
    the mbarriers on which it completes, with the phase that each was in at the issue; empty if it belongs to a bulk
    group. `group`: the number of that group. `accesses`: its reads and writes; `open`: the accesses that the search for
    races considers in flight. `divide`: of an operation that stands for several copies, what returns those that
    complete on some mbarriers and the others, as operations of their own.
    """

    site: Site
    lane: Lanes
    fetch: Callable[[Operation], None]
    deliver: Callable[[Operation], None]
    barriers: dict[int, int] = field(default_factory=dict)
    group: int = -1
    accesses: tuple[AsyncAccess, ...] = ()
    open: list[AsyncAccess] = field(default_factory=list)
    data: object = None
    fetched: bool = False
    divide: Callable[[Operation, set[int]], list[Operation]] | None = None

    @property
    def writes_shared(self) -> bool:
        """Return whether the operation writes to shared memory."""
        return any(each.writes and each.site.space == "shared" for each in self.accesses)

    def parts(self, words: set[int]) -> list[Operation]:
        """Return the operation, divided if only some of its copies complete on mbarriers among `words`."""
        if self.divide is None or words.isdisjoint(self.barriers) or words.issuperset(self.barriers):
            return [self]
        return self.divide(self, words)

    def read(self) -> None:
        """Read the source, unless that has happened."""
        if not self.fetched:
            self.fetched = True
            self.fetch(self)

    def finish(self) -> None:
        """Read the source if need be, write the target and complete."""
        self.read()
        self.deliver(self)


class Asynchronous:
    """The mbarriers and operations of a batch. An mbarrier is identified by its word: the index of its 8 bytes in the
    shared memory of all blocks.

    `live`: bool by word, where an mbarrier has been initialised; `values`: uint64 by word, the state that mbarrier
    operations have left there. `initialised`: the site that initialised each word; `published`: the threads that know
    of that. Since anything last happened at an mbarrier, `polls` counts failed waits, and `polling`, bool by block *
    threads + thread, marks the threads that have waited in vain (None: none).
    """

    def __init__(self) -> None:
        self.live: np.ndarray | None = None
        self.values: np.ndarray | None = None
        self.initialised: dict[int, Site] = {}
        self.published: PublishedMbarriers | None = None
        self.operations: list[Operation] = []
        self.polls = 0
        self.polling: np.ndarray | None = None
        #: Bulk groups that each thread has committed, by block * threads + thread.
        self.commits: dict[int, int] = {}

    @property
    def used(self) -> bool:
        """Return whether there is an mbarrier or an operation."""
        return self.live is not None or bool(self.operations)

    def progress(self) -> None:
        """Record that something has happened at an mbarrier."""
        self.polls, self.polling = 0, None

    def prepare(self, words: int) -> None:
        """Make room for mbarriers in `words` words."""
        if self.live is None:
            self.live, self.values = np.zeros(words, np.bool_), np.zeros(words, np.uint64)
            self.published = PublishedMbarriers(words)

    def finish_at(self, words: Iterable[int]) -> bool:
        """Let the operations take effect that complete on any of these mbarriers; return whether there were any."""
        wanted = set(words)
        self.operations = [part for each in self.operations for part in each.parts(wanted)]
        return self._finish([each for each in self.operations if not wanted.isdisjoint(each.barriers)])

    def commit(self, threads: Iterable[int]) -> None:
        """Close the open bulk group of each thread."""
        for thread in threads:
            self.commits[thread] = self.commits.get(thread, 0) + 1

    def wait(self, threads: Iterable[int], number: int, reads_only: bool) -> None:
        """Let all but the latest `number` bulk groups of each thread take effect, or only read their sources."""
        done = {thread: self.commits.get(thread, 0) - number for thread in threads}
        reached = [
            each
            for each in self.operations
            if not each.barriers and each.group < done.get(int(each.lane.linear()[0]), 0)
        ]
        if reads_only:
            for each in reached:
                each.read()
        else:
            self._finish(reached)

    def _finish(self, operations: list[Operation]) -> bool:
        chosen = {id(each) for each in operations}
        self.operations = [each for each in self.operations if id(each) not in chosen]
        for each in operations:
            each.finish()
        if operations:
            self.progress()
        return bool(operations)
