"""The counters that ncu read on a GPU: refused when stale, equal to the emulator's counts where both count."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import pytest
from tools.pending import TO_PROFILE_THERE

from climb import counters, hardware_counters, load_ladder
from climb.bench import profiling, records
from climb.bench.records.kinds import HardwareRecord
from climb.bench.same_sms import SECOND_GPU

FILES = sorted(records.RECORDS.glob("*/hardware/*.json"))

CSV = """==PROF== Connected to process 1
"ID","Kernel Name",{heads}
"","",{units}
"0","copy",{values}
"""


def csv_text(**changed: str) -> str:
    names = [metric for metric, _ in profiling.METRICS.values()]
    values = dict.fromkeys(names, "1,048,576") | changed
    return CSV.format(
        heads=",".join(f'"{name}"' for name in names),
        units=",".join('""' for _ in names),
        values=",".join(f'"{values[name]}"' for name in names),
    )


def test_a_page_of_ncu_is_read() -> None:
    busy, _ = profiling.METRICS["dram_busy"]
    (row,) = profiling.parse(csv_text(**{busy: "91.56"}))
    assert set(row) == set(profiling.METRICS)
    assert row["load_sectors"] == 1 << 20
    assert isinstance(row["load_sectors"], int)
    assert row["dram_busy"] == 91.56


def test_a_metric_that_ncu_did_not_give_is_an_error() -> None:
    metric, _ = profiling.METRICS["dram_bytes_read"]
    with pytest.raises(KeyError, match="dram__bytes_read"):
        profiling.parse(csv_text().replace(metric, "another"))


def test_counters_of_a_changed_kernel_are_refused(tmp_path, monkeypatch) -> None:
    path = profiling.counters_path("strided")
    data = json.loads(path.read_text(encoding="utf-8"))
    size = data["points"][0]["size"]
    data["points"][0]["source_sha256"] = "0" * 64
    (tmp_path / "gpu" / "hardware").mkdir(parents=True)
    (tmp_path / "gpu" / "hardware" / "strided.json").write_text(json.dumps(data), encoding="utf-8")
    monkeypatch.setattr(profiling.records, "RECORDS", tmp_path)
    with pytest.raises(LookupError, match=r"stale hardware counters of strided.*climb profile strided"):
        hardware_counters("strided", "gpu").at("strided", size)


def test_missing_counters_name_the_ladder_or_size() -> None:
    with pytest.raises(LookupError, match="no hardware counters of fma"):
        hardware_counters("fma")
    with pytest.raises(LookupError, match="no hardware counters of strided at n=7, stride=3"):
        hardware_counters("strided").at("strided", {"n": 7, "stride": 3})
    with pytest.raises(KeyError, match="ladder strided has no rung 'stride'; it has"):  # not pending: it does not exist
        hardware_counters("strided").at("stride", {"n": 7, "stride": 3})


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_committed_counters_are_fresh(path: Path) -> None:
    """A ladder may have rungs that nobody has profiled yet; what was profiled must be the kernel of today, unless it is
    known to wait for the second GPU."""
    command, gpu = records.load(path, HardwareRecord).command, path.parent.parent.name
    known = hardware_counters(load_ladder(command.split()[-1]), gpu)
    assert known.points
    for point in known.points:
        if gpu == SECOND_GPU and (path.stem, point.name) in TO_PROFILE_THERE:
            with pytest.raises(records.PendingRung, match="stale hardware counters"):
                known.at(point.name, point.size)
            warnings.warn(
                f"pending: {path.stem} '{point.name}' has changed since it was profiled on {gpu}", stacklevel=1
            )
            continue
        counts = known.at(point.name, point.size)  # a profile may hold but some of the metrics
        assert counts.get("load_requests") or counts.get("instructions")  # a texture is read without a load


@pytest.mark.parametrize("name", sorted({**profiling.ALSO, **profiling.INSTEAD}))
def test_committed_counters_are_of_the_sizes_that_are_profiled_today(name: str) -> None:
    """Some rung has counts at each size; a rung that nobody has profiled yet has none."""
    ladder = load_ladder(name)
    asked = {tuple(sorted(size.items())) for _, size in profiling.cases(ladder)}
    assert {tuple(sorted(point.size.items())) for point in hardware_counters(ladder).points} == asked


@pytest.mark.parametrize("stride", [1, 2, 4, 8, 16, 32, 64])
def test_the_emulator_counts_what_the_hardware_counts(stride: int) -> None:
    """Requests and sectors of the strided copy at 2^18 elements, exactly."""
    size = {"n": 1 << 18, "stride": stride}
    counted = counters(load_ladder("strided")["strided"], size)
    hardware = hardware_counters("strided").at("strided", size)
    for kind, name in (("global load", "load"), ("global store", "store")):
        assert counted.total(kind).requests == hardware[f"{name}_requests"]
        assert counted.total(kind).sectors == hardware[f"{name}_sectors"]


@pytest.mark.parametrize("name", ["naive", "coalesced"])
def test_the_emulator_counts_the_products_requests(name: str) -> None:
    """Per request: 4096^3 is too much to emulate, and each request of a product costs what every other does."""
    rung = load_ladder("matmul")[name]
    counted = counters(rung, {"m": 64, "n": 64, "k": 64})
    for edge in (512, 4096):
        hardware = hardware_counters("matmul").at(name, {"m": edge, "n": edge, "k": edge})
        for kind, short in (("global load", "load"), ("global store", "store")):
            total = counted.total(kind)
            assert total.sectors * hardware[f"{short}_requests"] == hardware[f"{short}_sectors"] * total.requests
