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


@pytest.mark.skipif(RECORD is None, reason="the exhibit was not run on a GPU")
def test_record_is_of_the_variants_as_they_are_now() -> None:
    rows = {row["name"]: row for row in RECORD["variants"]}
    assert list(rows) == list(stages.VARIANTS)
    for name, row in rows.items():
        assert row["source_sha256"] == digest(stages.fault_of(name, stages.SMALL)), name
        assert len(row["wrong"]) == len(row["constant"]) == row["launches"] and set(row["tools"]) == set(TOOLS)
        assert max(row["constant"]) == 0
    assert max(rows["as published"]["wrong"]) > 0 and rows["as published"]["tools"]["racecheck"]["errors"]
    for name in ("one stage less and a barrier", "two stages less"):
        assert max(rows[name]["wrong"]) == 0
        assert not any(said["errors"] for said in rows[name]["tools"].values())
