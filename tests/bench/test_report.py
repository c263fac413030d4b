"""The report computes its rows from records, and README.md shows exactly its table."""

from __future__ import annotations

import dataclasses

import msgspec
import pytest
from tiny_ladder import made, scale

from climb.bench import report
from climb.bench.records import save_ceilings, save_record
from climb.bench.work import Work
from climb.cli import main

TINY = ["tiny_ladder.scale"]


def test_the_readme_shows_the_report():
    block = report.readme_block(report.README.read_text(encoding="utf-8"))
    assert block == report.report(), "README.md differs from the records; run: climb report --readme"


def test_a_row_has_best_rung_ratio_limit_and_noise():
    first, second = report.rows_of(scale.ladder, made.record())
    assert (first.best.name, first.state) == ("vector", "fresh")
    assert first.against == {"library": pytest.approx(1.5)}
    # 8192 bytes at 8.192 GB/s take 1 us, the rung 2 us; samples 1 % around the median have quartiles 0.5 % around it.
    assert first.of_limit == pytest.approx(0.5) and first.best.noise == pytest.approx(0.01)
    assert second.best.name == "plain"


def test_the_table_is_markdown():
    lines = report.table(report.rows_of(scale.ladder, made.record())).splitlines()
    assert lines[2] == "| scale | 1024 | vector | 2.00 µs | 1.50 x library | 50 % | memory | 1 % |  | fresh |"
    assert len({line.count("|") for line in lines}) == 1


def test_a_shortcut_is_marked_and_large_powers_of_two_are_written_as_such(tmp_path, monkeypatch):
    # Half of the bytes: at 8.192 GB/s 0.5 us of the rung's 2 us.
    half = dataclasses.replace(scale.vector, work=lambda size: Work(read=2 * size["n"], written=2 * size["n"]))
    quicker = dataclasses.replace(scale.ladder, rungs=(half,))
    (first, *_) = report.rows_of(quicker, made.record())
    assert "| 50 % \\*, 25 % |" in report.table([first])
    large = dataclasses.replace(first, size={"n": 1 << 29, "m": 10**5, "border": "zero"})
    assert "| 2^29 x 100000 x zero |" in report.table([large])
    save_record(made.record(), tmp_path / "scale.json")
    save_ceilings(made.ceilings(), tmp_path)
    assert report._SHORTCUT not in report.report(TINY, folder=tmp_path)
    monkeypatch.setattr(report, "load_ladder", lambda name: quicker)
    assert report._SHORTCUT in report.report(TINY, folder=tmp_path)


def test_a_slowed_point_has_its_clock_and_ceilings_have_no_more_digits_than_their_spread(tmp_path):
    at = {"plain": 1980, "vector": 1882, "library": 1642}  # of 1980 MHz; 95 % are 1881
    points = tuple(
        msgspec.structs.replace(p, sampling={"sm_clock_mhz": at.get(p.name, 1800)}) for p in made.record().points
    )
    first, second = report.rows_of(scale.ladder, msgspec.structs.replace(made.record(), points=points))
    assert (first.slowed, second.slowed) == ({"library": 1642}, {"library": 1642})
    line = report.table([first]).splitlines()[2]
    assert "1.50 x library (at 1642 MHz)" in line and "| 1882 MHz |" in line
    slower = tuple(msgspec.structs.replace(p, sampling={"sm_clock_mhz": 1880}) for p in points)
    (first, _) = report.rows_of(scale.ladder, msgspec.structs.replace(made.record(), points=slower))
    assert "| 1880 MHz (slowed) |" in report.table([first])
    save_ceilings(made.ceilings(), tmp_path)
    note = report.ceilings_note(tmp_path)
    assert "copying 8.2 GB/s" in note and "FMA pipe 60 TFLOP/s" in note
    assert "Not measured yet: floor, floor without reading, writing" in note
    assert report.ceilings_note(tmp_path / "none") == ""


@pytest.mark.parametrize(
    ("median", "quarter", "text"),
    [
        (3.0, 0.01, "1.50 x library |"),
        (2.005, 0.01, "1.00 x library (same) |"),
        (2.03, 0.025, "1.01 x library (ambiguous) |"),  # the quartiles overlap; our median is not between the peer's
        (3.0, 0.09, "1.5 x library |"),
    ],
)
def test_ratios_say_whether_the_times_decide_and_noisy_ones_have_two_digits(median, quarter, text):
    """Our rung takes 2 us, with quartiles 0.5 % around it."""

    def peer(one):
        p25, p75 = (median * (1 + sign * quarter / 2) * 1e-6 for sign in (-1, 1))
        return msgspec.structs.replace(one, median_s=median * 1e-6, p25_s=p25, p75_s=p75)

    points = tuple(peer(one) if one.name == "library" else one for one in made.record().points)
    first, _ = report.rows_of(scale.ladder, msgspec.structs.replace(made.record(), points=points))
    assert text in report.table([first]) and "2.00 µs" in report.table([first])


def test_a_noisy_time_has_two_digits():
    points = tuple(
        msgspec.structs.replace(one, p75_s=1.1 * one.median_s) if one.name == "vector" else one
        for one in made.record().points
    )
    first, _ = report.rows_of(scale.ladder, msgspec.structs.replace(made.record(), points=points))
    assert "| 2.0 µs | 1.5 x library |" in report.table([first])


def test_a_linkers_message_becomes_the_library_that_is_missing():
    said = "/usr/lib/x: ImportError: libcublas.so.13: version `libcublas.so.12' not found (required by a.so)"
    assert report._in_one_line(said) == "x: it loads libcublas.so.12, which the lock does not bring"


def test_a_stale_record_is_called_stale():
    changed = dataclasses.replace(scale.ladder, rungs=(dataclasses.replace(scale.vector, options=("-DX",)),))
    (row, _) = report.rows_of(changed, made.record())
    assert row.state == "stale" and "stale: `make record LADDER=scale`" in report.table([row])


def test_without_a_record_the_rows_say_pending():
    text = report.table(report.rows_of(scale.ladder, None))
    assert text.count("pending: `make record LADDER=scale`") == 2


def test_the_report_names_the_gpu_and_the_date(tmp_path):
    save_record(made.record(), tmp_path / "scale.json")
    text = report.report(TINY, folder=tmp_path)
    assert text.startswith("Measured on an NVIDIA H200 (driver 580.00, CUDA 12.9), 2026-11-20;")
    assert report.find_stale(TINY, folder=tmp_path) == []
    assert report.report(TINY, folder=tmp_path / "none").startswith("Nothing is recorded yet.")
    assert report.find_stale(TINY, folder=tmp_path / "none") == report.find_pending(TINY, folder=tmp_path) == []
    assert [one.name for one in report.find_pending(TINY, folder=tmp_path / "none")] == ["plain", "vector", "twice"]


def test_the_block_is_replaced_and_nothing_else():
    text = "# Title\n\n<!-- report -->\nold\n<!-- /report -->\n\nmore\n"
    new = report.replace_block(text, "a\nb")
    assert new == "# Title\n\n<!-- report -->\na\nb\n<!-- /report -->\n\nmore\n"
    assert report.readme_block(new) == "a\nb" and report.replace_block(new, "a\nb") == new


@pytest.mark.parametrize("text", ["", "<!-- report -->", "<!-- /report --><!-- report -->"])
def test_a_readme_without_markers_is_refused(text):
    with pytest.raises(ValueError, match=r"README\.md needs the lines"):
        report.replace_block(text, "x")


@pytest.fixture
def tiny_book(tmp_path, monkeypatch):
    """A book of the one tiny ladder with its record and README."""
    save_record(made.record(), tmp_path / "nvidia-h200" / "scale.json")
    monkeypatch.setattr(report.records, "RECORDS", tmp_path)
    monkeypatch.setattr(report, "README", tmp_path / "README.md")
    monkeypatch.setattr(report, "ladder_names", lambda: tuple(TINY))
    report.README.write_text("top\n<!-- report -->\n<!-- /report -->\n", encoding="utf-8")
    return tmp_path


def test_check_fails_until_readme_writes(tiny_book, capsys):
    assert main(["report", "--check"]) == 1
    assert "run: climb report --readme" in capsys.readouterr().err
    assert main(["report", "--readme"]) == 0
    assert main(["report", "--check"]) == 0


def test_check_lists_the_rungs_of_a_record_that_is_missing_and_wants_the_readme_to_say_so(tiny_book, capsys):
    main(["report", "--readme"])
    (tiny_book / "nvidia-h200" / "scale.json").unlink()
    assert main(["report", "--check"]) == 1
    said = capsys.readouterr().err
    assert "pending: scale 'plain' has no record on nvidia-h200; there run: make record LADDER=scale" in said
    assert said.count("pending: scale") == 3 and "README.md differs from the records" in said
    assert main(["report", "--readme"]) == main(["report", "--check"]) == 0
    assert "pending: `make record LADDER=scale`" in report.read_readme()


def test_check_fails_for_a_stale_record(tiny_book, capsys, monkeypatch):
    changed = dataclasses.replace(scale.vector, options=("-DX",))
    monkeypatch.setattr(scale, "ladder", dataclasses.replace(scale.ladder, rungs=(scale.plain, changed, scale.twice)))
    main(["report", "--readme"])
    assert main(["report", "--check"]) == 1
    assert "stale record: scale 'vector' at n=1024: its kernel, options or launch" in capsys.readouterr().err
