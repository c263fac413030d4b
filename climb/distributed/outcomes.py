"""Run the rungs of a shared ladder on the stand-in and return their outcomes: in this process, or beside a GPU's.

A process that uses a GPU has no stand-in, and a reader's machine may have one GPU; there a child process runs the ranks
without one: ``python -m climb.distributed.outcomes NAME SIZE RANKS``, with JSON on standard output.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from climb import paths
from climb.bench.cuda import backend
from climb.distributed.ladder import SharedLadder
from climb.distributed.running import Outcome, run


def outcomes(ladder: SharedLadder, size: Mapping[str, Any], ranks: int = 2, order: str = "late") -> list[Outcome]:
    """Run each rung that takes the size, on this number of ranks, and return the outcomes in their order. Raises like
    ``run``."""
    if backend == "emulator":
        return [run(ladder, name, size, ranks, order=order) for name in taken(ladder, size, ranks)]  # type: ignore[arg-type]
    command = [
        sys.executable,
        "-m",
        "climb.distributed.outcomes",
        ladder.name,
        json.dumps(dict(size)),
        str(ranks),
        order,
    ]
    variables = {**os.environ, "WORKLOG_BACKEND": "emulator", "WORKLOG_TIMINGS": "record"}
    done = subprocess.run(command, env=variables, cwd=paths.ROOT, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"the ranks failed:\n{done.stderr.rstrip()}")
    return [Outcome(**one) for one in json.loads(done.stdout.splitlines()[-1])]


def taken(ladder: SharedLadder, size: Mapping[str, Any], ranks: int) -> list[str]:
    """List the rungs that take a size on this number of GPUs."""
    return [rung.name for rung in ladder.rungs if rung.requires(size, ladder.ranks(rung.name, ranks)) is None]


def main(arguments: Sequence[str]) -> None:
    """Print the outcomes as JSON."""
    from climb.distributed.registry import load_shared_ladder

    name, size, ranks, order = arguments
    found = outcomes(load_shared_ladder(name), json.loads(size), int(ranks), order)
    print(json.dumps([asdict(one) for one in found]))


if __name__ == "__main__":
    main(sys.argv[1:])
