"""Which peers a table or figure shows: of each library its fastest form, as a user who knows it would choose.

A record has many forms of one library: layouts, algorithms, precisions. A peer in another precision than the rungs'
answers another question, so the fastest of them is shown beside the fastest of the rungs' own, but only where it is
faster. Beside rungs in fp32, a slower form in TF32 is an fp32 kernel or badly chosen; beside rungs in TF32, a form in
fp32 is no match at all.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

#: Precisions that give up accuracy for speed. 3xTF32 and BF16x9 are as accurate as fp32.
LOWER = ("TF32", "fp16", "bf16")
#: What another precision must save to be shown.
FASTER = 0.98


def like_for_like(point: Any, precision: str = "fp32") -> bool:
    """Whether a peer computes as accurately as rungs of this precision, and no more so."""
    its = (getattr(point, "library", None) or {}).get("precision", "")
    return its not in LOWER if precision == "fp32" else its.startswith(precision)


def shown(peers: Iterable[Any], precision: str = "fp32") -> tuple[Any, ...]:
    """The peers to show, of the points measured at one size in one regime, beside rungs of this precision: those of
    the same precision first, and of each kind the fastest first.

    Peers are grouped by ``library["name"]``; one without a description is a group of its own.
    """
    peers = tuple(peers)
    best: dict[tuple[str, bool], Any] = {}
    for point in peers:
        group = _library(point), like_for_like(point, precision)
        if group not in best or point.median_s < best[group].median_s:
            best[group] = point
    kept = [
        point
        for (library, alike), point in best.items()
        if alike or (own := best.get((library, True))) is None or point.median_s < FASTER * own.median_s
    ]
    return tuple(sorted(kept, key=lambda point: (not like_for_like(point, precision), point.median_s)))


def _library(point: Any) -> str:
    return (getattr(point, "library", None) or {}).get("name", point.name)
