"""A rung without a record is shown by its name and the word "pending", never with a time or a bar."""

from __future__ import annotations

import dataclasses

import pytest
from matplotlib.colors import to_hex
from msgspec.structs import replace
from tiny_ladder import made, scale

from climb import alt_text, card, ladder_figure, overview_figure, timing_table
from climb.bench import records
from climb.bench.records import PendingRung
from climb.bench.timings import Timings
from climb.display import style


@pytest.fixture
def longer():
    """The tiny ladder with a second rung that no record knows."""
    dummy = dataclasses.replace(scale.plain, name="dummy", source="plain.cu")
    return dataclasses.replace(scale.ladder, rungs=(scale.plain, dummy, *scale.ladder.rungs[1:]))


@pytest.fixture
def partly(longer):
    """Timings in which one rung is pending."""
    return Timings(longer, "cold", made.record())


@pytest.fixture
def wholly(longer):
    """Timings of a ladder that has no record."""
    return Timings(longer, "cold", records.empty_record("scale"))


def with_ceilings(record):
    """The record with ceilings, so that its limit is known."""
    return replace(record, ceilings=made.record().ceilings)


def bars(figure):
    """The number of bars of rungs in a ladder figure."""
    return sum(to_hex(bar.get_facecolor()) in (style.BEST, style.MUTED) for bar in figure.axes[0].patches)


def words(figure):
    """The annotations of a ladder figure."""
    return [text.get_text() for text in figure.axes[0].texts]


def test_a_table_has_the_word_in_place_of_the_time(partly):
    rows = repr(timing_table(partly)).splitlines()[3:]
    assert rows[1].split() == ["dummy", "pending"]
    # The rung after it has no measured rung before it, and so no change.
    assert rows[2].split()[:3] == ["vector", "2.00", "µs"] and "faster" not in rows[2]
    assert "slower" in rows[3]


def test_a_figure_has_no_bar_of_a_pending_rung(partly):
    figure = ladder_figure(partly)
    assert bars(figure) == 3 and words(figure).count("pending") == 1
    assert [label.get_text() for label in figure.axes[0].get_yticklabels()][:4] == ["plain", "dummy", "vector", "twice"]
    assert "Bars of the time of 3 rungs" in alt_text(figure) and "dummy is pending: it has no time yet." in alt_text(
        figure
    )


def test_the_last_rung_shown_may_be_pending(partly):
    assert repr(timing_table(partly, upto="dummy")).splitlines()[4].split() == ["dummy", "pending"]
    assert bars(ladder_figure(partly, upto="dummy")) == 1
    assert "dummy" not in repr(timing_table(partly, upto="plain"))
    with pytest.raises(ValueError, match="no rung 'dumy' of scale at n=1024; measured are plain, vector, twice"):
        timing_table(partly, upto="dumy")


def test_a_ladder_without_a_record_is_shown_without_any_time(wholly):
    text = repr(timing_table(wholly))
    assert text.count("pending") == 4 and "s\n" not in text and "not measured yet" in text
    figure = ladder_figure(wholly)
    assert bars(figure) == 0 and words(figure)[:-1] == 4 * ["pending"]
    assert words(figure)[-1].endswith("µs"), "the limit belongs to the GPU, so it is known all the same"
    assert "Measured on: nvidia-h200, not measured yet" in repr(card(before=[], minutes=5, timings=wholly))
    with pytest.raises(PendingRung, match="every rung of scale is pending"):
        overview_figure([Timings(wholly.ladder, "cold", with_ceilings(wholly.reference))])


def test_a_size_that_was_not_measured_is_still_an_error(partly):
    with pytest.raises(ValueError, match="no rung of scale was measured at n=5"):
        timing_table(partly, {"n": 5})
