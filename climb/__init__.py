"""The bench: what chapters, tests and problems import.

``from kernels.lab import cp, announce, ladder_figure`` and so on. A name is looked up in its module when it is first
used, so that importing the bench is quick and matplotlib is loaded only by a chapter that draws. The first figure
function that is asked for also makes the notebook show figures as SVG.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

# By name and at once: the function and its module are both called timings, and the function must win.
from .timings import timings as timings

_WHERE = {
    "access": ("pick",),
    "arguments": ("ArgumentError",),
    "checking": ("WrongResult", "compare", "poisoned", "verify"),
    "counting": ("count_kernel", "counters", "trace"),
    "cuda": ("announce", "backend", "cp", "describe", "replaying"),
    "exercise": ("Claim", "Exercise", "Verdict", "at_most", "check", "no_bank_conflicts", "skeleton", "solution"),
    "figures": (
        "access_figure",
        "alt_text",
        "compared",
        "ladder_figure",
        "lanes_figure",
        "overview_figure",
        "roofline_figure",
        "save",
        "steps_figure",
        "sweep_figure",
        "warp_steps",
    ),
    "ladder": ("BoundRung", "Ladder"),
    "occupancy": ("CannotLaunch", "MULTIPROCESSORS", "kernel_occupancy", "occupancy_of", "occupancy_profile"),
    "problem": ("Argument", "Launch", "Peer", "Problem", "Rung", "size_label"),
    "profiling": ("hardware_counters",),
    "records": ("MissingRecord", "Point", "Record", "load_record"),
    "registry": ("ladder_names", "load_ladder"),
    "roofline": ("arithmetic_intensity", "limit", "limit_s"),
    "show": (
        "Code",
        "card",
        "counters_table",
        "diff",
        "launch",
        "number",
        "sass",
        "say",
        "source",
        "table",
        "timing_table",
    ),
    "tables": ("opcode_counts", "opcodes"),
    "timings": ("Timings", "verdict"),
    "units": ("percent_text", "rate_text", "ratio_text", "significant", "time_text"),
}
_MODULE_OF = {name: module for module, names in _WHERE.items() for name in names}

__all__ = sorted(("timings", *_MODULE_OF))


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"kernels.lab has no '{name}'; it has {', '.join(__all__)}")
    module = import_module(f"{__name__}.{_MODULE_OF[name]}")
    if _MODULE_OF[name] == "figures":
        import_module(f"{__name__}.style").use_in_notebook()
    value = getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
