"""The ring picture: the slots of a ring of mbarriers in time, from being filled to being free again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from climb.bench.counting import block_events
from climb.bench.ladder import BoundRung
from climb.bench.problem import Size
from climb.display import style
from climb.display.label_layout import settle
from climb.emulator import Event

_KINDS = ("expect", "arrive", "passed")


@dataclass(frozen=True)
class Fill:
    """One use of a slot of a ring. Times count the steps at mbarriers that the emulator ran before.

    A producer expects bytes in ``slot`` at ``begun``; a consumer first sees that they have arrived at ``full``; the
    last consumer hands the slot back at ``handed``, None if none does.
    """

    slot: int
    begun: int
    full: int
    handed: int | None


def fills(events: Iterable[Event]) -> list[Fill]:
    """Return the uses of the slots, in the order in which they begin; if the last is unfinished, it is left out.

    Slots are told apart by the mbarriers at which bytes are expected; the other mbarriers, in the order of their
    addresses, are those at which the same slots are handed back. Raises ValueError if no bytes are expected, or if
    there are other mbarriers, but not one for each slot.
    """
    steps = [(at, event.kind, sorted(set(event.places.tolist()))) for at, event in enumerate(events)]
    full = sorted({place for _, kind, places in steps if kind == "expect" for place in places})
    empty = sorted({place for _, _, places in steps for place in places} - set(full))
    if not full or len(empty) not in (0, len(full)):
        raise ValueError(
            f"a ring needs an mbarrier that expects bytes, and one more, for each slot; got {full}, {empty}"
        )
    found: list[Fill] = []
    for slot, barrier in enumerate(full):
        begun = [at for at, kind, places in steps if kind == "expect" and barrier in places]
        for start, end in zip(begun, [*begun[1:], len(steps)], strict=True):
            inside = [(at, kind, places) for at, kind, places in steps if start < at < end]
            seen = [at for at, kind, places in inside if kind == "passed" and barrier in places]
            back = [at for at, kind, places in inside if kind == "arrive" and empty and empty[slot] in places]
            if seen:
                found.append(Fill(slot, start, seen[0], back[-1] if back else None))
    return sorted(found, key=lambda fill: fill.begun)


@style.styled
def ring_figure(rungs: Mapping[str, tuple[BoundRung, Size]], *, most: int = 60) -> Figure:
    """Draw the slots of a block's ring in time, a panel for each rung: in flight, held by consumers, free.

    Time is the emulator's order of the first ``most`` steps at mbarriers in block 0; it is not to scale.

    >>> ring_figure({"specialised": (matmul["specialised"], {"m": 8, "n": 8, "k": 512})})    # doctest: +SKIP
    """
    figure = style.new_figure(height=1.1 + 1.3 * len(rungs))
    panels = figure.subplots(len(rungs), 1, sharex=True, squeeze=False)[:, 0]
    said = []
    for axes, (name, (rung, size)) in zip(panels, rungs.items(), strict=True):
        events = block_events(rung, size, kinds=_KINDS)
        found = [fill for fill in fills(events) if fill.begun < most]
        slots = 1 + max(fill.slot for fill in found)
        for number, fill in enumerate(found):
            _draw(axes, number, fill, min(most, len(events)))
        axes.set_title(name, fontsize=11)
        axes.set_yticks(range(slots), [f"slot {slot}" for slot in range(slots)])
        axes.set_ylim(slots - 0.4, -0.6)
        axes.tick_params(length=0)
        axes.spines["left"].set_visible(False)
        said.append(f"{name}: {slots} slots, filled {len(found)} times.")
    panels[-1].set_xlabel("steps at mbarriers, in the emulator's order")
    settle(figure)
    return style.set_alt(figure, "Slots of a ring against time, in flight, held and free. " + " ".join(said))


def _draw(axes: Axes, number: int, fill: Fill, end: int) -> None:
    """Draw a use of a slot: pale while its copy is in flight, blue while consumers hold it, with its number."""
    last = fill.handed if fill.handed is not None else end
    axes.barh(fill.slot, fill.full - fill.begun, left=fill.begun, height=0.62, color=style.FAINT)
    axes.barh(fill.slot, last - fill.full, left=fill.full, height=0.62, color=style.BEST)
    axes.text(fill.begun + 0.3, fill.slot, str(number), va="center", fontsize=11)
