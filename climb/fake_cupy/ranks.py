"""Several ranks in one process: each is a thread with its own device, and one of them runs at a time.

A rank runs until it has to wait for another rank; then the next rank that can go on runs, in the order of their
numbers. So every run takes the same course. If no rank can go on, it is known what each of them waits for: this is a
deadlock, reported as an error at once. Real ranks are processes; threads stand for them here because the same function
then runs in both, with its calls to NCCL in the middle of it.
"""

from __future__ import annotations

import threading
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from climb.fake_cupy import current

_PACKAGE = Path(__file__).resolve().parents[1]


class Deadlock(RuntimeError):
    """No rank can go on; ``waiting`` says for each rank that has not ended what it waits for."""

    def __init__(self, waiting: dict[int, str]) -> None:
        self.waiting = waiting
        lines = [f"  rank {rank} waits in {what}" for rank, what in sorted(waiting.items())]
        super().__init__("\n".join(["deadlock: no rank can go on", *lines]))


class RankFailed(RuntimeError):
    """A rank raised an error, ``error``; the message names the rank, and the program's last line before it."""

    def __init__(self, rank: int, error: BaseException) -> None:
        self.rank, self.error = rank, error
        super().__init__(f"rank {rank} failed{_where(error)}: {type(error).__name__}: {error}")


def _where(error: BaseException) -> str:
    """Return the function and line of the program that raised an error: of the last frame outside this package."""
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if not Path(frame.filename).resolve().is_relative_to(_PACKAGE) and not frame.name.startswith("<")
    ]
    return f" in {frames[-1].name}, line {frames[-1].lineno}" if frames else ""


class _Aborted(BaseException):
    """Ends a rank after another has failed. Not an Exception, so that no program catches it by accident."""


class Conductor:
    """Runs `ranks` calls of a program, each in a thread, one at a time."""

    def __init__(self, ranks: int) -> None:
        if ranks < 1:
            raise ValueError(f"there must be at least one rank, not {ranks}")
        self.ranks = ranks
        self._may_run = [threading.Semaphore(0) for _ in range(ranks)]
        self._ready: list[Callable[[], bool] | None] = [lambda: True] * ranks
        self._waits_in: list[Callable[[], str]] = [lambda: "its start"] * ranks
        self._results: list[Any] = [None] * ranks
        self._failure: BaseException | None = None
        self._done = threading.Event()
        self._identities: dict[int, list[Any]] = {}

    def identity(self, make: Callable[[], Any]) -> Any:
        """Return the object made by the first rank to ask: the n-th call of every rank returns the same object."""
        asked = self._identities.setdefault(_own.rank, [])
        longest = max(self._identities.values(), key=len)
        asked.append(longest[len(asked)] if len(longest) > len(asked) else make())
        return asked[-1]

    def run(self, program: Callable[..., Any], arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
        """Call ``program(*arguments[rank])`` on every rank, and return the results in the order of ranks.

        Raises :class:`Deadlock`, and :class:`RankFailed` for the first error of a rank.
        """
        __tracebackhide__ = True  # IPython and pytest show the caller's own line last
        threads = [
            threading.Thread(target=self._one, args=(rank, program, arguments[rank]), name=f"rank {rank}", daemon=True)
            for rank in range(self.ranks)
        ]
        for thread in threads:
            thread.start()
        self._may_run[0].release()
        self._done.wait()
        for thread in threads:
            thread.join()
        if self._failure is not None:
            raise self._failure.with_traceback(None) from None
        return self._results

    def wait(self, ready: Callable[[], bool], what: Callable[[], str]) -> None:
        """Let other ranks run until `ready`; `what` names the call in which this rank waits, for the message of a
        deadlock."""
        rank = _own.rank
        if ready():
            return
        self._ready[rank], self._waits_in[rank] = ready, what
        self._pass_on(rank)
        self._may_run[rank].acquire()
        if self._failure is not None:
            raise _Aborted
        self._ready[rank] = lambda: True

    def _one(self, rank: int, program: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
        self._may_run[rank].acquire()
        _own.rank, _own.conductor = rank, self
        try:
            if self._failure is None:
                current.use(rank % current.count())
                self._results[rank] = program(*arguments)
        except _Aborted:
            pass
        except BaseException as error:
            if self._failure is None:
                self._failure = RankFailed(rank, error)
        self._ready[rank] = None
        self._pass_on(rank)

    def _pass_on(self, rank: int) -> None:
        """Let the next rank run that can go on; if none can, but some have not ended, end all of them."""
        left = [(rank + 1 + i) % self.ranks for i in range(self.ranks)]
        left = [other for other in left if self._ready[other] is not None]
        if not left:
            self._done.set()
            return
        able = [other for other in left if self._ready[other]()]  # type: ignore[misc]  # the others have ended
        if not able and self._failure is None:
            self._failure = Deadlock({other: self._waits_in[other]() for other in left})
        self._may_run[(able if self._failure is None else left)[0]].release()


class _Own(threading.local):
    """The rank of a thread."""

    rank = 0
    conductor: Conductor | None = None


_own = _Own()


def rank() -> int:
    """Return the rank of the calling thread; 0 outside of :func:`run_ranks`."""
    return _own.rank


def conductor() -> Conductor | None:
    """Return the conductor of the calling thread's rank; None outside of :func:`run_ranks`."""
    return _own.conductor


def run_ranks(program: Callable[..., Any], ranks: int, arguments: Sequence[tuple[Any, ...]] | None = None) -> list[Any]:
    """Call ``program(rank)``, or ``program(*arguments[rank])``, on each of `ranks` ranks; return their results.

    Rank r uses the emulated device r modulo the number of devices. Raises :class:`Deadlock` and :class:`RankFailed`.
    """
    __tracebackhide__ = True
    return Conductor(ranks).run(program, arguments or [(rank,) for rank in range(ranks)])
