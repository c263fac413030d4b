"""The rungs of a ladder that have times: a chapter that shows every time loops over these."""

from __future__ import annotations

import dataclasses

from tiny_ladder import made, scale

from climb.bench.timings import Timings


def test_a_new_rung_is_not_among_the_measured_ones() -> None:
    new = dataclasses.replace(scale.ladder.rungs[0], name="new", source="plain.cu")
    longer = dataclasses.replace(scale.ladder, rungs=(new, *scale.ladder.rungs))
    times = Timings(longer, "cold", made.record())
    assert times.measured == scale.ladder.names
    assert all(times.seconds(name) > 0 for name in times.measured)
