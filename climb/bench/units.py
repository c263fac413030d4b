"""Numbers as text for readers: three significant digits, a fitting unit, and the same text on every machine."""

from __future__ import annotations

import math
from typing import Literal

Resource = Literal["bytes", "flops"]


def significant(value: float, digits: int = 3) -> str:
    """Format ``value`` to ``digits`` significant digits, no exponent: ``1839.2`` as ``1840``, ``0.5021`` as
    ``0.502``."""
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    decimals = digits - 1 - math.floor(math.log10(abs(value)))
    rounded = round(value, decimals)
    if rounded and math.floor(math.log10(abs(rounded))) > math.floor(math.log10(abs(value))):
        decimals -= 1
    return f"{rounded:.{max(0, decimals)}f}"


def time_text(seconds: float, digits: int = 3) -> str:
    """Format a time with a fitting unit: ``0.000502`` as ``502 µs``, ``0.0018`` as ``1.80 ms``."""
    for scale, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")):
        if seconds >= scale * (1 - 0.5 * 10.0**-digits):
            return f"{significant(seconds / scale, digits)} {unit}"
    return f"{significant(seconds / 1e-9, digits)} ns"


def rate(work: int, seconds: float, resource: Resource) -> tuple[float, str]:
    """Return work per second as a value and its unit: GB/s for bytes, TFLOP/s for flops."""
    return (work / seconds / 1e9, "GB/s") if resource == "bytes" else (work / seconds / 1e12, "TFLOP/s")


def rate_text(work: int, seconds: float, resource: Resource) -> str:
    """Format work per second as text: ``4280 GB/s``."""
    value, unit = rate(work, seconds, resource)
    return f"{significant(value)} {unit}"


def percent_text(share: float) -> str:
    """Format a share as a percentage, with two digits below ten and whole above: ``2.7 %``, ``92 %``."""
    return f"{significant(100 * share, 2)} %" if share < 0.0995 else f"{100 * share:.0f} %"


def ratio_text(ratio: float) -> str:
    """Format a ratio as text: ``3.7x``, ``27x``, ``0.28x``; near one with two decimals, ``1.04x``."""
    return f"{ratio:.2f}x" if 0.895 <= ratio < 1.095 else f"{significant(ratio, 2)}x"


def spread(values: list[float], gap: float) -> list[float]:
    """Return positions of labels for ``values``, moved as little as needed to be ``gap`` apart, in the same order."""
    order = sorted(range(len(values)), key=lambda i: values[i])
    groups: list[tuple[float, list[int]]] = []
    for i in order:
        groups.append((values[i], [i]))
        while len(groups) > 1:
            (low, first), (high, second) = groups[-2], groups[-1]
            needed = gap * (len(first) + len(second)) / 2
            if high - low >= needed - 1e-12:
                break
            members = first + second
            shifts = [values[m] - gap * (k - (len(members) - 1) / 2) for k, m in enumerate(members)]
            groups[-2:] = [(sum(shifts) / len(shifts), members)]
    placed = [0.0] * len(values)
    for centre, members in groups:
        for k, m in enumerate(members):
            placed[m] = centre + gap * (k - (len(members) - 1) / 2)
    return placed
