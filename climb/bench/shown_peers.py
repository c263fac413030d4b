"""Which peers a table or figure shows: of each library its fastest form, as a user who knows it would choose.

A record has many forms of one library: layouts, algorithms, precisions. TF32 and half precision are answers to another
question than fp32, so the fastest of them is shown beside the fastest of full precision, but only where it is faster:
otherwise the library has taken an fp32 kernel, or chosen badly.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

#: Precisions that give up accuracy for speed. 3xTF32 and BF16x9 are as accurate as fp32.
LOWER = ("TF32", "fp16", "bf16")
#: What a lower precision must save to be shown.
FASTER = 0.98


def shown(peers: Iterable[Any]) -> tuple[Any, ...]:
    """The peers to show, of the points measured at one size in one regime: those of full precision first, and of each
    kind the fastest first.

    Peers are grouped by ``library["name"]``; one without a description is a group of its own.
    """
    peers = tuple(peers)
    best: dict[tuple[str, bool], Any] = {}
    for point in peers:
        group = _library(point), _lower(point)
        if group not in best or point.median_s < best[group].median_s:
            best[group] = point
    kept = [
        point
        for (library, lower), point in best.items()
        if not (lower and (full := best.get((library, False))) and point.median_s >= FASTER * full.median_s)
    ]
    return tuple(sorted(kept, key=lambda point: (_lower(point), point.median_s)))


def _library(point: Any) -> str:
    return (getattr(point, "library", None) or {}).get("name", point.name)


def _lower(point: Any) -> bool:
    return (getattr(point, "library", None) or {}).get("precision") in LOWER
