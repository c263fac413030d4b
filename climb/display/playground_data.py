"""The data of the playgrounds: the limits of each SM, the ceilings of each GPU on record, and the ladders' work.

The book's build writes it beside the scripts (``book/_extensions/playground_pages.py``), so that no limit or ceiling is
typed in JavaScript.
"""

from __future__ import annotations

import json
import re
from functools import cache
from typing import Any

from climb.bench import records
from climb.bench.problem import size_label
from climb.bench.registry import load_ladder
from climb.bench.roofline import bandwidth_ceiling, unit
from climb.toolchain import occupancy

#: The ladders offered as starting points of the roofline; each has FLOPs.
PRESETS = ("saxpy", "reduction", "classifier", "conv1d", "conv2d", "stencil2d", "conv3d", "convlayer", "sgemm")


def playground_data() -> dict[str, Any]:
    """Return everything that the scripts need, as plain JSON values."""
    return {"sm": multiprocessors(), "rules": occupancy_rules(), "gpus": gpus(), "presets": presets()}


def script() -> str:
    """Return the data as a script that precedes the others."""
    data = json.dumps(playground_data(), ensure_ascii=False, separators=(",", ":"))
    # A rate of 3.2408 TB/s is 32408e8, not 3240800000000.0: pages load this.
    data = re.sub(r":([1-9]\d*?)(0{3,})(?:\.0)?(?=[,}])", lambda rate: f":{rate[1]}e{len(rate[2])}", data)
    return f"(globalThis.RLPlay = globalThis.RLPlay || {{}}).data = {data};\n"


def occupancy_rules() -> dict[str, int]:
    """Return the units and limits that all compute capabilities share."""
    return {
        "registerUnit": occupancy.REGISTER_UNIT,
        "schedulers": occupancy.SCHEDULERS,
        "registers": occupancy.REGISTERS_PER_SM,
        "registersPerBlock": occupancy.REGISTERS_PER_BLOCK,
        "registersPerThread": occupancy.REGISTERS_PER_THREAD,
        "threads": occupancy.THREADS_PER_BLOCK,
    }


def multiprocessors() -> dict[str, dict[str, Any]]:
    """Return the SM of each architecture."""
    return {
        arch: {
            "capability": sm.capability,
            "warps": sm.warps,
            "blocks": sm.blocks,
            "sharedPerBlock": sm.shared_per_block,
            "shared": sm.shared,
            "sharedUnit": sm.shared_unit,
            "reservedShared": sm.reserved_shared,
        }
        for arch, sm in occupancy.MULTIPROCESSORS.items()
    }


@cache
def gpus() -> dict[str, dict[str, Any]]:
    """Return each GPU with a record of a preset: its name and its ceilings in bytes, FLOP and operations per second.

    A folder of several GPUs of one kind has records of other ladders, and its ceilings are those of one GPU.
    """
    found: dict[str, dict[str, Any]] = {}
    for folder in sorted(path for path in records.RECORDS.iterdir() if path.is_dir() and path.name != "local"):
        measured = records.load_ceilings(folder)
        if measured is not None and any(records.record_path(name, folder=folder).exists() for name in PRESETS):
            rates = records.rounded(value * unit(name) for name, value in measured.values.items())
            ceilings = dict(zip(measured.values, rates, strict=True))
            found[folder.name] = {"name": measured.device["name"], "ceilings": ceilings}
    return found


@cache
def presets() -> list[dict[str, Any]]:
    """Return the work of each ladder in ``PRESETS`` at its headline size, its bandwidth ceiling and its best time by
    GPU."""
    out = []
    for name in PRESETS:
        ladder = load_ladder(name)
        problem, size = ladder.problem, ladder.problem.headline[0]
        best = {}
        for gpu in gpus():
            record = records.find_record(name, gpu)
            points = [p for p in (record.points if record else ()) if p.kind == "rung" and p.regime == "cold"]
            times = {p.name: p.median_s for p in points if dict(p.size) == dict(size)}
            if times:
                rung = min(times, key=lambda each: times[each])
                best[gpu] = {"rung": rung, "seconds": times[rung]}
        out.append(
            {
                "name": name,
                "size": size_label(size),
                "flops": int(problem.flops(size)),
                "bytes": int(problem.bytes(size)),
                "bandwidth": bandwidth_ceiling(problem, size),
                "best": best,
            }
        )
    return out
