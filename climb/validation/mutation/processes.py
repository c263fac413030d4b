"""Processes that a run of the command starts, and its working folder: however the run ends, both are removed."""

from __future__ import annotations

import contextlib
import math
import os
import resource
import signal
import subprocess
import tempfile
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path
from types import FrameType
from typing import TypeVar

T = TypeVar("T")

#: The factor between a process's limits by the clock and of computing: it waits for others on a busy machine, and for
#: ever in a deadlock.
BUSY = 5


class Stopped(Exception):
    """The run is being stopped, so no process may be started."""


class Processes:
    """The processes of a run, each in a separate process group with the processes that it starts itself."""

    def __init__(self) -> None:
        self._running: set[subprocess.Popen[str]] = set()
        self._stopped = False
        self._lock = threading.Lock()

    def run(
        self, command: Sequence[str], folder: Path, environment: Mapping[str, str], seconds: float = math.inf,
        errors: int = subprocess.STDOUT,
    ) -> tuple[int | None, str]:  # fmt: skip
        """Return exit status and output of a command; no status if it ran out of time and was ended.

        It may compute for ``seconds``, and take BUSY times that by the clock. ``errors`` is the destination of its
        standard error, by default the output. Raises Stopped if the run is stopped.
        """
        with self._lock:
            if self._stopped:
                raise Stopped
            process = subprocess.Popen(
                command, cwd=folder, env={**os.environ, **environment}, text=True,
                stdout=subprocess.PIPE, stderr=errors, start_new_session=True,
            )  # fmt: skip
            self._running.add(process)
        try:
            if seconds < math.inf:
                resource.prlimit(process.pid, resource.RLIMIT_CPU, (math.ceil(seconds), math.ceil(seconds)))
            output, _ = process.communicate(timeout=BUSY * seconds if seconds < math.inf else None)
        except subprocess.TimeoutExpired:
            _kill(process)
            return None, process.communicate()[0]
        finally:
            with self._lock:
                self._running.discard(process)
        if self._stopped:
            raise Stopped
        ended = process.returncode in (-signal.SIGXCPU, -signal.SIGKILL)
        return None if ended else process.returncode, output

    def stop(self) -> None:
        """End all processes with the processes that they have started; no process is started from now on."""
        with self._lock:
            self._stopped = True
            for process in self._running:
                _kill(process)


def _kill(process: subprocess.Popen[str]) -> None:
    """End a process and its group, unless it has already ended."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


@contextlib.contextmanager
def workplace(jobs: int) -> Iterator[tuple[Path, Processes, ThreadPoolExecutor]]:
    """Yield a folder for copies, and processes and threads that work in them.

    If the run ends early (a signal, an error of one thread), the processes are ended, the threads stop at their next
    process, and the folder is removed last.
    """
    processes = Processes()
    with tempfile.TemporaryDirectory(prefix="mutation-") as scratch, ThreadPoolExecutor(jobs) as pool:
        try:
            yield Path(scratch), processes, pool
        except BaseException:
            processes.stop()
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def results(futures: Iterable[Future[T]]) -> Iterator[T]:
    """Yield the results of futures as they are known; raises the first error of one.

    The main thread wakes up every second. Where another thread receives a signal, Python raises KeyboardInterrupt only
    once the main thread runs again, which may be after the longest test.
    """
    waiting = set(futures)
    while waiting:
        done, waiting = wait(waiting, timeout=1.0, return_when=FIRST_COMPLETED)
        yield from (future.result() for future in done)


@contextlib.contextmanager
def interrupted_once() -> Iterator[None]:
    """Let Ctrl-C, SIGTERM and SIGHUP raise KeyboardInterrupt, but only the first of them, so that cleaning up is not
    cut short. A signal that was ignored stays ignored (``nohup``).

    ``make`` sends SIGTERM on to its command when it is ended itself. Only the main thread may ask for this.
    """

    def interrupt(number: int, frame: FrameType | None) -> None:
        for each in earlier:
            signal.signal(each, signal.SIG_IGN)
        raise KeyboardInterrupt

    handlers = {each: signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    earlier = {each: handler for each, handler in handlers.items() if handler != signal.SIG_IGN}
    for each in earlier:
        signal.signal(each, interrupt)
    try:
        yield
    finally:
        for each, handler in earlier.items():
            signal.signal(each, handler)
