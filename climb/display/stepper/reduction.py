"""A block sums its floats: the lanes that add in each step, and the lanes that are idle meanwhile."""

from __future__ import annotations

from collections.abc import Sequence

from climb.bench.counting import block_events
from climb.bench.ladder import BoundRung
from climb.display.access_cost import plural
from climb.display.cell_output import CellOutput
from climb.display.stepper.frame import Cells, Drawing, Grid, Label, Layer, joined, number, stepper, text
from climb.display.stepper.tree import WARP, Addition, tree

_WIDTH, _PITCH, _DOWN, _CELL = 420, 5.7, 9, 7.6
_THREADS, _WORDS = 22, 234  # the left edges of the two grids
_MOST_WARPS = 8


def reduction_stepper(rung: BoundRung, *more: BoundRung, floats: int | None = None) -> CellOutput:
    """Step through the tree by which one block of each rung sums its floats, the rungs below one another.

    ``floats`` is the number that one block sums, by default one for each thread, or the number that the rung gives a
    block. Raises ValueError for a rung without a tree, and for a block of more than 8 warps.

    >>> reduction_stepper(reduction["interleaved"], reduction["sequential"])                  # doctest: +SKIP
    """
    drawing = Drawing(_WIDTH, 0)
    trees = [tree_of(one, floats) for one in (rung, *more)]
    names = [one.rung.name for one in (rung, *more)]
    steps = max(map(len, trees))
    top = 0.0
    for additions, name in zip(trees, names, strict=True):
        top += _panel(drawing, additions, name, top, steps)
    shared = any(step.kind == "shared" for additions in trees for step in additions)
    idle = "lane idle in a warp that adds" if shared else "result not needed"
    entries = [("on", "adds; the sum goes here"), ("waste", idle), ("soon", "sum still to add")]
    drawing.height = top
    sentences = [_sentence(trees, names, step) for step in range(steps)]
    where = "shared memory" if shared else "registers"
    title = f"A block adds up its floats in {where}: {joined(names)}"
    return stepper("reduction", title, drawing, sentences, key=entries, telling=min(5, steps - 1))


def tree_of(rung: BoundRung, floats: int | None = None) -> tuple[Addition, ...]:
    """Return the tree of the first block of a rung, from the emulator. Raises ValueError like ``reduction_stepper``."""
    launch = rung.launches({"n": floats or 1})[0]
    threads = launch.block[0]
    if threads > _MOST_WARPS * WARP:
        raise ValueError(
            f"the picture has room for {_MOST_WARPS} warps; a block of {rung.rung.name} has {threads} threads"
        )
    # The number of floats that the rung gives one block: the most for which one block is launched.
    count = floats or next(n for n in (8 * threads, 4 * threads, 2 * threads, threads) if _blocks(rung, n) == 1)
    return tree(block_events(rung, {"n": count}))


def _blocks(rung: BoundRung, n: int) -> int:
    return rung.launches({"n": n})[0].grid[0]


def _panel(drawing: Drawing, additions: Sequence[Addition], name: str, top: float, steps: int) -> float:
    """Add one rung to a drawing; return the height that it takes."""
    threads = 1 + max(t for step in additions for t in step.pairs)
    words = [w for step in additions for w in _words(step)]
    high, deep = -(-threads // WARP), -(-(1 + max(words, default=-1)) // WARP)
    first, lanes = top + 46, range(steps)
    states = [_state(additions, step) for step in lanes]

    left = Grid(WARP, _THREADS, first, _PITCH, _DOWN, _CELL, 0.9)
    right = Grid(WARP, _WORDS, first, _PITCH, _DOWN, _CELL, 0.9)
    busy = [f"{_warps(adders)} of {high} warps add, {len(adders)} of {threads} lanes" for adders, *_ in states]
    drawing.parts += [
        text(2, top + 14, name, "text", size=13),
        Label(_WIDTH - 4, top + 14, busy, "text", "end"),
        text(_THREADS, top + 34, "threads, by warp", size=11),
        *(text(_THREADS - 4, first + warp * _DOWN + 3, str(warp), anchor="end", size=8.5) for warp in (0, high - 1)),
        left.drawn(range(threads), "rest"),
        Cells("waste", left, [idle for _, idle, *_ in states]),
        Cells("other", left, [given for *_, given in states]),
        Cells("on", left, [adders for adders, *_ in states]),
    ]
    if deep:
        drawing.parts += [
            text(_WORDS, top + 34, "shared memory, by bank", size=11),
            right.drawn(range(deep * WARP), "rest"),
            Cells("soon", right, [live for _, _, live, *_ in states]),
            Cells("other", right, [read for _, _, _, read, *_ in states]),
            Cells("on", right, [written for _, _, _, _, written, _ in states]),
            Layer("line", [_arrows(additions, step, first) for step in lanes], 0.9),
        ]
    return 46 + max(high, deep) * _DOWN + 10


def _words(step: Addition) -> list[int]:
    if step.kind == "shared":
        return [w for pair in step.pairs.values() for w in pair]
    return [pair[0] for pair in step.pairs.values()] if step.kind == "keep" else []


_State = tuple[set[int], set[int], set[int], set[int], set[int], set[int]]


def _state(additions: Sequence[Addition], step: int) -> _State:
    """Return the states: threads that add, idle lanes of their warps; words that wait, are read, are written; lanes
    that are read."""
    if step >= len(additions):
        return set(), set(), set(), set(), set(), set()
    now = additions[step]
    later = [w for one in additions[step:] for w in ([] if one.kind == "keep" else _words(one))]
    fetched = {w for one in additions[step:] if one.kind == "fetch" for _, w in one.pairs.values()}
    kept = any(one.kind == "keep" for one in additions)
    stored = {w for one in additions[: step + 1] if one.kind == "keep" for w in _words(one)}
    live = (fetched & stored) if kept else set(later)
    adders = now.adders
    if now.kind in ("load", "keep", "fetch"):
        written = {into for into, _ in now.pairs.values()} if now.kind == "keep" else set()
        written |= set(_first_words(additions)) if now.kind == "load" and not kept else set()
        read = {w for _, w in now.pairs.values()} if now.kind == "fetch" else set()
        return adders, set(), live, read, written, set()
    warps = {t // WARP for t in adders}
    idle = {w * WARP + lane for w in warps for lane in range(WARP)} - adders
    if now.kind == "shuffle":
        given = {now.pairs[t][1] for t in adders} - adders
        return adders, idle - given, live, set(), set(), given
    read = {other for _, other in now.pairs.values()}
    return adders, idle, live, read, {into for into, _ in now.pairs.values()}, set()


def _first_words(additions: Sequence[Addition]) -> list[int]:
    return next((_words(step) for step in additions if step.kind == "shared"), [])


def _warps(threads: set[int]) -> int:
    return len({t // WARP for t in threads})


def _arrows(additions: Sequence[Addition], step: int, first: float) -> str:
    """Draw lines from the words that are read to the sums, if there are few enough to see them."""
    if step >= len(additions) or additions[step].kind != "shared" or len(additions[step].pairs) > 8:
        return ""
    out = []
    for into, other in additions[step].pairs.values():
        (x, y), (u, v) = _middle(other, first), _middle(into, first)
        bend = f"{number((x + u) / 2)} {number(min(y, v) - 5)}" if y == v else f"{number(u + 14)} {number((y + v) / 2)}"
        out.append(f"M{number(x)} {number(y)}Q{bend} {number(u)} {number(v)}")
    return "".join(out)


def _middle(word: int, first: float) -> tuple[float, float]:
    return _WORDS + (word % WARP + 0.42) * _PITCH, first + word // WARP * _DOWN


def _sentence(trees: Sequence[Sequence[Addition]], names: Sequence[str], step: int) -> str:
    said = [
        (name, _words_of(additions[step]) if step < len(additions) else "done")
        for additions, name in zip(trees, names, strict=True)
    ]
    if len({words for _, words in said}) == 1:
        return f"{said[0][1][:1].upper()}{said[0][1][1:]}."
    return "; ".join(f"{name}: {words}" for name, words in said) + "."


def _words_of(step: Addition) -> str:
    adders = step.adders
    if step.kind == "load":
        return f"each of {len(step.pairs)} threads has loaded its floats"
    if step.kind == "keep":
        return f"lane 0 of each warp stores its sum: {plural(len(step.pairs), 'word')}, then a barrier"
    if step.kind == "fetch":
        return f"{len(step.pairs)} lanes of the first warp load the sums of the warps"
    if not adders:
        return "the lanes add zeros"
    pair = next(iter(step.pairs[t] for t in sorted(adders)))
    apart = abs(pair[1] - pair[0])
    warps = _warps(adders)
    idle = WARP * warps - len(adders)
    who = f"{plural(len(adders), 'lane')} in {plural(warps, 'warp')} {'adds' if len(adders) == 1 else 'add'}"
    if step.kind == "shuffle":
        return f"{who} the value of the lane {apart} further on; {idle} other results are not needed"
    cost = f", {step.wavefronts} wavefronts a request" if step.wavefronts > 1 else ""
    return f"{who} the word {apart} further on{cost}, {idle or 'no'} {'lane' if idle == 1 else 'lanes'} idle"
