"""The limits of rungs, held against the committed records: no point passes its own, and a shortcut has a lower one."""

from __future__ import annotations

import pytest

from climb import ladder_names, limit, load_ladder, load_record
from climb.bench.records import DEFAULT_GPU, RECORDS, recorded, spread_of


@pytest.mark.parametrize("ladder", recorded(RECORDS / DEFAULT_GPU))
def test_no_rung_passes_its_limit(ladder: str) -> None:
    """The limit is that of its own work where it has some.

    A point may lie below its limit by what samples and ceilings scatter, and no further.
    """
    record, problem = load_record(ladder), load_ladder(ladder).problem
    rungs = {rung.name: rung for rung in load_ladder(ladder).rungs}
    faster = []
    for point in record.points:
        if point.regime == "cold" and point.kind == "rung":
            found = limit(problem, point.size, record.ceilings, rung=rungs[point.name])
            if found.share(point, spread_of(record.ceilings)) > 1:
                faster.append((point.name, point.size, found.seconds, point.median_s))
    assert not faster


def test_a_shortcut_has_work_of_its_own_and_less_than_its_problem() -> None:
    found = {}
    for name in ladder_names():
        ladder = load_ladder(name)
        for rung in ladder.rungs:
            if rung.shortcut:
                assert rung.work is not None, f"{name} '{rung.name}'"
                size = ladder.problem.headline[0]
                found[name, rung.name] = rung.work(size).pipes["fma"] / ladder.problem.work(size).pipes["fma"]
    # Karatsuba with 7 taps: 11 planes of products for 14; Winograd: 4 for 6 and 16 for 36; six operations for seven.
    exact = {
        ("conv3d", "karatsuba"): 11 / 14,
        ("convlayer", "winograd"): 4 / 6,
        ("convlayer", "winograd_2d"): 16 / 36,
        ("divergence", "replayed"): 6 / 7,
        ("divergence", "compacted"): 6 / 7,
    }
    assert {key: found[key] for key in exact} == pytest.approx(exact)
    assert max(found.values()) < 1
    # The points of the data that end in a cycle.
    assert found["divergence", "cycle_check"] == pytest.approx(0.60, abs=0.01)
