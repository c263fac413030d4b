"""Carry out one rank's plan: kernels and NCCL's calls on two streams, or all of it as one CUDA graph.

On the stand-in every step ends before the next begins, so a missing :class:`After` would go unnoticed. A plan therefore
runs there in one of several *orders* that its streams allow: as it is written, or with the messages as early or as late
as possible. A step that relies on an order that is not guaranteed then computes with data that has not arrived.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import numpy as np

from climb.bench.binding import bound
from climb.bench.cuda import backend, cp
from climb.bench.ladder import compiled_functions
from climb.bench.problem import Launch
from climb.bench.tensor_maps import tensor_map
from climb.distributed.ladder import SharedLadder
from climb.distributed.peers import map_peers, unmap
from climb.distributed.plan import (
    COMPUTE,
    MESSAGES,
    After,
    Barrier,
    Boxes,
    Collective,
    Compute,
    Copy,
    Exchange,
    Part,
    Peer,
    Plan,
    Send,
    Step,
    kind_of,
    needs,
    talks,
)
from climb.distributed.rank import Rank

Order = Literal["written", "early", "late"]


def ordered(plan: Plan, order: Order) -> Plan:
    """Return the steps of a plan in another order that its streams allow: with the messages as early or as late as
    possible."""
    if order == "written":
        return plan
    before = needs(plan)
    done: set[int] = set()
    steps: list[Step] = []
    while len(steps) < len(plan):
        able = [n for n in range(len(plan)) if n not in done and before[n] <= done]
        on_messages = [n for n in able if plan[n].stream == MESSAGES]
        others = [n for n in able if plan[n].stream != MESSAGES]
        chosen = (on_messages or others)[0] if order == "early" else (others or on_messages)[0]
        done.add(chosen)
        steps.append(plan[chosen])
    return tuple(steps)


class Execution:
    """One rank's plan, ready to run: kernels compiled, arrays allocated, peers' memory mapped, graph captured.

    ``arrays`` holds the rank's arrays on the device by name. If the rung shares arrays, all ranks must make one
    together. A call enqueues everything; later work on ``stream`` runs after it.
    """

    def __init__(
        self,
        ladder: SharedLadder,
        name: str,
        rank: Rank,
        size: Mapping[str, Any],
        arrays: dict[str, Any],
        order: Order = "written",
    ) -> None:
        self.ladder, self.name, self.rank, self.arrays = ladder, name, rank, arrays
        self.plan = ladder.plans(name, rank.place.ranks, size)[rank.place.rank]
        self.streams = {COMPUTE: cp.cuda.Stream(non_blocking=True), MESSAGES: cp.cuda.Stream(non_blocking=True)}
        shared = {one: arrays[one] for one in ladder[name].shared if one in arrays}
        self._peers = map_peers(rank, shared, self.stream)
        self._plan = ordered(self.plan, order)
        self._functions([step.launch for step in self._plan if isinstance(step, Compute)])  # all in one compilation
        self._steps = [self._ready(step) for step in self._plan]
        self._graph: Any = None

    @property
    def stream(self) -> Any:
        """The stream on which a run begins and ends."""
        return self.streams[COMPUTE]

    def __call__(self) -> None:
        """Enqueue the plan once."""
        if self._graph is not None:
            self._graph.launch(self.stream)
        else:
            self._issue()

    def capture(self) -> None:
        """Capture the plan as a CUDA graph, if its rung is one. The plan must have run before; all ranks capture."""
        if not self.ladder[self.name].graph or backend == "emulator":
            return
        with self.stream:
            self.stream.begin_capture()
            try:
                self._issue()
            finally:
                self._graph = self.stream.end_capture()

    def close(self) -> None:
        """Unmap the other ranks' arrays; before it, no rank may free an array that others have mapped."""
        self._graph = None
        unmap(self.rank, self._peers, self.stream)
        self._peers = {}

    def _issue(self) -> None:
        _follow(self.streams[MESSAGES], self.stream)
        for step in self._steps:
            step()
        _follow(self.stream, self.streams[MESSAGES])

    def timeline(self) -> list[tuple[str, str, str, float, float]]:
        """Run the plan once, step by step, with an event before and after each step; wait for it.

        Returns for each step that takes time its name, its kind ("kernel", "copy" or "message"), its stream, and when
        it began and ended, in seconds from the start of the run. The events take about a microsecond each. NaN on the
        stand-in.
        """
        start = _recorded(self.stream)
        _follow(self.streams[MESSAGES], self.stream)
        found = []
        for made, run in zip(self._plan, self._steps, strict=True):
            stream = self.streams[made.stream]
            before = _recorded(stream)
            run()
            if not isinstance(made, After):
                found.append((step_name(made), step_kind(made), made.stream, before, _recorded(stream)))
        _follow(self.stream, self.streams[MESSAGES])
        self.rank.wait(self.stream, f"the timeline of {self.name}")
        between = cp.cuda.get_elapsed_time
        return [(*what, between(start, a) * 1e-3, between(start, b) * 1e-3) for *what, a, b in found]

    # Steps

    def _ready(self, step: Step) -> Callable[[], None]:
        stream = self.streams[step.stream]
        if isinstance(step, Compute):
            return self._kernel(step, stream)
        if isinstance(step, After):
            on = self.streams[step.on]
            return lambda: _follow(stream, on)
        if isinstance(step, Copy):
            return self._copy(step, stream)
        if talks(step) and self.rank.comm is None:
            # One rank exchanges nothing, and a collective operation of one rank is a copy.
            return self._alone(step, stream)
        if isinstance(step, Exchange):
            return self._exchange(step, stream)
        if isinstance(step, Barrier):
            return lambda: self.rank.barrier(stream)
        return self._collective(step, stream)

    def _functions(self, launches: Sequence[Launch]) -> list[Any]:
        """Return the kernel of each launch, compiled for this rank's device."""
        owner = f"{self.name}, device {self.rank.device.id}"
        path, options = self.ladder.path(self.name), self.ladder.options(self.name)
        return compiled_functions(self.ladder.modules, owner, path, options, launches)

    def _kernel(self, step: Compute, stream: Any) -> Callable[[], None]:
        launch = step.launch
        (function,) = self._functions([launch])
        args = tuple(self._argument(arg) for arg in launch.args)
        return lambda: function(launch.grid, launch.block, args, shared_mem=launch.shared_mem, stream=stream)

    def _argument(self, arg: Any) -> Any:
        if isinstance(arg, Peer):
            return self.arrays[arg.array] if arg.rank == self.rank.place.rank else self._peers[arg.array, arg.rank]
        if isinstance(arg, Part):
            return self._view(arg)
        if isinstance(arg, Boxes):
            whole = self.arrays[arg.part.array] if arg.rank is None else self._peers[arg.part.array, arg.rank]
            return tensor_map(_cut(whole, arg.part).reshape(arg.shape), arg.box)
        return bound(arg, self.arrays)

    def _copy(self, step: Copy, stream: Any) -> Callable[[], None]:
        whole = self.arrays[step.source.array] if step.rank is None else self._peers[step.source.array, step.rank]
        target, source = self._view(step.target), _cut(whole, step.source)

        def copy() -> None:
            if backend == "emulator":
                cp.copyto(target, source)
            else:
                kind = cp.cuda.runtime.memcpyDefault
                cp.cuda.runtime.memcpyAsync(target.data.ptr, source.data.ptr, target.nbytes, kind, stream.ptr)

        return copy

    def _exchange(self, step: Exchange, stream: Any) -> Callable[[], None]:
        nccl, comm = cp.cuda.nccl, self.rank.comm
        calls = []
        for message in step.messages:
            part = self._view(message.part)
            call, other = (comm.send, message.to) if isinstance(message, Send) else (comm.recv, message.source)
            calls.append((call, part, part.size, nccl_type(part.dtype), other))

        def exchange() -> None:
            nccl.groupStart()
            for call, part, count, kind, other in calls:
                call(part.data.ptr, count, kind, other, stream.ptr)
            nccl.groupEnd()

        return exchange

    def _collective(self, step: Collective, stream: Any) -> Callable[[], None]:
        nccl, comm = cp.cuda.nccl, self.rank.comm
        source, target = self._view(step.source), self._view(step.target)
        kind = nccl_type(source.dtype)
        how = {"allReduce": (nccl.NCCL_SUM,), "reduceScatter": (nccl.NCCL_SUM,), "broadcast": (step.root,)}
        rest = (*how.get(step.kind, ()), stream.ptr)
        call = getattr(comm, step.kind)
        return lambda: call(source.data.ptr, target.data.ptr, step.count, kind, *rest)

    def _alone(self, step: Step, stream: Any) -> Callable[[], None]:
        if isinstance(step, Collective) and step.source != step.target:
            return self._copy(Copy(step.target, step.source, step.stream), stream)
        return lambda: None

    def _view(self, part: Part) -> Any:
        return _cut(self.arrays[part.array], part)


def step_name(step: Step) -> str:
    """Return the name of a step in a picture of a run."""
    if isinstance(step, Compute):
        return step.label or step.launch.kernel.partition("<")[0]
    return kind_of(step)


def step_kind(step: Step) -> str:
    """Return the kind of a step: "kernel", "copy", or "message"."""
    return "kernel" if isinstance(step, Compute) else "copy" if isinstance(step, Copy) else "message"


def nccl_type(dtype: Any) -> int:
    """Return NCCL's number of a dtype."""
    return getattr(cp.cuda.nccl, f"NCCL_{np.dtype(dtype).name.upper()}")


def _cut(array: Any, part: Part) -> Any:
    return array.reshape(-1)[part.first : part.first + part.count]


def _recorded(stream: Any) -> Any:
    event = cp.cuda.Event()
    event.record(stream)
    return event


def _follow(stream: Any, on: Any) -> None:
    """Let a stream wait for the work that another one was given so far."""
    event = cp.cuda.Event(disable_timing=True)
    event.record(on)
    stream.wait_event(event)
