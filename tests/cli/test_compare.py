"""``climb compare``: two folders of records, point by point, with a verdict for each."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from tiny_ladder import made

from climb.bench import records
from climb.bench.comparison import compare_folders
from climb.bench.records import save_record
from climb.cli import main


def scaled(record, factors):
    """The record with the times of some names multiplied; the intervals stay 1 % around the median."""

    def point(p):
        factor = factors.get(p.name, 1.0)
        samples = records.rounded([factor * sample for sample in p.samples])
        p25, median, p75 = records.quantiles(samples)
        return replace(p, samples=samples, p25_s=p25, median_s=median, p75_s=p75)

    return replace(record, points=tuple(point(p) for p in record.points))


@pytest.fixture
def folders(tmp_path):
    """Two folders: in the second, plain takes half the time, vector twice it, twice a little more."""
    a, b = tmp_path / "a", tmp_path / "b"
    save_record(made.record(), a / "scale.json")
    save_record(scaled(made.record(), {"plain": 0.5, "vector": 2.0, "twice": 1.007}), b / "scale.json")
    return a, b


def test_each_point_has_a_verdict_about_b(folders):
    found = compare_folders(*folders)
    assert {(pair.a.name, pair.verdict) for pair in found.pairs} == {
        ("plain", "faster"), ("vector", "slower"), ("twice", "ambiguous"), ("library", "same")
    }  # fmt: skip
    assert (len(found.pairs), found.only_a, found.only_b) == (7, 0, 0)


def test_points_of_one_folder_alone_are_counted(folders):
    a, b = folders
    record = records.load_record("scale", folder=b)
    save_record(replace(record, points=tuple(p for p in record.points if p.name != "twice")), b / "scale.json")
    found = compare_folders(a, b)
    assert (len(found.pairs), found.only_a, found.only_b) == (5, 2, 0)
    found = compare_folders(b, a)
    assert (len(found.pairs), found.only_a, found.only_b) == (5, 0, 2)


def test_the_other_regimes_are_compared_when_asked_for(folders):
    assert {pair.a.regime for pair in compare_folders(*folders, "batch").pairs} == {"batch"}
    assert compare_folders(*folders, "dirty").pairs == ()


def test_the_command_prints_a_line_a_point_and_a_sum(folders, capsys):
    assert main(["compare", *map(str, folders)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["ladder", "size", "name", "A", "B", "A", "/", "B", "B", "is"]
    (plain,) = (line for line in lines if "plain" in line and "n=1024" in line)
    assert plain.split() == ["scale", "n=1024", "plain", "4.00", "µs", "2.00", "µs", "2.0x", "faster"]
    assert lines[-1] == "7 points: 2 ambiguous, 2 faster, 2 same, 1 slower; only in A: 0, only in B: 0"


def test_folders_of_the_repository_are_named_by_their_gpu(capsys):
    assert main(["compare", "nvidia-h200", "nvidia-h200", "--ladder", "copy"]) == 0
    said = capsys.readouterr().out
    assert "faster" not in said and "slower" not in said and " same;" in said


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        (["nvidia-h200", "{empty}"], "have no record of the same ladder"),
        (["nvidia-h200", "nvidia-h200", "--ladder", "transpoze"], "no record of transpoze on nvidia-h200"),
        (["nvidia-h200", "nvidia-h200", "--regime", "hot"], "regime is 'hot'; expected one of cold, batch, dirty"),
        (["nowhere", "nvidia-h200"], "no folder of records 'nowhere'; expected a path, or one of nvidia-h"),
    ],
)
def test_what_cannot_be_compared_is_one_line(argv, says, tmp_path, capsys):
    assert main(["compare", *(one.format(empty=tmp_path) for one in argv)]) == 2
    said = capsys.readouterr().err
    assert says in said and said.count("\n") == 1


@pytest.mark.parametrize(
    ("options", "status"),
    [
        ([], 0),
        (["--fail", "slower"], 1),
        (["--fail", "slower", "--fail", "faster"], 1),
        (["--at-least", "120", "--fail", "slower"], 0),
    ],
)
def test_exit_status_says_whether_a_verdict_that_fails_was_found(folders, options, status, capsys):
    assert main(["compare", *map(str, folders), *options]) == status
    assert "Geometric mean of A / B: " in capsys.readouterr().out


def test_differences_below_at_least_are_none(folders):
    """``twice`` is 0.7 % slower, with intervals that overlap without holding each other's medians."""
    by_name = {pair.a.name: pair.verdict for pair in compare_folders(*folders, at_least=0.01).pairs}
    assert by_name == {"plain": "faster", "vector": "slower", "twice": "same", "library": "same"}


def test_a_negative_difference_is_refused(folders, capsys):
    assert main(["compare", *map(str, folders), "--at-least", "-1"]) == 2
    assert "--at-least is -1; expected" in capsys.readouterr().err


def test_a_rung_with_another_kernel_is_marked(folders, capsys):
    a, b = folders
    record = records.load_record("scale", folder=b)
    points = tuple(replace(p, source_sha256="other") if p.name == "plain" else p for p in record.points)
    save_record(replace(record, points=points), b / "scale.json")
    main(["compare", str(a), str(b)])
    lines = capsys.readouterr().out.splitlines()
    assert {line.split()[2] for line in lines if line.endswith("†")} == {"plain"}
    assert "† The kernel, its options or its launches differ between A and B." in lines


def test_ladders_of_one_folder_alone_are_named(folders, capsys):
    a, b = folders
    save_record(replace(made.record(), ladder="more"), b / "more.json")
    main(["compare", str(a), str(b)])
    assert "Ladders only in B: more" in capsys.readouterr().out.splitlines()
