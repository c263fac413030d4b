"""Run the rungs of a shared ladder on the stand-in and return their outcomes: in this process, or beside a GPU's.

A process that uses a GPU has no stand-in, and a reader's machine may have one GPU; there a child process runs the ranks
without one: ``python -m climb.distributed.outcomes CALL``, with the call as JSON, and JSON on standard output.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, astuple, replace
from functools import partial
from typing import Any

from climb import paths
from climb.bench.cuda import backend
from climb.bench.problem import Size
from climb.distributed.execution import Order
from climb.distributed.ladder import SharedLadder, SharedRung
from climb.distributed.plan import After, Place, Plan
from climb.distributed.running import Outcome, run


def outcomes(
    ladder: SharedLadder,
    size: Mapping[str, Any],
    ranks: int = 2,
    order: Order = "late",
    *,
    rungs: Sequence[str] | None = None,
    without: After | None = None,
) -> list[Outcome]:
    """Run each rung that takes the size, on this number of ranks, and return the outcomes in their order.

    ``rungs`` chooses some by name. ``without`` is left out of their plans, to see what goes wrong then. Raises like
    ``run``, though beside a GPU a RuntimeError with the same message, KeyError for a name that is no rung, and
    ValueError if a plan does not have the step.
    """
    chosen = taken(ladder, size, ranks)
    if rungs is not None:
        chosen = [rung.name for rung in map(ladder.__getitem__, rungs) if rung.name in chosen]
    if without is not None:
        ladder = replace(ladder, rungs=tuple(_lacking(rung, without) for rung in ladder.rungs))
    if backend == "emulator":
        return [run(ladder, name, size, ranks, order=order) for name in chosen]
    for name in chosen:  # what a plan refuses is an error of this process too
        ladder.plans(name, ladder.ranks(name, ranks), size)
    call = json.dumps([ladder.name, dict(size), ranks, order, chosen, without and astuple(without)])
    variables = {**os.environ, "WORKLOG_BACKEND": "emulator", "WORKLOG_TIMINGS": "record"}
    command = [sys.executable, "-m", "climb.distributed.outcomes", call]
    done = subprocess.run(command, env=variables, cwd=paths.ROOT, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"the ranks failed:\n{done.stderr.rstrip()}")
    found = json.loads(done.stdout.splitlines()[-1])
    if "failed" in found:
        raise RuntimeError(found["failed"])
    return [Outcome(**one) for one in found["outcomes"]]


def taken(ladder: SharedLadder, size: Mapping[str, Any], ranks: int) -> list[str]:
    """List the rungs that take a size on this number of GPUs."""
    return [rung.name for rung in ladder.rungs if rung.requires(size, ladder.ranks(rung.name, ranks)) is None]


def _lacking(rung: SharedRung, without: After) -> SharedRung:
    return replace(rung, plan=partial(_plan_without, rung, without))


def _plan_without(rung: SharedRung, without: After, place: Place, size: Size) -> Plan:
    plan = rung.plan(place, size)
    if without not in plan:
        raise ValueError(f"the plan of '{rung.name}' for rank {place.rank} has no {without}")
    return tuple(step for step in plan if step != without)


def main(arguments: Sequence[str]) -> None:
    """Print the outcomes, or the error of the ranks, as JSON."""
    from climb.distributed.registry import load_shared_ladder
    from climb.fake_cupy.ranks import Deadlock, RankFailed

    name, size, ranks, order, rungs, step = json.loads(arguments[0])
    without = None if step is None else After(*step)
    try:
        found = outcomes(load_shared_ladder(name), size, ranks, order, rungs=rungs, without=without)
    except (Deadlock, RankFailed) as error:
        print(json.dumps({"failed": str(error)}))
    else:
        print(json.dumps({"outcomes": [asdict(one) for one in found]}))


if __name__ == "__main__":
    main(sys.argv[1:])
