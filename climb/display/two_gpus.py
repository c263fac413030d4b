"""The results of a chapter on the book's second GPU: recorded times on both, beside the expected times."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from climb.bench import same_sms
from climb.bench.data_sheets import sheet_of
from climb.bench.problem import Size, size_label
from climb.bench.records import BOOK_GPU, PendingRung
from climb.bench.registry import load_ladder
from climb.bench.same_sms import SECOND_GPU, Expectation
from climb.bench.units import time_text
from climb.display.cell_output import CellOutput, table

#: The kernels of one ladder at one size; by default its first headline size.
Names = Sequence[str]


def two_gpus(chosen: Mapping[str, Names], sizes: Mapping[str, Size] | None = None) -> list[Expectation]:
    """Return the expected and the measured time of each kernel on the second GPU: ``{"copy": ["scalar",
    "vectorised"]}``.

    Names are rungs and peers of the ladder. ``sizes`` gives those that differ from the ladder's first headline size.
    Kernels without a time on the book's GPU are left out. Raises LookupError for a name that is neither rung nor peer.
    """
    rows = _each(chosen, sizes or {})
    return [found for _, found in rows if found is not None]


def gpu_ratios(chosen: Mapping[str, Names], sizes: Mapping[str, Size] | None = None) -> dict[str, float]:
    """Return the measured ratio of each kernel of :func:`two_gpus_table`, by its label there; pending ones are left
    out.

    >>> gpu_ratios({"copy": ["scalar", "vectorised"]})["scalar"]                               # doctest: +SKIP
    """
    each = _each(chosen, sizes or {})
    return {label: one.measured for label, one in each if one is not None and one.measured is not None}


def two_gpus_table(chosen: Mapping[str, Names], sizes: Mapping[str, Size] | None = None) -> CellOutput:
    """Show a row for each kernel: its times on both GPUs, the measured and the expected ratio. See :func:`two_gpus`.

    The caption counts the kernels that were as expected. A time that a GPU has not recorded yet is "pending".
    """
    found = _each(chosen, sizes or {})
    here, there = (sheet_of(folder).name.split()[0] for folder in (BOOK_GPU, SECOND_GPU))
    rows = [[label, *_cells(one)] for label, one in found]
    counted = as_expected(one for _, one in found if one is not None)
    caption = f"Times, and the ratio of the {there} to the {here}: {counted}"
    shown = table(rows, ["kernel", here, there, "ratio (expected)"], caption=caption)
    return replace(shown, html=shown.html.replace("rl-table", "rl-table rl-two-gpus", 1))


def _each(chosen: Mapping[str, Names], sizes: Mapping[str, Size]) -> list[tuple[str, Expectation | None]]:
    """Return each kernel's label and expectation; None if the book's GPU has no time of it yet.

    A label includes the ladder if there are several, and the size if it is not the headline size.
    """
    found: list[tuple[str, Expectation | None]] = []
    for ladder, names in chosen.items():
        before = f"{ladder}: " if len(chosen) > 1 else ""
        after = f", {size_label(sizes[ladder])}" if ladder in sizes else ""
        for name in names:
            try:
                one = same_sms.expect(load_ladder(ladder), name, sizes.get(ladder))
            except PendingRung:
                one = None
            found.append((before + name + after, one))
    return found


def _cells(one: Expectation | None) -> list[str]:
    if one is None:
        return ["pending", "pending", ""]
    if one.measured is None or one.measured_s is None:
        return [time_text(one.here_s), "pending", f"({one.expected:.2f})"]
    return [time_text(one.here_s), time_text(one.measured_s), f"{one.measured:.2f} ({one.expected:.2f})"]


def as_expected(found: Iterable[Expectation]) -> str:
    """Say how many kernels took the expected time, in words; kernels without a time are left out."""
    measured = [one for one in found if one.off is not None]
    if not measured:
        return "expected, not measured yet"
    kept = sum(abs(one.off or 0.0) < same_sms.CLOSE for one in measured)
    return f"{kept} of {len(measured)} within {100 * same_sms.CLOSE:.0f} % of what was expected"
