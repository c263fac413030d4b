"""Compute-sanitizer's output is parsed, and the record of an H200 belongs to the faults as they are now."""

from __future__ import annotations

import pickle
import re
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tools.pending import REPORTED, REPORTED_BY_OLDER, TO_COUNT, TO_SANITIZE, TO_SANITIZE_AGAIN, TO_SANITIZE_NEWER

from climb.bench.records import pending
from climb.bench.registry import ladder_names, load_ladder
from climb.emulator import DeviceMemory, load
from climb.validation.agreement import record as counted
from climb.validation.faults import TOOLS, child, clean, clean_record, emulate, record, summary
from climb.validation.faults.catalogue import FAULTS, STEPS
from climb.validation.faults.exhibits import EXHIBITS
from climb.validation.faults.measuring import ALL, Prepared, digest, read

try:
    RECORD = record()
except LookupError:
    RECORD = None

SAID = """========= COMPUTE-SANITIZER

launch fault_0
========= Invalid __global__ write of size 4 bytes
=========     at fault_0+0x90 in fault.cu:3
=========     by thread (4,0,0) in block (3,0,0)
========= Program hit CUDA_ERROR_LAUNCH_FAILED (error 719) due to "unspecified launch failure" on CUDA API call
=========     Saved host backtrace up to driver entry point at error

driver fault_0 CUDA_ERROR_LAUNCH_FAILED

launch fault_12
========= Error: Race reported between Write access at fault_12+0x130 in fault.cu:5
=========     and Read access at fault_12+0x150 in fault.cu:6 [64 hazards]
=========
========= Error: Race reported between Read access at fault_12+0x170 in fault.cu:6
=========     and Write access at fault_12+0x150 in fault.cu:5 [64 hazards]

launch fault_13
========= ERROR SUMMARY: 3 errors
"""

#: Ladders that were timed on a GPU, but not yet run under compute-sanitizer: besides those that wait there, the ones
#: that wait to be counted as a whole.
TO_RUN = TO_SANITIZE | {name for name in TO_COUNT if name in ladder_names()}


def test_sanitizer_report_is_assigned_to_its_kernel() -> None:
    found = read(SAID)
    assert [(name, one["errors"]) for name, one in found.items()] == [("fault_0", 1), ("fault_12", 2), ("fault_13", 0)]
    assert found["fault_0"]["says"] == "Invalid __global__ write of size 4 bytes"
    assert found["fault_12"]["says"] == "Error: Race reported between Write access"
    assert (found["fault_0"]["driver"], found["fault_13"]["driver"]) == ("CUDA_ERROR_LAUNCH_FAILED", "")


def test_packed_launch_runs_on_the_emulator() -> None:
    """The emulator runs the bytes of the arguments that the child process passes to the driver."""
    fault = next(one for one in FAULTS if one.name == "negative index")
    compiled = fault.compiled(False, "fault_3")
    assert compiled.kernels == ("fault_3",)
    plain = pickle.loads(pickle.dumps(Prepared(fault, False, "fault_3", b"").plain()))
    assert (plain["kernel"], plain["grid"], plain["block"], plain["shared"]) == ("fault_3", (1, 1, 1), (32, 1, 1), 0)
    memory = DeviceMemory()
    args = []
    for kind, value in plain["args"]:
        assert kind == "array"
        held = memory.allocate(len(value))
        held.data[:] = np.frombuffer(value, np.uint8)
        args.append(held.address.to_bytes(8, "little"))
    load(compiled.ptx).kernel("fault_3").launch(plain["grid"], plain["block"], args, memory=memory)
    assert child.HARMLESS


def test_arguments_become_fresh_freed_or_null() -> None:
    by_name = {one.name: one for one in FAULTS}
    for name, faulty, kind in (
        ("use after free", True, "freed"), ("use after free", False, "fresh"), ("null pointer", True, "null"),
        ("null pointer", False, "fresh"), ("adding to fresh memory", True, "fresh"),
    ):  # fmt: skip
        assert [each for each, _ in Prepared(by_name[name], faulty, "k", b"").plain()["args"]] == [kind]


def test_summary_tables_tell_found_missed_and_refused_faults_apart() -> None:
    none, some = (
        {tool: {"errors": 0, "says": "", "driver": ""} for tool in TOOLS},
        {"errors": 2, "says": "x", "driver": ""},
    )
    faults = [
        {"name": "seen", "emulator": "Race: a", "tools": {**none, "racecheck": some}},
        {"name": "not seen", "emulator": "Race: b", "tools": none},
        {"name": "refused", "emulator": "LaunchError: c",
         "tools": {**none, "memcheck": {"errors": 0, "says": "", "driver": "CUDA_ERROR_INVALID_VALUE"}}},
        {"name": "not asked", "emulator": "Race: d", "tools": {**none, "memcheck": {}}},
    ]  # fmt: skip
    assert [one["name"] for one in summary.missed(faults)] == ["not seen"]
    shown = summary.by_kind(faults)._repr_html_()
    assert "racecheck 1" in shown and "not seen" in summary.missed_table(faults)._repr_html_()


def test_report_on_a_rung_belongs_to_the_launch_before_it() -> None:
    said = """launch copy scalar 0
========= COMPUTE-SANITIZER
launch saxpy float4 0
========= Invalid __global__ read of size 4 bytes
=========     at saxpy+0x90
launch saxpy float4 1
========= ERROR SUMMARY: 1 error
"""
    assert clean.read(said) == {
        "copy": {"launches": 1, "errors": 0, "says": ""},
        "saxpy": {"launches": 2, "errors": 1, "says": "float4 0: Invalid __global__ read of size 4 bytes"},
    }


def test_rungs_after_a_report_that_ends_the_process_run_in_another(tmp_path, monkeypatch) -> None:
    """The tool ends the process in the first launch of `b`, whose second launch it never sees; `c` has its own."""
    steps = [
        SimpleNamespace(names={"ladder": "copy", "rung": rung, "launch": at}, first=at == 0)
        for rung, at in (("a", 0), ("b", 0), ("b", 1), ("c", 0), ("c", 1))
    ]

    def tool(command: list[str], **_: Any) -> SimpleNamespace:
        said = ""
        for step in pickle.loads(Path(command[-1]).read_bytes()):
            said += f"launch copy {step.names['rung']} {step.names['launch']}\n"
            if step.names["rung"] == "b":
                said += "========= Barrier error detected.\n========= ERROR SUMMARY: 1 error\n"
                break
        return SimpleNamespace(stdout=said, stderr="")

    monkeypatch.setattr(clean.subprocess, "run", tool)
    found = clean.under("synccheck", steps, tmp_path, 60)
    assert found == {"copy": {"launches": 4, "errors": 1, "says": "b 0: Barrier error detected."}}


def test_rows_keep_the_version_that_they_are_by() -> None:
    record = {"tool": "new", "ladders": [{"ladder": "a"}, {"ladder": "b", "tool": "old"}]}
    assert [row["tool"] for row in clean.rows_with_tools(record)] == ["new", "old"]


def test_shares_keep_ladders_whole() -> None:
    ladders = {name: [name] * number for name, number in (("a", 5), ("b", 2), ("c", 2), ("d", 1))}
    assert sorted(map(sorted, clean.shares(ladders, 2))) == [["a"] * 5, ["b"] * 2 + ["c"] * 2 + ["d"]]
    assert len(clean.shares(ladders, 9)) == 4


@pytest.mark.parametrize("exhibit", EXHIBITS, ids=lambda fault: fault.name)
def test_published_mistakes_are_found_and_mended(exhibit) -> None:
    with pytest.raises(exhibit.error, match=re.compile(exhibit.says, re.DOTALL)):
        emulate(exhibit, True, STEPS)
    emulate(exhibit, False, STEPS)


@pytest.mark.skipif(RECORD is None, reason="compute-sanitizer was not run on a GPU")
def test_sanitizer_record_covers_every_fault_as_it_is_now() -> None:
    """Every tool has run every faulty and every mended kernel, and reports nothing about the mended ones."""
    found = {one["name"]: one for one in RECORD["faults"]}
    assert set(found) == {fault.name for fault in ALL}
    for fault in ALL:
        one = found[fault.name]
        assert one["source_sha256"] == digest(fault), fault.name
        assert one["emulator"].startswith(fault.error.__name__)
        assert set(one["tools"]) == set(TOOLS)
        for said in one["tools"].values():
            assert "errors" in said and (said["mended"], said["mended_driver"]) == (0, ""), fault.name
    assert len([one for one in RECORD["faults"] if summary.found_by(one)]) >= 30


@pytest.mark.skipif(RECORD is None, reason="compute-sanitizer was not run on a GPU")
def test_every_rung_is_clean_under_every_tool() -> None:
    """No tool reports anything about any rung, but for REPORTED, and the rungs are those whose counts are compared."""
    codes = clean.codes_by_ladder(counted().rungs)
    rows = {row["ladder"]: row for row in clean_record()["ladders"]}
    waiting = {name for name in ladder_names() if set(pending(name)) == set(load_ladder(name).names)}
    for name in sorted((waiting | TO_RUN) - set(rows)):
        warnings.warn(f"pending: {name} was not run under compute-sanitizer yet", stacklevel=1)
    for name in sorted(TO_SANITIZE_AGAIN):
        warnings.warn(f"pending: {name} has changed since it ran under compute-sanitizer", stacklevel=1)
    assert set(rows) <= set(ladder_names()) <= set(rows) | waiting | TO_RUN and not set(rows) & TO_RUN
    for name, row in rows.items():
        found = {tool for tool, said in row["tools"].items() if said["errors"]}
        assert set(row["tools"]) == set(TOOLS) and bool(found) is (name in REPORTED), name
        assert found <= {"racecheck", "synccheck"}, name
        assert (row["code_sha256"] == clean.code_of(codes[name])) is (name not in TO_SANITIZE_AGAIN), name


@pytest.mark.skipif(RECORD is None, reason="compute-sanitizer was not run on a GPU")
def test_reports_on_rungs_are_of_the_newest_version_that_was_used() -> None:
    """A ladder that an older version reports is run under the newer, whose row replaces the older one's."""
    rows = clean.rows_with_tools(clean_record())
    versions = sorted({row["tool"] for row in rows})
    assert versions == ["compute-sanitizer 2025.3.1.0", "compute-sanitizer 2026.4.0.0"]
    tools = {row["ladder"]: row["tool"] for row in rows}
    for name in sorted(REPORTED_BY_OLDER):
        warnings.warn(f"pending: {name} has changed since {versions[-1]} ran it", stacklevel=1)
    assert {name for name in REPORTED if tools[name] == versions[0]} == REPORTED_BY_OLDER


@pytest.mark.skipif(RECORD is None, reason="compute-sanitizer was not run on a GPU")
def test_newer_sanitizer_reports_nothing_on_another_gpu() -> None:
    """The rows of an H100 are of the same code, except those of ladders that have changed since."""
    there, here = clean_record("nvidia-h100-80gb-hbm3"), clean_record()
    assert not summary.reported(there) and len(summary.silent(there)) >= 50
    same = {row["ladder"]: row["code_sha256"] for row in here["ladders"]}
    for row in there["ladders"]:
        is_same = row["code_sha256"] == same.get(row["ladder"], row["code_sha256"])
        assert is_same is (row["ladder"] not in TO_SANITIZE_NEWER), row["ladder"]
