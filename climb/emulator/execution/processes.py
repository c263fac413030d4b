"""The worker processes of this process: started when they first pay off, kept for later launches.

They are new Python processes, not forks: a fork copies every page of memory that either process changes, which costs
more than most launches take, and is not safe beside threads (Jupyter has some) and an open GPU.
"""

from __future__ import annotations

import atexit
import os
import pickle
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import numpy as np

from ..translation import cache
from .jobs import CANCELLED, Job, Result
from .pipes import Pipes
from .worker import map_shared

#: Seconds of launches that workers could have shortened, before any worker is started: about the cost of starting one.
START = 0.3
MOST_STARTS = 20  # the largest number of processes that are started: if they keep ending, there is a reason
KEPT_BYTES = 64 << 20  # of shared memory that a worker keeps between launches
_PROGRAM = """import sys
sys.path[:] = {path!r}
from climb.emulator.execution.worker import main
main({jobs}, {results}, {memory})
"""


class Worker:
    """A process that runs `worker.main`. `ready`: it waits for a job. `shared`: the memory shared with it, uint8."""

    def __init__(self) -> None:
        self.shared = np.zeros(0, np.uint8)
        self.ready = self.ended = self._started = False
        self._memory = os.memfd_create("memory of an emulator's worker")
        jobs, write = os.pipe()
        read, results = os.pipe()
        self._pipes = Pipes(read, write)
        import subprocess  # a tenth of the time to import the emulator; few launches need it

        program = _PROGRAM.format(path=sys.path, jobs=jobs, results=results, memory=self._memory)
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-c", program], pass_fds=(jobs, results, self._memory), stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            )  # fmt: skip
        except BaseException:
            self._pipes.close()
            os.close(self._memory)
            raise
        finally:
            os.close(jobs)
            os.close(results)

    @property
    def pid(self) -> int:
        """The process's identifier."""
        return self._process.pid

    def poll(self, seconds: float = 0) -> bool:
        """Return whether a job can be sent, waiting at most some seconds. Ends a process that runs another version."""
        if not self.ready and not self.ended:
            answer = self._receive(seconds)  # sent when it has started, or in reply to a cancelled job
            if answer is not None and not self._started and answer != cache.version():
                self.end()
            elif answer is not None:
                self._started = self.ready = True
        return self.ready

    def reserve(self, nbytes: int) -> np.ndarray:
        """Return the shared memory, at least `nbytes` of it."""
        if self.shared.size < nbytes:
            self._resize(nbytes)
        return self.shared

    def release(self) -> None:
        """Free the shared memory if it is large and the process does not use it."""
        if self.ready and self.shared.size > KEPT_BYTES:
            self._resize(0)

    def _resize(self, nbytes: int) -> None:
        os.ftruncate(self._memory, nbytes)
        self.shared = map_shared(self._memory) if nbytes else np.zeros(0, np.uint8)

    def send(self, job: Job) -> None:
        """Give the process a job."""
        self.ready = False
        self.shared[CANCELLED] = 0
        try:
            self._pipes.send(pickle.dumps(job, pickle.HIGHEST_PROTOCOL))
        except OSError:  # it has ended
            self.end()

    def cancel(self) -> None:
        """Tell the process to stop its job. It is not ready until it has stopped."""
        if self.shared.size:
            self.shared[CANCELLED] = 1

    def result(self, seconds: float) -> Result | None:
        """Return the result of the job; None if it failed. A process that takes longer is ended."""
        answer = self._receive(seconds)
        if answer is None:
            self.end()
            return None
        self.ready = True
        return pickle.loads(answer)

    def _receive(self, seconds: float) -> bytes | None:
        """Return the process's message if it arrives within some seconds, else None."""
        if self.ended:
            return None
        try:
            return self._pipes.receive(seconds)
        except (EOFError, OSError):
            self.end()
            return None
        except BaseException:  # interrupted, perhaps in the middle of a message
            self.end()
            raise

    def end(self) -> None:
        """Kill the process, and free its resources."""
        if self.ended:
            return
        self.ended, self.ready = True, False
        self._process.kill()
        self._process.wait()
        self._pipes.close()
        os.close(self._memory)
        self.shared = np.zeros(0, np.uint8)


class Pool:
    """The worker processes of this process. Ended processes are replaced, unless they keep ending."""

    def __init__(self) -> None:
        self.workers: list[Worker] = []
        self._lock = threading.Lock()
        self._owner = os.getpid()
        self._left = MOST_STARTS
        self._missed = 0.0

    @contextmanager
    def held(self) -> Iterator[bool]:
        """Keep the workers for one launch; yield whether it gets them. Jobs that it does not wait for are cancelled."""
        got = self._owner == os.getpid() and self._lock.acquire(blocking=False)
        try:
            yield got
        finally:
            if got:
                for worker in self.workers:
                    worker.release() if worker.ready else worker.cancel()
                self._lock.release()

    def miss(self, seconds: float) -> None:
        """Note the time of a launch that workers could have shortened."""
        self._missed += seconds

    def idle(self, number: int, spent: float) -> list[Worker]:
        """Return up to `number` workers that wait for a job, for a launch that has run for `spent` seconds.

        Starts workers when such launches have taken long enough; they are ready a while later.
        """
        self.workers = [worker for worker in self.workers if not worker.ended]
        with suppress(OSError):  # the limit on processes or memory is reached
            while len(self.workers) < number and self._left and self._missed + spent >= START:
                self._left -= 1
                self.workers.append(Worker())
        return [worker for worker in self.workers if worker.poll()][:number]

    def start(self, number: int, seconds: float = 60) -> int:
        """Start workers at once, for measurements, and wait until `number` are ready. Returns the number ready in
        time."""
        self.miss(START)
        self.idle(number, 0)
        return sum(worker.poll(seconds) for worker in self.workers)

    def end(self) -> None:
        """End all workers."""
        if self._owner == os.getpid():
            for worker in self.workers:
                worker.end()
            self.workers = []


pool = Pool()
atexit.register(pool.end)
