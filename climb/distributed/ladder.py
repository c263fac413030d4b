"""A ladder over several GPUs: a problem cut into the shares of ranks, and rungs that are plans.

The rungs of one ladder differ in their plans, and may share one CUDA file. ``ladder.plans(name, ranks, size)`` has the
plans of all ranks, checked; ``climb.distributed.running`` runs them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from climb.bench import identity
from climb.bench.identity import expand_includes
from climb.bench.ladder import CUPY_OPTIONS, Rungs
from climb.bench.problem import Size, size_label
from climb.distributed import agreement
from climb.distributed.plan import Arrays, Compute, Place, Plan, as_json, places

_STANDARD = ("-std=c++17",)


class Refused(ValueError):
    """A rung does not take this size on this number of ranks; the message says why."""


@dataclass(frozen=True)
class SharedProblem:
    """The definition of a problem, and the part of it that each rank has.

    ``make_inputs`` makes whole inputs on the host, as for one GPU. ``arrays(place, size)`` gives shape and dtype of a
    rank's own arrays; ``share(inputs, place, size)`` gives their contents at the start, NaN where a rank has nothing
    yet; ``reference(inputs, place, size)`` gives the expected outputs at the end, in float64. ``flops`` and ``bytes``
    are the least work of all ranks together. ``spots(inputs, size)`` gives some rows of the whole outputs and their
    expected values, for sizes at which the whole reference takes too long; a rank's outputs are then its share of the
    rows. Ranks must compute the same bits as one GPU, unless ``same_bits`` is False: cutting the problem then changes
    how it rounds.
    """

    name: str
    title: str
    size_keys: tuple[str, ...]
    make_inputs: Callable[[Size, np.random.Generator], dict[str, np.ndarray]]
    arrays: Callable[[Place, Size], Arrays]
    share: Callable[[Mapping[str, np.ndarray], Place, Size], dict[str, np.ndarray]]
    reference: Callable[[Mapping[str, np.ndarray], Place, Size], dict[str, np.ndarray]]
    tolerance: Callable[[Size], float]
    flops: Callable[[Size], int]
    bytes: Callable[[Size], int]
    headline: tuple[Size, ...]
    check: tuple[Size, ...]
    spots: Callable[[Mapping[str, np.ndarray], Size], tuple[list[int], dict[str, np.ndarray]]] | None = None
    same_bits: bool = True


def _no_demand(size: Size, ranks: int) -> str | None:
    return None


@dataclass(frozen=True)
class SharedRung:
    """One way to share the work.

    ``plan(place, size)`` gives a rank's steps. ``source`` is the CUDA file, relative to the ladder's folder.
    ``workspace`` gives further arrays of a rank. ``alone`` rungs run on rank 0 only, as if there were no other rank. A
    ``graph`` rung captures its plan as a CUDA graph once and launches that. ``shared`` names arrays that other ranks
    map into their memory, for :class:`~climb.distributed.plan.Peer` arguments and copies. A rung that cuts the problem
    in its own way defines ``arrays``, ``share`` and ``reference``, which replace the problem's; ``tolerance`` replaces
    the problem's if a rung computes with less precision. ``arch``, ``"sm_90a"``, is for kernels with instructions of
    that one architecture.
    """

    name: str
    idea: str
    plan: Callable[[Place, Size], Plan]
    source: str
    workspace: Callable[[Place, Size], Arrays] = lambda place, size: {}
    requires: Callable[[Size, int], str | None] = _no_demand
    alone: bool = False
    graph: bool = False
    shared: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    arrays: Callable[[Place, Size], Arrays] | None = None
    share: Callable[[Mapping[str, np.ndarray], Place, Size], dict[str, np.ndarray]] | None = None
    reference: Callable[[Mapping[str, np.ndarray], Place, Size], dict[str, np.ndarray]] | None = None
    tolerance: Callable[[Size], float] | None = None
    arch: str = ""


@dataclass(frozen=True)
class SharedLadder(Rungs):
    """A problem with its rungs in order. ``gpus`` is the number of GPUs that its records are made on."""

    problem: SharedProblem
    folder: Path
    rungs: tuple[SharedRung, ...]
    gpus: int = 2

    def __getitem__(self, name: str) -> SharedRung:
        return self._rung(name)

    def ranks(self, name: str, gpus: int) -> int:
        """Return how many of the given GPUs a rung uses."""
        return 1 if self[name].alone else gpus

    def arrays(self, name: str, place: Place, size: Size) -> dict[str, tuple[tuple[int, ...], str]]:
        """Return all arrays of a rank."""
        own = self[name].arrays or self.problem.arrays
        return {**own(place, size), **self[name].workspace(place, size)}

    def tolerance(self, name: str, size: Size) -> float:
        """Return the largest error that a rung may have, relative to the largest value of an output."""
        return (self[name].tolerance or self.problem.tolerance)(size)

    def share(self, name: str, inputs: Mapping[str, np.ndarray], place: Place, size: Size) -> dict[str, np.ndarray]:
        """Return the contents of a rank's arrays at the start of a rung."""
        return (self[name].share or self.problem.share)(inputs, place, size)

    def reference(self, name: str, inputs: Mapping[str, np.ndarray], place: Place, size: Size) -> dict[str, np.ndarray]:
        """Return the expected contents of a rank's outputs at the end of a rung."""
        with np.errstate(all="ignore"):
            return (self[name].reference or self.problem.reference)(inputs, place, size)

    def plans(self, name: str, ranks: int, size: Size) -> tuple[Plan, ...]:
        """Return the plans of all ranks. Raises :class:`Refused`, and PlanError if they do not fit together."""
        return self.checked(name, ranks, size)[0]

    def messages(self, name: str, ranks: int, size: Size) -> tuple[agreement.Message, ...]:
        """List the messages of the plans, in order: content, sender and receiver. Raises like ``plans``."""
        return self.checked(name, ranks, size)[1]

    def checked(self, name: str, ranks: int, size: Size) -> tuple[tuple[Plan, ...], tuple[agreement.Message, ...]]:
        """Return plans and messages. Raises like ``plans``."""
        rung = self[name]
        if rung.alone and ranks != 1:
            raise Refused(f"{self.name} '{name}' runs on one rank, not on {ranks}")
        if reason := rung.requires(size, ranks):
            raise Refused(f"{self.name} '{name}' at {size_label(size)} on {ranks} ranks: {reason}")
        plans = tuple(rung.plan(place, size) for place in places(ranks))
        return plans, agreement.check(plans, [self.arrays(name, place, size) for place in places(ranks)])

    def path(self, name: str) -> Path:
        """Return the CUDA file of a rung."""
        return (self.folder / self[name].source).resolve()

    def options(self, name: str) -> tuple[str, ...]:
        """Return the compiler's options of a rung."""
        arch = self[name].arch
        return (*_STANDARD, *self[name].options, *((f"-arch={arch}",) if arch else ()))

    def sha256(self, name: str, ranks: int, size: Size) -> str:
        """Return the hash of what is measured, by the rule of ``identity``."""
        return identity.sha256(**self.measured(name, ranks, size))

    def measured(self, name: str, ranks: int, size: Size) -> dict[str, Any]:
        """Return what is measured, as ``identity.sha256`` takes it: source, options, the plans of all ranks as
        launches, and all their arrays as workspace. A plan that runs as a CUDA graph has one more option, "graph"."""
        steps = [
            {"kernel": "", "args": [], **as_json(step), "rank": rank}
            for rank, plan in enumerate(self.plans(name, ranks, size))
            for step in plan
        ]
        own = {
            f"{rank} {array}": [list(shape), dtype]
            for rank, place in enumerate(places(ranks))
            for array, (shape, dtype) in self.arrays(name, place, size).items()
        }
        options = [*self.options(name), *(["graph"] if self[name].graph else [])]
        return {"source": expand_includes(self.path(name)), "options": options, "launches": steps, "workspace": own}

    def launch_json(self, name: str, ranks: int, size: Size) -> dict[str, Any]:
        """Describe the launches for a record: rank 0's first kernel, the options, and how many steps each rank has."""
        plans = self.plans(name, ranks, size)
        first = next((step.launch.as_json() for step in plans[0] if isinstance(step, Compute)), {})
        rung = self[name]
        return {
            **first,
            "options": [*self.options(name), *CUPY_OPTIONS],
            "steps": [len(plan) for plan in plans],
            **({"graph": True} if rung.graph else {}),
        }
