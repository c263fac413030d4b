"""The work of a rank as data: steps on streams, and messages between ranks.

Steps on one stream run in their order; steps on two streams run in any order, unless an :class:`After` says which
waits. Extents are in elements.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from climb.bench.problem import Launch

#: The streams of a plan. Every plan ends when both have.
COMPUTE, MESSAGES = "compute", "messages"
STREAMS = (COMPUTE, MESSAGES)


@dataclass(frozen=True)
class Place:
    """The number of a rank, and the number of ranks. Raises ValueError for a rank that is not one of them."""

    rank: int
    ranks: int

    def __post_init__(self) -> None:
        if not 0 <= self.rank < self.ranks:
            raise ValueError(f"rank {self.rank} of {self.ranks}")

    def share(self, total: int) -> range:
        """Return this rank's part of ``total`` things: consecutive, and no two ranks' parts differ by more than one."""
        return range(total * self.rank // self.ranks, total * (self.rank + 1) // self.ranks)


def places(ranks: int) -> tuple[Place, ...]:
    """Return the places of all ranks."""
    return tuple(Place(rank, ranks) for rank in range(ranks))


@dataclass(frozen=True)
class Part:
    """``count`` elements of an array of this rank, from ``first`` on."""

    array: str
    first: int
    count: int

    def __str__(self) -> str:
        return f"{self.array}[{self.first}:{self.first + self.count}]"


@dataclass(frozen=True)
class Peer:
    """The array of that name on another rank, as an argument of a kernel that reads or writes it over the link."""

    array: str
    rank: int

    def __str__(self) -> str:
        return f"{self.array} of rank {self.rank}"


@dataclass(frozen=True)
class Boxes:
    """A tensor map of a part, as an argument of a kernel that has the copy engine bring boxes of it.

    The part, of this rank or of another, is taken as a tensor of ``shape``; elements outside are read as zeros.
    """

    part: Part
    shape: tuple[int, ...]
    box: tuple[int, ...]
    rank: int | None = None

    def __str__(self) -> str:
        shape, box = (" x ".join(map(str, extents)) for extents in (self.shape, self.box))
        owner = "" if self.rank is None else f" of rank {self.rank}"
        return f"tensor map of {self.part}{owner} ({shape}, boxes of {box})"


@dataclass(frozen=True)
class Compute:
    """Launch a kernel. Its ``args`` may be :class:`Peer`, :class:`Part` and :class:`Boxes` too. ``label`` names it in
    pictures."""

    launch: Launch
    stream: str = COMPUTE
    label: str = ""


@dataclass(frozen=True)
class Copy:
    """Copy within this rank's memory, or from another rank's by the copy engine."""

    target: Part
    source: Part
    stream: str = COMPUTE
    rank: int | None = None


@dataclass(frozen=True)
class Send:
    """Send a part to a rank."""

    part: Part
    to: int


@dataclass(frozen=True)
class Receive:
    """Receive a part from a rank."""

    part: Part
    source: int


@dataclass(frozen=True)
class Exchange:
    """Sends and receives that go on together: one group of NCCL's. ``label`` names it in messages and pictures."""

    label: str
    messages: tuple[Send | Receive, ...]
    stream: str = MESSAGES


@dataclass(frozen=True)
class Collective:
    """An operation of all ranks: ``allReduce``, ``reduceScatter`` (both sums), ``allGather`` or ``broadcast``.

    ``count`` is NCCL's: for an all-gather the elements that each rank gives, for a reduce-scatter those that each rank
    gets.
    """

    kind: str
    source: Part
    target: Part
    stream: str = MESSAGES
    root: int | None = None

    @property
    def count(self) -> int:
        return self.target.count if self.kind == "reduceScatter" else self.source.count


@dataclass(frozen=True)
class Barrier:
    """All ranks must reach this before any goes on: an all-reduce of one element."""

    stream: str = MESSAGES


@dataclass(frozen=True)
class After:
    """``stream`` waits for everything that ``on`` was given before."""

    stream: str
    on: str


Step = Compute | Copy | Exchange | Collective | Barrier | After
Plan = tuple[Step, ...]
#: The arrays of a rank by name: shape and dtype.
Arrays = Mapping[str, tuple[tuple[int, ...], str]]


def talks(step: Step) -> bool:
    """Return whether other ranks take part in a step."""
    return isinstance(step, Exchange | Collective | Barrier)


def kind_of(step: Step) -> str:
    """Return the label of an exchange, or the operation of a collective step; for any other step, its kind."""
    return step.label if isinstance(step, Exchange) else getattr(step, "kind", type(step).__name__.lower())


def needs(plan: Plan) -> list[set[int]]:
    """Return, for each step, the steps that must end before it: of its stream, and those that an :class:`After` names.

    Operations between ranks keep their order too, on any stream: NCCL requires the same order on all ranks.
    """
    last: dict[str, set[int]] = {stream: set() for stream in STREAMS}
    talked: int | None = None
    found: list[set[int]] = []
    for number, step in enumerate(plan):
        before = set(last[step.stream])
        if isinstance(step, After):
            before |= last[step.on]
        if talks(step):
            before |= {talked} if talked is not None else set()
            talked = number
        found.append(before)
        last[step.stream] = {number}
    return found


def parts(step: Step) -> Iterable[Part]:
    """Return the parts of this rank's arrays that a step names."""
    if isinstance(step, Compute):
        own = [arg.part for arg in step.launch.args if isinstance(arg, Boxes) and arg.rank is None]
        return [*(arg for arg in step.launch.args if isinstance(arg, Part)), *own]
    if isinstance(step, Exchange):
        return [message.part for message in step.messages]
    if isinstance(step, Collective):
        return [step.source, step.target]
    if isinstance(step, Copy):
        return [step.target] if step.rank is not None else [step.source, step.target]
    return []


def distant_parts(step: Step) -> Iterable[tuple[int, Part]]:
    """Return the parts of other ranks' arrays that a step names, with their ranks."""
    if isinstance(step, Compute):
        boxes = [arg for arg in step.launch.args if isinstance(arg, Boxes)]
        return [(arg.rank, arg.part) for arg in boxes if arg.rank is not None]
    return [(step.rank, step.source)] if isinstance(step, Copy) and step.rank is not None else []


def as_json(step: Step) -> dict[str, Any]:
    """Return a step in the form that records and the hash of a measured rung hold."""
    if isinstance(step, Compute):
        return {"step": "compute", "stream": step.stream, **step.launch.as_json()}
    if isinstance(step, Exchange):
        messages = [
            f"send {m.part} to {m.to}" if isinstance(m, Send) else f"receive {m.part} from {m.source}"
            for m in step.messages
        ]
        return {"step": "exchange", "stream": step.stream, "messages": messages}
    if isinstance(step, Copy):
        origin = "" if step.rank is None else f" of rank {step.rank}"
        return {"step": "copy", "stream": step.stream, "what": f"{step.source}{origin} to {step.target}"}
    if isinstance(step, Collective):
        root = {} if step.root is None else {"root": step.root}
        return {"step": step.kind, "stream": step.stream, "what": f"{step.source} to {step.target}", **root}
    if isinstance(step, Barrier):
        return {"step": "barrier", "stream": step.stream}
    return {"step": "after", "stream": step.stream, "on": step.on}
