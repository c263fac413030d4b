"""Tools of Climb to the Roofline: what chapters, tests and ladders import.

``from climb import cp, announce, ladder_figure`` and so on. A name is looked up in its module when it is first
used, so that ``import climb`` is quick and matplotlib is loaded only by a chapter that draws. The first figure
function that is asked for also makes the notebook show figures as SVG.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

_WHERE = {
    "bench.announcement": ("announce", "describe"),
    "bench.arguments": ("ArgumentError",),
    "bench.checking": ("WrongResult", "compare", "poisoned", "verify"),
    "bench.counting": ("block_events", "count_kernel", "counters", "trace"),
    "bench.cpu": ("cpu_times",),
    "bench.cuda": ("backend", "cp", "replaying"),
    "bench.edits": ("edit",),
    "bench.exercise": ("Claim", "Exercise", "Verdict", "at_most", "check", "no_bank_conflicts"),
    "display.cpu_table": ("cpu_table",),
    "display.exercises": ("hints", "skeleton", "solution"),
    "display.figures": (
        "access_figure",
        "alt_text",
        "compared",
        "error_figure",
        "fragments_figure",
        "ladder_figure",
        "lanes_figure",
        "launch_figure",
        "messages_figure",
        "overview_figure",
        "ring_figure",
        "roofline_figure",
        "save",
        "spans_figure",
        "stalls_figure",
        "steps_figure",
        "sweep_figure",
        "timeline_figure",
        "two_gpus_figure",
        "warp_steps",
    ),
    "bench.ladder": ("BoundRung", "Ladder"),
    "bench.machine_code": ("fma_bank_reads", "longest_chain", "opcode_counts", "opcodes"),
    "toolchain.occupancy": ("CannotLaunch", "MULTIPROCESSORS", "kernel_occupancy", "occupancy_of"),
    "bench.occupancy_profile": ("occupancy_profile",),
    "bench.problem": ("Argument", "Launch", "Peer", "Problem", "Rung", "size_label"),
    "bench.profiling": ("hardware_counters",),
    "bench.records": ("MissingRecord", "PendingRung", "Point", "Record", "load_record", "pending"),
    "bench.sections": ("limiter",),
    "bench.registry": ("ladder_names", "load_ladder"),
    "bench.shown_code": ("shown_code", "shown_codes"),
    "bench.roofline": ("arithmetic_intensity", "limit", "limit_s"),
    "display.access_cost": ("pick",),
    "display.break_it": ("break_it",),
    "display.card": ("card",),
    "display.check_table": ("check_table",),
    "display.cell_output": ("Code", "table"),
    "display.gpu_tables": (
        "errors_table",
        "gpu_ceilings_table",
        "gpu_shares_table",
        "prediction_errors",
        "predictions_table",
        "sheets_table",
        "unrecorded",
    ),
    "display.listings": ("diff", "launch", "source"),
    "display.playgrounds": ("playground",),
    "display.prose_numbers": ("number", "say"),
    "display.rounding_table": ("rounding_table",),
    "display.shared_tables": ("shared_check_table", "shared_times_table", "steps_table"),
    "display.sources": ("claims_table", "reported"),
    "display.stepper.divergence": ("divergence_stepper",),
    "display.stepper.pipeline": ("pipeline_stepper",),
    "display.stepper.planes": ("planes_stepper",),
    "display.stepper.reduction": ("reduction_stepper",),
    "display.stepper.stream_k": ("stream_k_stepper",),
    "display.stepper.wavefronts": ("wavefronts_stepper",),
    "display.stalls_table": ("stalls_table",),
    "display.first_use_table": ("first_use_table",),
    "display.profile_table": ("launch_counts", "profile_table", "sections_table"),
    "bench.same_sms": ("expect_all", "timings_on_both"),
    "display.two_gpus": ("as_expected", "gpu_ratios", "two_gpus", "two_gpus_table"),
    "display.where_it_holds": ("where_it_holds",),
    "display.tables": ("counters_table", "sass", "timing_table"),
    "bench.spans": ("spans",),
    "bench.tensor_maps": ("tensor_map",),
    "distributed.recorded": ("shared_record", "shared_timelines"),
    "distributed.registry": ("load_shared_ladder", "shared_ladder_names"),
    "bench.timings": ("Timings", "timings", "verdict"),
    "bench.units": ("percent_text", "rate_text", "ratio_text", "significant", "time_text"),
}
_MODULE_OF = {name: module for module, names in _WHERE.items() for name in names}

__all__ = sorted(_MODULE_OF)


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"climb has no '{name}'; it has {', '.join(__all__)}")
    module = import_module(f"{__name__}.{_MODULE_OF[name]}")
    if _MODULE_OF[name] == "display.figures":
        import_module(f"{__name__}.display.style").use_in_notebook()
    value = getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
