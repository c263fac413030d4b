"""The exhibit whose asynchronous copies overtake its reads: its variants, and what an H200 made of them."""

from __future__ import annotations

import pytest

from climb.emulator import Race, checking
from climb.validation.faults import TOOLS, emulate, stages
from climb.validation.faults.measuring import digest

try:
    RECORD = stages.stages_record()
except LookupError:
    RECORD = None


@pytest.mark.emulated
@pytest.mark.thorough
def test_the_order_in_which_the_emulator_runs_hides_the_fault_from_the_result() -> None:
    """So the checks must find it: an emulator that only computed would call the kernel right."""
    with checking(()):
        assert stages.wrong_elements("as published", 96, 1) == ([0], [0])
    with pytest.raises(Race):
        emulate(stages.fault_of("as published", 96), True, 5000)


def test_a_variant_of_a_text_that_the_exhibit_lacks_is_refused(monkeypatch) -> None:
    monkeypatch.setitem(stages.VARIANTS, "other", ("no such text", ""))
    with pytest.raises(ValueError, match="does not have this once: no such text"):
        stages.text_of("other")


def made_record() -> dict:
    tools = {tool: {"errors": 3 * (tool == "racecheck"), "says": ""} for tool in TOOLS}
    row = {"name": "as published", "source_sha256": "", "n": 10, "launches": 3, "wrong": [90, 40, 50],
           "constant": [0, 0, 0], "tools": tools}  # fmt: skip
    return {"date": "2026-01-01", "device": {"name": "GPU"}, "variants": [row]}


def test_table_has_the_median_share_of_wrong_elements(monkeypatch) -> None:
    monkeypatch.setattr(stages, "stages_record", made_record)
    shown = repr(stages.stages_table())
    assert shown.splitlines()[-1].split() == ["as", "published", "50.0", "%", "0.0", "%", "3"]
    assert "the median of 3 launches with matrices of side 10; GPU, 2026-01-01" in shown


def test_table_without_a_record_says_what_to_run(monkeypatch) -> None:
    def missing() -> None:
        raise LookupError("the exhibit stages was not run on nvidia-h200; on that GPU, run: climb sanitize stages")

    monkeypatch.setattr(stages, "stages_record", missing)
    assert "climb sanitize stages" in repr(stages.stages_table())


@pytest.mark.skipif(RECORD is None, reason="the exhibit was not run on a GPU")
def test_record_is_of_the_variants_as_they_are_now() -> None:
    rows = {row["name"]: row for row in RECORD["variants"]}
    assert list(rows) == list(stages.VARIANTS)
    for name, row in rows.items():
        assert row["source_sha256"] == digest(stages.fault_of(name, stages.SMALL)), name
        assert len(row["wrong"]) == len(row["constant"]) == row["launches"] and set(row["tools"]) == set(TOOLS)
        assert max(row["constant"]) == 0
    for name in ("as published", "one stage less"):
        assert min(rows[name]["wrong"]) > 0, name
    assert rows["as published"]["tools"]["racecheck"]["errors"]
    for name in ("one stage less and a barrier", "two stages less"):
        assert max(rows[name]["wrong"]) == 0
        assert not any(said["errors"] for said in rows[name]["tools"].values())
