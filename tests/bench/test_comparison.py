"""Two folders of records: which ladders and points are compared, and the table of the pairs."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from tiny_ladder import made

from climb.bench import records
from climb.bench.comparison import compare_folders, table


@pytest.fixture
def folders(tmp_path):
    """Two folders with the same record of one ladder."""
    a, b = tmp_path / "a", tmp_path / "b"
    for folder in (a, b):
        records.save_record(made.record(), folder / "scale.json")
    return a, b


def test_points_of_both_folders_are_paired_and_the_others_counted(folders):
    a, b = folders
    points = made.record().points
    records.save_record(replace(made.record(), points=tuple(p for p in points if p.name != "twice")), b / "scale.json")
    found = compare_folders(a, b)
    cold = [p for p in points if p.regime == "cold" and p.name != "twice"]
    assert [(pair.ladder, pair.a, pair.b) for pair in found.pairs] == [("scale", p, p) for p in cold]
    assert (found.only_a, found.only_b) == (2, 0)
    assert (compare_folders(b, a).only_a, compare_folders(b, a).only_b) == (0, 2)


def test_folders_without_a_common_ladder_are_refused(folders):
    a, b = folders
    (b / "scale.json").rename(b / "other.json")
    with pytest.raises(LookupError, match="have no record of the same ladder"):
        compare_folders(a, b)


def test_the_pairs_of_every_common_ladder_are_kept(folders):
    for folder in folders:
        records.save_record(replace(made.record(), ladder="again"), folder / "again.json")
    (folders[0] / "alone.json").write_text("{}")
    pairs = compare_folders(*folders).pairs
    assert [pair.ladder for pair in pairs] == ["again"] * 7 + ["scale"] * 7


def test_the_head_of_the_table_is_underlined_column_by_column(folders):
    head, rule, first, *_ = table(compare_folders(*folders)).splitlines()
    assert set(rule) == {"-", " "} and first.startswith("scale")
    starts = [i for i, mark in enumerate(rule) if mark == "-" and (i == 0 or rule[i - 1] == " ")]
    assert [head[i:].split("  ")[0] for i in starts] == ["ladder", "size", "name", "A", "B", "A / B", "B is"]
    assert all(first[i] != " " and (i == 0 or first[i - 1] == " ") for i in starts)
