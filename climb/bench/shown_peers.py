"""Choose the peers that a table or figure shows: the fastest form of each library, as a user who knows it would choose.

A record has many forms of one library: layouts, algorithms, precisions. A peer in another precision than the rungs'
answers another question, so the fastest with less and the fastest with more are shown beside the fastest of the rungs'
own, but only where they are faster. Beside rungs in fp32, a slower form in TF32 is an fp32 kernel or badly chosen,
and a slower one in fp64 no choice; beside rungs in TF32, a form in fp32 is no match at all.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

#: Precisions that give up accuracy for speed. 3xTF32 and BF16x9 are as accurate as fp32.
LOWER = ("TF32", "fp16", "bf16")
#: Precisions that are more accurate than fp32.
HIGHER = ("fp64",)
#: The share of the time below which a peer in another precision is shown.
FASTER = 0.98


def precision_of(point: Any) -> str:
    """Return the precision in which a peer computed; "" for a point without a description."""
    return (getattr(point, "library", None) or {}).get("precision", "")


def like_for_like(point: Any, precision: str = "fp32") -> bool:
    """Return whether a peer computes as accurately as rungs of this precision, and not more accurately."""
    its = precision_of(point)
    return its not in (*LOWER, *HIGHER) if precision == "fp32" else its.startswith(precision)


def shown(peers: Iterable[Any], precision: str = "fp32") -> tuple[Any, ...]:
    """The peers to show, of the points measured at one size in one regime, beside rungs of this precision: those of
    the same precision first, and of each kind the fastest first.

    Peers are grouped by ``library["name"]``; one without a description is a group of its own. One that may use a lower
    precision, but ran in the rungs' own, is left out where another form of its library is as fast within the 2 % of
    ``FASTER``: it is the same kernel under a name that promises another.
    """
    peers = tuple(peers)
    peers = tuple(one for one in peers if not (_misnamed(one) and _has_equal(one, peers)))
    best: dict[tuple[str, bool, bool], Any] = {}
    for point in peers:
        group = _library(point), like_for_like(point, precision), precision_of(point) in HIGHER
        if group not in best or point.median_s < best[group].median_s:
            best[group] = point
    kept = [
        point
        for (library, alike, _), point in best.items()
        if alike or (own := best.get((library, True, False))) is None or point.median_s < FASTER * own.median_s
    ]
    return tuple(sorted(kept, key=lambda point: (not like_for_like(point, precision), point.median_s)))


def _misnamed(point: Any) -> bool:
    """Return whether a peer is named after a lower precision than the one in which it ran."""
    return like_for_like(point) and bool(set(point.name.split()) & set(LOWER))


def _has_equal(point: Any, peers: Iterable[Any]) -> bool:
    """Return whether a peer of the same library, named after what it ran, is as fast as this one, or nearly."""
    return any(
        _library(one) == _library(point)
        and like_for_like(one)
        and not _misnamed(one)
        and one.median_s * FASTER <= point.median_s
        for one in peers
    )


def _library(point: Any) -> str:
    return (getattr(point, "library", None) or {}).get("name", point.name)
