"""Nsight Compute's stall reasons, which say why warps wait; ``climb profile`` counts them with the other metrics.

In each cycle a scheduler looks at its resident warps. A warp that cannot issue has a reason. Summed over all warps and
divided by the instructions issued, the reasons give the cycles of waiting per instruction: ``waits(counts)["memory"] ==
12`` means that for every instruction that a scheduler issues, its warps spend 12 warp cycles waiting for data of global
or local memory. All reasons together are the warp cycles per instruction, the latency that other warps have to hide.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

_RATIO = "smsp__average_warps_issue_stalled_{}_per_issue_active.ratio"
_UNIT = "warp cycles per instruction issued, waiting for {}"
#: The events that a warp waits for, in a reader's words, by Nsight Compute's name of the reason (Kernel Profiling
#: Guide, "Warp Stall Reasons"). ``selected`` is the warp that issues; ``not_selected`` is a warp that could issue but
#: was not chosen.
REASONS: dict[str, str] = {
    "long_scoreboard": "memory",
    "short_scoreboard": "shared memory",
    "barrier": "a barrier",
    "lg_throttle": "the queue of global loads and stores",
    "mio_throttle": "the queue of shared memory and shuffles",
    "math_pipe_throttle": "a busy arithmetic unit",
    "wait": "a fixed latency",
    "no_instruction": "instructions",
    "branch_resolving": "a branch",
    "membar": "a fence",
    "drain": "stores at the end",
    "not_selected": "its turn",
    "selected": "nothing: it issues",
}
#: The metrics by their names in a record, as in ``climb.bench.profiling.METRICS``.
STALL_METRICS: dict[str, tuple[str, str]] = {
    **{f"stalled_{reason}": (_RATIO.format(reason), _UNIT.format(words)) for reason, words in REASONS.items()},
    "warps_active": ("smsp__warps_active.avg.per_cycle_active", "warps of a scheduler, in a cycle in which it has any"),
    "warps_eligible": ("smsp__warps_eligible.avg.per_cycle_active", "warps of a scheduler that could issue, per cycle"),
}


def waits(counts: Mapping[str, float]) -> dict[str, float]:
    """Return the warp cycles per instruction by what warps wait for, largest first, from the counts of one launch.

    Raises LookupError if the record was made before stall reasons were counted.
    """
    if missing := [reason for reason in REASONS if f"stalled_{reason}" not in counts]:
        raise LookupError(f"no stall reason {missing[0]} in these counts; `climb profile` counts it")
    found = {words: counts[f"stalled_{reason}"] for reason, words in REASONS.items()}
    return dict(sorted(found.items(), key=lambda item: -item[1]))


def cycles_per_instruction(counts: Mapping[str, float]) -> float:
    """Return all warp cycles per instruction issued: how long an instruction takes a warp, on average. Raises
    LookupError."""
    return math.fsum(waits(counts).values())
