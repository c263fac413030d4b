"""The targets of ``climb record`` for a part of a ladder."""

from __future__ import annotations

from collections.abc import Sequence

from climb.bench.measure import Target
from climb.bench.problem import Size
from climb.bench.registry import load_ladder


def choose_targets(load_name: str, rungs: Sequence[str], sizes: Sequence[Size]) -> list[Target]:
    """Choose the points of a partial measurement: ``rungs`` (none: rungs and peers) at ``sizes`` (none: the recorded
    ones).

    Raises KeyError for a rung that the ladder does not have, ValueError for a size with other keys than the problem's.
    """
    ladder = load_ladder(load_name)
    for size in sizes:
        if tuple(sorted(size)) != tuple(sorted(ladder.problem.size_keys)):
            raise ValueError(f"{ladder.name}'s size has the keys {', '.join(ladder.problem.size_keys)}; got {size}")
        for key, value in size.items():
            names = ladder.problem.kinds.get(key)
            if value not in names if names else not isinstance(value, int):
                raise ValueError(f"{ladder.name}: {key} is {value!r}; expected {_expected(names)}")
    at = sizes or ladder.problem.recorded
    chosen = [ladder[name] for name in rungs] if rungs else list(ladder)
    targets = [Target(load_name, "rung", b.name, dict(s)) for s in at for b in chosen if b.rung.requires(s) is None]
    if not rungs:
        targets += [
            Target(load_name, "peer", p.name, dict(s)) for s in at for p in ladder.peers if p.requires(s) is None
        ]
    return targets


def _expected(names: Sequence[str] | None) -> str:
    return f"one of {', '.join(names)}" if names else "a whole number"
