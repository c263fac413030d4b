"""A rank: its place, its GPU, its end of NCCL's communicator, and how long it waits for the others.

``connect()`` makes one, in a process that was started as a rank as well as in a thread of the stand-in.
"""

from __future__ import annotations

import importlib
import json
import os
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from climb.bench.cuda import backend, cp
from climb.distributed.environment import Started, started
from climb.distributed.plan import Place
from climb.distributed.rendezvous import PATIENCE, meet

if backend == "cupy":
    importlib.import_module("cupy.cuda.nccl")  # CuPy loads NCCL only if it is imported by name

#: The folder in which ranks publish their status for the watching process; unset without one.
STATUS = "CLIMB_STATUS"


class RankTimeout(RuntimeError):
    """Another rank did not do its part in time; the message names the operation."""


class NoNccl(RuntimeError):
    """CuPy finds no NCCL; the message says how to install it."""


class TooFewGpus(RuntimeError):
    """There are more ranks on this host than GPUs, but NCCL needs a GPU for each."""


@dataclass
class Rank:
    """This rank. ``comm`` is NCCL's communicator, with the calls of ``cp.cuda.nccl``; None for a rank by itself."""

    place: Place
    device: Any
    comm: Any = None
    patience: float = PATIENCE
    _flag: Any = field(default=None, repr=False)

    def wait(self, stream: Any, what: str) -> None:
        """Wait until a stream is done. Raises :class:`RankTimeout`, and aborts the communicator, after ``patience``."""
        self.says(what, waits=True)
        if backend == "emulator":
            return
        deadline = time.monotonic() + self.patience
        while not stream.done:
            if self.comm is not None:
                self.comm.check_async_error()
            if time.monotonic() > deadline:
                if self.comm is not None:
                    self.comm.abort()
                raise RankTimeout(f"rank {self.place.rank} waited {self.patience:.0f} s for the others in: {what}")
            time.sleep(0)
        stream.synchronize()  # raises the errors of a kernel
        self.says(what)

    def barrier(self, stream: Any) -> None:
        """Enqueue a barrier: the stream goes on when all ranks' streams have reached it. It does nothing for a rank by
        itself."""
        if self.comm is None:
            return
        if self._flag is None:
            self._flag = cp.zeros(1, dtype=cp.float32)
        nccl, at = cp.cuda.nccl, self._flag.data.ptr
        self.comm.allReduce(at, at, 1, nccl.NCCL_FLOAT32, nccl.NCCL_SUM, stream.ptr)

    def largest(self, values: Any, stream: Any) -> Any:
        """Return the largest of each value over all ranks: ``values`` is a NumPy array of float64."""
        if self.comm is None:
            return values
        nccl, own = cp.cuda.nccl, cp.asarray(values)
        cp.cuda.get_current_stream().synchronize()
        at = own.data.ptr
        self.comm.allReduce(at, at, own.size, nccl.NCCL_FLOAT64, nccl.NCCL_MAX, stream.ptr)
        self.wait(stream, "the largest of all ranks' values")
        return cp.asnumpy(own)

    def says(self, what: str, waits: bool = False) -> None:
        """Publish this rank's status for the watching process."""
        folder = os.environ.get(STATUS)
        if folder and backend != "emulator":
            path = Path(folder) / f"{self.place.rank}.json"
            partial = path.with_suffix(".partial")
            said = {"what": what, "waits": waits, "since": time.time(), "patience": self.patience}
            partial.write_text(json.dumps(said), encoding="utf-8")
            partial.replace(path)


def connect(what: dict[str, Any] | None = None, patience: float = PATIENCE) -> Rank:
    """Become a rank: choose the GPU, meet the other ranks, make the communicator.

    ``what`` says what this rank is about to run; all ranks must say the same. Raises Unmatched, NotStarted,
    :class:`NoNccl` and :class:`TooFewGpus`.
    """
    if backend == "emulator":
        return _in_process()
    how = started()
    gpus = cp.cuda.runtime.getDeviceCount()
    if how.local >= gpus:
        raise TooFewGpus(f"rank {how.place.rank} is number {how.local} on a host with {gpus} GPU(s); one GPU a rank")
    device = cp.cuda.Device(how.local)
    device.use()
    return Rank(how.place, device, _communicator(how, what or {}, patience), patience)


def _communicator(how: Started, what: dict[str, Any], patience: float) -> Any:
    if how.place.ranks == 1:
        return None
    nccl = cp.cuda.nccl
    if not nccl.available:
        raise NoNccl("CuPy finds no NCCL here; install nvidia-nccl-cu12, or nvidia-nccl-cu13 for CuPy of CUDA 13")
    # CuPy gives the identity as 128 bytes in one object or as numbers, depending on its version.
    given = meet(how, what, lambda: _to_json(nccl.get_unique_id()), patience)
    Rank(how.place, None, None, patience).says("the communicator is made", waits=True)
    return nccl.NcclCommunicator(how.place.ranks, _from_json(given), how.place.rank)


def _to_json(identity: Any) -> Any:
    return {"hex": identity.hex()} if isinstance(identity, bytes) else list(identity)


def _from_json(given: Any) -> Any:
    return bytes.fromhex(given["hex"]) if isinstance(given, dict) else tuple(given)


def _in_process() -> Rank:
    """Return the rank of the calling thread; a process without ranks is the only one."""
    from climb.fake_cupy import ranks

    conductor = ranks.conductor()
    if conductor is None:
        if (how := started()).place.ranks > 1:
            raise TooFewGpus(
                f"rank {how.place.rank} of {how.place.ranks} has no GPU; without GPUs all ranks run in one process: "
                f"python -m climb.launch -n {how.place.ranks}"
            )
        return Rank(Place(0, 1), cp.cuda.Device())
    place = Place(ranks.rank(), conductor.ranks)
    if place.ranks == 1:
        return Rank(place, cp.cuda.Device())
    comm = cp.cuda.nccl.NcclCommunicator(place.ranks, conductor.identity(cp.cuda.nccl.get_unique_id), place.rank)
    return Rank(place, cp.cuda.Device(), comm)
