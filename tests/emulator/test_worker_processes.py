"""The processes that run batches ahead: launches survive what happens to them, and they keep no more than they need."""

from __future__ import annotations

import os
import signal
import threading

import numpy as np
import pytest
from harness import Device
from tools.both_ways import PROCESSES, Tally, start_workers
from worker_launches import BLOCKS, THREADS, both_ways_compared, draw, empty, kernels  # noqa: F401

from climb.emulator.execution import ahead, batches, processes
from climb.emulator.execution.processes import KEPT_BYTES, Worker, pool
from climb.emulator.execution.workers import number_of_workers, workers


def test_launch_does_without_workers_if_there_is_no_room_for_copies(
    device: Device, compared: Tally, monkeypatch: pytest.MonkeyPatch
) -> None:
    reserve, full = Worker.reserve, iter([False, True])

    def fails(worker: Worker, nbytes: int) -> np.ndarray:
        if next(full):
            raise OSError("no space left on device")
        return reserve(worker, nbytes)

    monkeypatch.setattr(Worker, "reserve", fails)
    device.launch("store", BLOCKS, THREADS, draw(), empty())
    assert compared.taken == compared.refused == 0 and next(full, "asked twice") == "asked twice"


@pytest.mark.parametrize("how", ["killed", "stopped", "killed before"])
def test_launch_survives_its_workers(device: Device, monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    monkeypatch.setattr(ahead, "WORTH", 0)
    monkeypatch.setattr(ahead, "GRACE", 0.05)
    monkeypatch.setattr(batches, "LANES", 64)
    monkeypatch.setattr(batches, "MOST_LANES", 256)
    start_workers()
    ids = [worker.pid for worker in pool.workers]
    send = Worker.send

    def end(worker: Worker, job: processes.Job) -> None:
        if how == "killed before":
            os.kill(worker.pid, signal.SIGKILL)
            os.waitid(os.P_PID, worker.pid, os.WEXITED | os.WNOWAIT)
        else:
            os.kill(worker.pid, signal.SIGSTOP)
        send(worker, job)
        if how == "killed":
            os.kill(worker.pid, signal.SIGKILL)

    monkeypatch.setattr(Worker, "send", end)
    given, out = draw(), empty()
    with workers(PROCESSES):
        device.launch("store", BLOCKS, THREADS, given, out)
    assert np.array_equal(out, given * np.resize(np.float32([1, 2, 3, 4]), out.size))
    assert not device.kernel("store")._experience.alone, "the kernel is not to blame"
    left = {worker.pid for worker in pool.workers if not worker.ended}
    for each in set(ids) - left:
        with pytest.raises(ProcessLookupError):  # not even a zombie is left
            os.kill(each, 0)
    pool.end()
    assert not pool.workers and set(ids) - left


def test_what_workers_have_not_read_is_copied_again_when_they_read_it(
    device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ahead, "WORTH", 0)
    monkeypatch.setattr(ahead, "COPYING", 0)
    monkeypatch.setattr(batches, "LANES", 64)
    monkeypatch.setattr(batches, "MOST_LANES", 256)
    start_workers()
    taken, finished = [], ahead.Ahead.finished

    def counted(self: ahead.Ahead, number: int) -> bool:
        outcome = finished(self, number)
        if self.workers and number == self._first:
            taken.append((outcome, bool(self.unread)))
        return outcome

    monkeypatch.setattr(ahead.Ahead, "finished", counted)
    for second in (0, 0, 1, 1, 1):
        given, out = [draw(), 2 * draw()], empty()
        with workers(PROCESSES):
            device.launch("choice", BLOCKS, THREADS, *given, out, second)
        assert np.array_equal(out, given[second])
    # The third launch reads an array that the second one did not; so its workers had no copy of it.
    assert taken == [(True, False), (True, True), (False, True), (True, False), (True, True)]
    assert not device.kernel("choice")._experience.alone


def test_threads_of_this_process_launch_at_the_same_time(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ahead, "WORTH", 0)
    monkeypatch.setattr(batches, "LANES", 64)
    monkeypatch.setattr(batches, "MOST_LANES", 256)
    start_workers()
    right = []

    def launch() -> None:
        own = Device.of(device.compiled)
        given, out = draw(), empty()
        with workers(PROCESSES):
            own.launch("store", BLOCKS, THREADS, given, out)
        right.append(np.array_equal(out, given * np.resize(np.float32([1, 2, 3, 4]), out.size)))

    threads = [threading.Thread(target=launch) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert right == 4 * [True]


def test_large_shared_memory_is_freed_after_the_launch() -> None:
    start_workers()
    worker = pool.workers[0]
    with pool.held():
        worker.reserve(KEPT_BYTES + 1)
    assert worker.shared.size == 0 and os.fstat(worker._memory).st_size == 0


def test_number_of_workers_is_that_of_the_cores_unless_the_environment_says_otherwise(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)
    monkeypatch.delenv("CLIMB_WORKERS", raising=False)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: range(6))
    assert number_of_workers() == 6
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: range(96))
    assert number_of_workers() == 8
    monkeypatch.setenv("PYTEST_XDIST_WORKER", "gw0")
    assert number_of_workers() == 1
    monkeypatch.setenv("CLIMB_WORKERS", "3")
    assert number_of_workers() == 3
    with workers(2):
        assert number_of_workers() == 2
    for wrong in ("0", "-1", "many", ""):
        monkeypatch.setenv("CLIMB_WORKERS", wrong)
        with pytest.raises(ValueError, match="CLIMB_WORKERS"):
            number_of_workers()
