"""Playgrounds: a reader changes an access, a block or a problem and sees the cost at once.

A playground is an element with its initial values and the result as a sentence, computed here by the emulator's cost
model and the bench. Jupyter and a page without JavaScript show that sentence; in the book, the scripts in
``book/_static/play/`` turn the element into controls and a picture. Tests check that both give the same numbers and
sentences.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape
from types import SimpleNamespace
from typing import Any

import numpy as np

from climb.bench.units import significant, time_text
from climb.display.access_cost import GlobalPicture, SharedPicture, global_picture, plural, shared_picture
from climb.display.cell_output import CellOutput
from climb.display.index_expression import WARP, ExpressionError, lanes
from climb.display.playground_data import gpus, presets
from climb.emulator.counters.cost_model import BANKS
from climb.toolchain.occupancy import MULTIPROCESSORS, CannotLaunch, Occupancy, occupancy_of

_EVERY_LANE = "lane < 32"


def playground(kind: str, **initial: Any) -> CellOutput:
    """Make an interactive model with its initial values. ``kind`` is one of these:

    - ``"sectors"``: a global access. ``index`` (an expression of ``lane``, ``threadIdx.x``, ...), ``width`` (bytes a
      lane), ``offset`` (bytes from a 128-byte line to element 0), ``active`` (the condition under which a lane takes
      part), ``block`` (threads in a row of the block).
    - ``"banks"``: a shared access to ``tile[row][column]``, or to element ``index`` of the tile. ``width``, ``columns``
      (elements in a row), ``pad`` (elements added to each row), ``swizzle`` (low bits of the row that are XORed into
      the column), ``access`` ("load" or "store"), ``active``, ``block``.
    - ``"occupancy"``: ``registers`` (per thread), ``shared`` (bytes per block), ``threads`` (per block), ``arch``.
    - ``"roofline"``: ``preset`` (a ladder), or ``flops`` and ``bytes``; ``gpu``, ``bandwidth`` (a ceiling).

    Raises ValueError for an unknown kind or an impossible value, and ExpressionError for a bad expression.

    >>> playground("sectors", index="lane * 2")                                             # doctest: +SKIP
    """
    if kind not in _KINDS:
        raise ValueError(f"there is no playground '{kind}'; there are {', '.join(_KINDS)}")
    defaults, result = _KINDS[kind]
    if unknown := set(initial) - set(defaults):
        raise ValueError(f"'{kind}' has no {', '.join(sorted(unknown))}; it has {', '.join(defaults)}")
    state = _prepared(kind, {**defaults, **initial})
    code, said = result(state)
    data = "".join(f' data-{name}="{escape(str(value))}"' for name, value in state.items() if value != "")
    html = (
        f'<div class="rl-play" data-play="{kind}"{data}>\n'
        f"<p><code>{escape(code)}</code></p>\n<p>{escape(said)}</p>\n</div>"
    )
    return CellOutput(html, f"{code}\n{said}")


def _prepared(kind: str, state: dict[str, Any]) -> dict[str, Any]:
    for name, allowed in _ALLOWED[kind].items():
        if state[name] not in allowed:
            listed = f"{allowed[0]} to {allowed[-1]}" if isinstance(allowed, range) else ", ".join(map(str, allowed))
            raise ValueError(f"{name} is one of {listed}; got {state[name]!r}")
    if kind == "sectors" and state["offset"] % state["width"]:
        raise ValueError(f"offset {state['offset']} is no multiple of the width {state['width']}")
    if kind == "roofline" and state["gpu"] not in gpus():
        raise ValueError(f"there are no records of '{state['gpu']}'; there are records of {', '.join(gpus())}")
    if kind == "roofline" and state["preset"]:
        chosen = {one["name"]: one for one in presets()}
        if state["preset"] not in chosen:
            raise ValueError(f"there is no preset '{state['preset']}'; there are {', '.join(chosen)}")
        state |= {name: chosen[state["preset"]][name] for name in ("flops", "bytes", "bandwidth")}
    return state


def _active(state: dict[str, Any]) -> list[bool]:
    return [value != 0 for value in lanes(state["active"], state["block"])]


def access(kind: str, addresses: Sequence[int], active: Sequence[bool], width: int) -> Any:
    """Return an access as the access pictures take it, with address 0 in the inactive lanes."""
    where = np.where(active, np.array(addresses, np.int64), 0)
    return SimpleNamespace(kind=kind, addresses=where, active=np.array(active), width=width)


def sectors_access(state: dict[str, Any]) -> Any:
    """Return the global access that a state of the playground *sectors* describes."""
    active = _active(state)
    index = lanes(state["index"], state["block"], active)
    addresses = [each * state["width"] + state["offset"] for each in index]
    return access("global load", addresses, active, state["width"])


def say_sectors(picture: GlobalPicture) -> str:
    """Describe the cost of a global access, in words."""
    most = "the fewest possible" if picture.moved == picture.least else f"{picture.least} would do"
    waste = f"All {picture.fetched} bytes that move are used."
    if picture.used < picture.fetched:
        share = percent(picture.fetched - picture.used, picture.fetched)
        waste = f"{share} of the {picture.fetched} bytes that move are thrown away."
    lines = plural(len(picture.lines), "line")
    return f"{plural(picture.moved, 'sector')} on {lines} for {plural(len(picture.lanes), 'lane')}, {most}. {waste}"


def _sectors(state: dict[str, Any]) -> tuple[str, str]:
    asked = sectors_access(state)
    said = say_sectors(global_picture(asked)) if asked.active.any() else "No lane is active: nothing moves."
    return f"if ({state['active']}) value = data[{state['index']}];  // {state['width']} bytes a lane", said


def banks_access(state: dict[str, Any]) -> Any:
    """Return the shared access that a state of the playground *banks* describes.

    Raises ExpressionError if a lane reaches an element before the tile.
    """
    active = _active(state)
    columns = state["columns"]
    if state["index"]:
        row, column = zip(
            *(divmod(each, columns) for each in lanes(state["index"], state["block"], active)), strict=True
        )
    else:
        row, column = (lanes(state[name], state["block"], active) for name in ("row", "column"))
    mask = (1 << state["swizzle"]) - 1
    elements = [
        r * (columns + state["pad"]) + (_int(c) ^ (r & mask) if mask else c) for r, c in zip(row, column, strict=True)
    ]
    for lane, element in enumerate(elements):
        if not 0 <= element < 1 << 31:
            raise ExpressionError(f"lane {lane} reaches element {element}, outside shared memory", 0)
    return access(f"shared {state['access']}", [e * state["width"] for e in elements], active, state["width"])


def _int(value: int) -> int:
    """Return the 32-bit int with the bits of ``value``."""
    return (value + (1 << 31)) % (1 << 32) - (1 << 31)


def say_banks(picture: SharedPicture) -> str:
    """Describe the cost of a shared access, in words."""
    shared = sum(len(owners) > 1 for owners in picture.served.values())
    verb = "serves" if shared == 1 else "serve"
    broadcast = f" {plural(shared, 'word')} {verb} several lanes at once, by broadcast." if shared else ""
    cost = f"{plural(picture.wavefronts, 'wavefront')} for {plural(len(picture.lanes), 'lane')}"
    if not picture.conflicts:
        return f"{cost}, the fewest possible: no bank conflict.{broadcast}"
    words = [sum(bank == each for _, bank in picture.served) for each in range(BANKS)]
    return (
        f"{cost}; {picture.least} would do. Bank {words.index(max(words))} has {max(words)} different words to "
        f"deliver, one after another.{broadcast}"
    )


def _banks(state: dict[str, Any]) -> tuple[str, str]:
    asked = banks_access(state)
    said = say_banks(shared_picture(asked)) if asked.active.any() else "No lane is active: no wavefront."
    place = f"[{state['index']}]" if state["index"] else f"[{state['row']}][{state['column']}]"
    dials = f"rows of {state['columns']} + {state['pad']}, swizzle {state['swizzle']}, {state['width']} bytes a lane"
    code = f"value = tile{place};" if state["access"] == "load" else f"tile{place} = value;"
    return f"if ({state['active']}) {code}  // {dials}", said


def say_occupancy(found: Occupancy | CannotLaunch) -> str:
    """Say how many blocks fit on an SM, or why none fits, in words."""
    if isinstance(found, CannotLaunch):
        return f"This block cannot start: {found}."
    slots = found.multiprocessor.warps
    return (
        f"{plural(found.blocks, 'block')} of {plural(found.warps_per_block, 'warp')} on each SM: {found.warps} of "
        f"{slots} warps, {percent(found.warps, slots)} occupancy. Limited by {' and '.join(found.limited_by)}."
    )


def _occupancy(state: dict[str, Any]) -> tuple[str, str]:
    found: Occupancy | CannotLaunch
    try:
        found = occupancy_of(state["registers"], state["shared"], state["threads"], state["arch"])
    except CannotLaunch as error:
        found = error
    code = (
        f"{state['arch']}: {state['threads']} threads a block, {state['registers']} registers a thread, "
        f"{state['shared']} bytes of shared memory a block"
    )
    return code, say_occupancy(found)


def say_roofline(flops: float, moved: float, bandwidth: float, peak: float, gpu: str) -> str:
    """Name the limit of a problem, in words; ceilings are in bytes and FLOP per second."""
    memory, arithmetic = moved / bandwidth, flops / peak
    seconds = max(memory, arithmetic)
    side, limit = ("below", "Memory bandwidth") if memory >= arithmetic else ("above", "Arithmetic")
    return (
        f"{significant(flops / moved)} FLOP per byte, {side} the ridge at {significant(peak / bandwidth)}. {limit} is "
        f"the limit on the {gpu}: {prefixed(flops / seconds, 'FLOP/s')} at best, so {prefixed(flops, 'FLOP')} and "
        f"{prefixed(moved, 'B')} take at least {time_text(seconds)}."
    )


def _roofline(state: dict[str, Any]) -> tuple[str, str]:
    flops, moved = float(state["flops"]), float(state["bytes"])
    if flops <= 0 or moved <= 0:
        raise ValueError(f"flops and bytes are positive; got {state['flops']} and {state['bytes']}")
    gpu = gpus()[state["gpu"]]
    bandwidth, peak = (gpu["ceilings"][name] for name in (state["bandwidth"], "fma_tflop_s"))
    what = state["preset"] or "a problem"
    code = f"{what}: {prefixed(flops, 'FLOP')}, {prefixed(moved, 'B')}"
    return code, say_roofline(flops, moved, bandwidth, peak, gpu["name"])


def percent(part: int, whole: int) -> str:
    """Format a share as a whole percentage; 0 % or 100 % only if it is exactly that."""
    rounded = (200 * part + whole) // (2 * whole)
    if rounded == 0 and part:
        return "less than 1 %"
    return "more than 99 %" if rounded == 100 and part < whole else f"{rounded} %"


def prefixed(value: float, name: str) -> str:
    """Format a value with three digits and an SI prefix: ``137 GFLOP``."""
    for scale, prefix in ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= scale * 0.9995:
            return f"{significant(value / scale)} {prefix}{name}"
    return f"{significant(value)} {name}"


_BLOCKS = (32, 16, 8, 4)
_ALLOWED: dict[str, dict[str, Sequence[Any]]] = {
    "sectors": {"width": (1, 2, 4, 8, 16), "offset": range(128), "block": _BLOCKS},
    "banks": {"width": (4, 8, 16), "columns": range(1, 257), "pad": range(33), "swizzle": range(6), "block": _BLOCKS,
              "access": ("load", "store")},
    "occupancy": {"arch": tuple(MULTIPROCESSORS)},
    "roofline": {"bandwidth": ("copy_gb_s", "read_gb_s")},
}  # fmt: skip
#: The default values of each kind, and the function that returns the corresponding code and the result.
_KINDS: dict[str, tuple[dict[str, Any], Callable[[dict[str, Any]], tuple[str, str]]]] = {
    "sectors": ({"index": "lane", "width": 4, "offset": 0, "active": _EVERY_LANE, "block": WARP}, _sectors),
    "banks": (
        {"row": "lane", "column": "0", "index": "", "width": 4, "columns": 32, "pad": 0, "swizzle": 0,
         "access": "load", "active": _EVERY_LANE, "block": WARP},
        _banks,
    ),
    "occupancy": ({"registers": 32, "shared": 0, "threads": 256, "arch": "sm_90"}, _occupancy),
    "roofline": (
        {"preset": "", "flops": 1e12, "bytes": 1e10, "gpu": "nvidia-h200", "bandwidth": "copy_gb_s"}, _roofline,
    ),
}  # fmt: skip
