"""Ceilings come out of measured points as arithmetic by hand says, and the committed ones out of committed records."""

from __future__ import annotations

import msgspec
import pytest
from tiny_ladder import made, scale

from climb import ladder_names, load_ladder, load_record
from climb.bench import ceilings, records
from climb.bench.records import CeilingPoint, RecordError, ceiling_text
from climb.bench.records.ceilings import MEANING

HERE = records.RECORDS / records.DEFAULT_GPU


def serving(ceiling: str, work: int, seconds: float) -> CeilingPoint:
    """A point of some work for a ceiling; its quartiles are 0.5 % around its median."""
    return CeilingPoint(ceiling, "scale", work, made.point("plain", "rung", {"n": 1024}, "cold", seconds=seconds))


def test_the_floor_is_the_shortest_time_and_counts_once_in_a_rate():
    # 4 us of floor; 4000 MB in 1004 us are 4000 GB/s behind the floor, and 1 GFLOP in 24 us 50 TFLOP/s.
    points = [serving("floor_us", 256, 4e-6), serving("floor_us", 256, 5e-6), serving("read_gb_s", 4 * 10**9, 1.004e-3)]
    found = ceilings.derive([*points, serving("fma_tflop_s", 10**9, 24e-6)])
    assert found["floor_us"].value == pytest.approx(4.0)
    assert found["read_gb_s"].value == pytest.approx(4000) and found["fma_tflop_s"].value == pytest.approx(50)
    assert found["floor_us"].spread == pytest.approx(0.01)
    assert found["read_gb_s"].spread == pytest.approx(0.01 * 1.004 / 1, rel=1e-3)


def test_the_fastest_rung_of_a_size_counts():
    points = [serving("read_gb_s", 10**9, s) for s in (3e-3, 1e-3, 2e-3)]
    assert ceilings.derive(points)["read_gb_s"].value == pytest.approx(1000)


def test_a_launch_that_reads_nothing_has_a_floor_of_its_own():
    points = [serving("launch_us", 4, s) for s in (3.1e-6, 3.0e-6)]
    assert ceilings.derive(points)["launch_us"].value == pytest.approx(3.0)


def test_the_slope_of_writing_says_nothing_of_what_copies_keep():
    points = [serving("floor_us", 256, 4e-6), serving("read_gb_s", 10**9, 204e-6)]
    both = [serving("copy_gb_s", b, 1e-6 + b / 4e12) for b in (4 * 10**9, 10**9)]
    both += [serving("write_gb_s", b, 3e-6 + b / 4.5e12) for b in (4 * 10**9, 10**9)]
    found = ceilings.derive(points + both)
    assert found["kept_mb"].value == pytest.approx(10) and found["write_gb_s"].value == pytest.approx(4500)


def test_copying_is_a_slope_between_two_sizes_and_its_start_says_what_l2_keeps():
    """With a floor of 4 us, 4000 GB/s of copying and 5000 of reading, a copy that leaves k bytes in L2 takes
    4 us + 2 (b/2 - k) / 4000 GB/s + k / 5000 GB/s: for k = 10 MB that is 1 us + b / 4000 GB/s."""
    points = [serving("floor_us", 256, 4e-6), serving("read_gb_s", 10**9, 204e-6)]
    copies = [serving("copy_gb_s", b, 1e-6 + b / 4e12) for b in (4 * 10**9, 10**9)]
    found = ceilings.derive(points + copies)
    assert found["copy_gb_s"].value == pytest.approx(4000) and found["read_gb_s"].value == pytest.approx(5000)
    assert found["kept_mb"].value == pytest.approx(10)
    # A copy that starts no earlier than the floor keeps nothing.
    late = [serving("copy_gb_s", b, 5e-6 + b / 4e12) for b in (4 * 10**9, 10**9)]
    assert "kept_mb" not in ceilings.derive(points + late)


@pytest.mark.parametrize(
    ("name", "value", "spread", "text"),
    [
        ("copy_gb_s", 4285.8, 0.0024, "4290 GB/s"),
        ("floor_us", 3.712, 0.043, "3.7 µs"),
        ("kept_mb", 11.204, 0.72, "10 MB"),
        ("fma_tflop_s", 65.945, 0.0, "65.9 TFLOP/s"),
        ("shared_tb_s", 33.21, 0.015, "33.2 TB/s"),
        ("shared_tb_s", 33.21, 0.0151, "33 TB/s"),
        ("issue_ginst_s", 1043.0, 0.001, "1040 G instructions/s"),
    ],
)
def test_a_ceiling_has_no_more_digits_than_its_spread_carries(name, value, spread, text):
    assert ceiling_text(name, value, spread) == text


def test_every_ceiling_has_a_ladder_and_a_meaning():
    named = {ladder.ceiling for ladder in map(load_ladder, ladder_names()) if ladder.ceiling}
    assert named == set(MEANING) - {"kept_mb"}
    assert records.Ceilings().pending == tuple(MEANING)


def test_the_former_name_of_the_fma_ceiling_still_finds_it():
    values = made.ceilings().values
    assert values["fp32_tflop_s"] == values["fma_tflop_s"] == 60.0
    with pytest.raises(KeyError):
        values["tensor_tf32_tflop_s"]


def test_the_committed_ceilings_follow_from_their_points():
    """No number of ``ceilings.json`` is typed: the points of each session give its values."""
    sessions = records.load_sessions(HERE).sessions
    for found in sessions:
        assert ceilings.derive(found.points) == found.ceilings, found.session
    for one in (point for found in sessions for point in found.points):
        ladder = load_ladder(one.ladder)
        if ladder.ceiling == one.ceiling:
            assert one.work == ceilings.amount(ladder, one.ceiling, one.point.size)
            assert one.point.size in ceilings.ceiling_sizes(ladder)


def test_ceilings_that_were_converted_are_points_of_committed_records():
    """Records of 2026-11-21 held ceilings of their own; a point that was taken from one is in it, sample by sample.

    A record that has been measured again since no longer has the point.
    """
    file = records.load_sessions(HERE)
    for found in (one for one in file.sessions if not one.session):
        for one in found.points:
            record = load_record(one.ladder)
            if (record.date, record.commit) == (one.date or found.date, one.commit or found.commit):
                assert record.find(one.point.name, one.point.size, "cold") == one.point
    assert {name for session in file.earlier for name in session.records} <= set(ladder_names())


def test_every_committed_record_names_a_session_that_is_there():
    sessions = {one.session for one in records.load_sessions(HERE).sessions}
    assert {load_record(name).session for name in records.recorded(HERE)} <= sessions


def test_a_session_is_held_to_its_own_ceilings_and_for_pipes_of_later_ladders_to_the_newest(tmp_path):
    own = made.ceilings()
    (name, ceiling), *_ = own.ceilings.items()
    faster = msgspec.structs.replace(ceiling, value=2 * ceiling.value)
    later = msgspec.structs.replace(own, session="later", ceilings={name: faster, "issue_ginst_s": ceiling}, points=())
    values = records.ceilings.CeilingsFile((own, later)).values_for(own.session)
    assert values[name] == own.values[name] and values.spreads[name] == own.values.spreads[name]
    assert values["issue_ginst_s"] == ceiling.value
    assert records.ceilings.CeilingsFile((own, later)).values_for(None)[name] == 2 * ceiling.value


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"points": ()}, "no point gives the ceiling copy_gb_s"),
        ({"ceilings": {"copy_gb_s": {"value": 0, "spread": 0}}}, "ceilings.*value: Expected `float` > 0"),
        ({"colour": "red"}, "unknown field `colour`"),
    ],
)
def test_ceilings_that_break_the_schema_are_refused(tmp_path, change, message):
    records.save_ceilings(made.ceilings(), tmp_path)
    path = tmp_path / "ceilings.json"
    data = msgspec.json.decode(path.read_bytes())
    path.write_bytes(msgspec.json.encode(data | {"sessions": [data["sessions"][0] | change]}))
    with pytest.raises(RecordError, match=message):
        records.load_ceilings(tmp_path)


def test_a_point_whose_median_is_not_its_samples_is_refused(tmp_path):
    found = made.ceilings()
    wrong = msgspec.structs.replace(found.points[0].point, median_s=1.0)
    first = msgspec.structs.replace(found.points[0], point=wrong)
    bad = msgspec.structs.replace(found, points=(first, *found.points[1:]))
    with pytest.raises(RecordError, match=r"points\[0\]: median_s is 1.0"):
        records.save_ceilings(bad, tmp_path)
    assert not list(tmp_path.iterdir()) and scale.ladder.ceiling == "copy_gb_s"
