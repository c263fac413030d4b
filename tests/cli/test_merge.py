"""``climb merge``: records that were made elsewhere are checked, and taken over or left out with the reason."""

from __future__ import annotations

import dataclasses
import json

import pytest
from msgspec.structs import replace
from tiny_ladder import made, scale

from climb.bench import merging, records
from climb.bench.records import CEILINGS_FILE
from climb.bench.records.ceilings import Ceiling
from climb.cli import main
from climb.validation.faults import TOOLS, clean_path


@pytest.fixture
def elsewhere(tmp_path, monkeypatch):
    """A folder from another machine with ceilings and a record of the tiny ladder, and the target."""
    monkeypatch.setattr(merging, "ladder_names", lambda: ("scale",))
    monkeypatch.setattr(merging, "load_ladder", lambda name: scale.ladder)
    source, target = tmp_path / "rec", tmp_path / "nvidia-h200"
    records.save_ceilings(made.ceilings(), source)
    records.save_record(made.record(), source / "scale.json")
    return source, target


def test_records_are_taken_over_with_the_ceilings_of_their_session(elsewhere, capsys):
    source, target = elsewhere
    assert main(["merge", str(source), "--into", str(target)]) == 0
    first, second = capsys.readouterr().out.splitlines()
    assert first == f"{CEILINGS_FILE}: session {made.ceilings().date}"
    assert second == f"scale.json: {len(made.record().points)} points of 2026-11-20"
    assert records.load_record("scale", folder=target) == records.load_record("scale", folder=source)
    assert main(["merge", str(source), "--into", str(target)]) == 0
    assert len(records.load_sessions(target).sessions) == 1


def test_what_is_kept_beside_records_is_taken_over_if_it_is_of_the_same_gpu(elsewhere, capsys):
    source, target = elsewhere
    kept = sorted((records.RECORDS / "nvidia-h200" / "events").glob("*.json"))[:2]
    texts = [path.read_text(encoding="utf-8") for path in kept]
    assert all('"NVIDIA H200"' in text for text in texts)
    (source / "events").mkdir()
    (source / "events" / "one.json").write_text(texts[0])
    (source / "events" / "two.json").write_text(texts[1].replace('"NVIDIA H200"', '"NVIDIA H100"'))
    assert main(["merge", str(source), "--into", str(target)]) == 1  # something is left out
    assert [path.name for path in (target / "events").iterdir()] == ["one.json"]
    assert (target / "events" / "one.json").read_text() == texts[0]
    one, two = (line for line in capsys.readouterr().out.splitlines() if line.startswith("events/"))
    assert "left out" not in one and "left out" in two


def test_profiles_of_chapters_are_taken_over_if_they_are_of_the_same_gpu(elsewhere, capsys):
    source, target = elsewhere
    kept = records.RECORDS / "nvidia-h200" / "profiles"
    texts = {name: (kept / name).read_text(encoding="utf-8") for name in ("occupancy.json", "divergence.json")}
    (source / "profiles").mkdir()
    (source / "profiles" / "occupancy.json").write_text(texts["occupancy.json"])
    (source / "profiles" / "divergence.json").write_text(texts["divergence.json"].replace("NVIDIA H200", "NVIDIA H100"))
    assert main(["merge", str(source), "--into", str(target)]) == 1  # something is left out
    assert [path.name for path in (target / "profiles").iterdir()] == ["occupancy.json"]
    assert (target / "profiles" / "occupancy.json").read_text() == texts["occupancy.json"]
    said = [line for line in capsys.readouterr().out.splitlines() if line.startswith("profiles/")]
    assert "left out" not in said[0] and "left out: it is of NVIDIA H100" in said[1]
    (source / "profiles" / "occupancy.json").write_text('{"date": 1}')
    assert main(["merge", str(source), "--into", str(target)]) == 2
    assert "occupancy.json" in capsys.readouterr().err


def test_folders_of_two_boards_are_taken_over_each_record_with_its_own_ceilings(tmp_path, monkeypatch):
    problem = dataclasses.replace(scale.problem, name="other")
    ladders = {"scale": scale.ladder, "other": dataclasses.replace(scale.ladder, problem=problem)}
    monkeypatch.setattr(merging, "ladder_names", lambda: tuple(ladders))
    monkeypatch.setattr(merging, "load_ladder", ladders.__getitem__)
    target = tmp_path / "nvidia-h200"
    for number, name in enumerate(ladders):
        folder, session = tmp_path / name, f"2026-11-23T06:50Z {number}{number}{number}{number}0000"
        measured = {**made.ceilings().ceilings, "copy_gb_s": Ceiling(1000.0 + number, 0.01)}
        records.save_ceilings(replace(made.ceilings(), session=session, ceilings=measured), folder)
        records.save_record(replace(made.record(), ladder=name, session=session), folder / f"{name}.json")
        assert main(["merge", str(folder), "--into", str(target)]) == 0
    found = {name: records.load_record(name, folder=target).ceilings["copy_gb_s"] for name in ladders}
    assert found == {"scale": 1000.0, "other": 1001.0}


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"session": "2026-11-22T00:00Z"}, "no ceilings of its session, 2026-11-22T00:00Z"),
        ({"device": {**made.DEVICE, "name": "NVIDIA L40S"}}, "it is of NVIDIA L40S"),
        ({"ladder": "other"}, "no ladder of the book has that name"),
        ({"points": made.record().points[2:]}, "missing in the regime 'cold'"),
    ],
)
def test_record_that_does_not_fit_is_left_out(elsewhere, capsys, changed, says):
    source, target = elsewhere
    records.save_record(replace(made.record(), **changed), source / "scale.json")
    assert main(["merge", str(source), "--into", str(target)]) == 1
    said = capsys.readouterr().out
    assert says in said and "left out" in said and not (target / "scale.json").exists()


def committed():
    """The committed counts and sanitizer's rows of two ladders."""
    out = {}
    for name in ("agreement", "clean"):
        data = json.loads((clean_path().parent / f"{name}.json").read_text())
        key = "rungs" if name == "agreement" else "ladders"
        data[key] = [row for row in data[key] if row["ladder"] in ("strided", "csr_matrix")]
        out[name] = data
    return out


def write(folder, data):
    (folder / "emulator").mkdir(parents=True, exist_ok=True)
    for name, one in data.items():
        (folder / "emulator" / f"{name}.json").write_text(json.dumps(one))


def test_counts_and_clean_rows_are_merged_by_rung_and_ladder(tmp_path, capsys):
    source, target = tmp_path / "rec", tmp_path / "nvidia-h200"
    data = committed()
    # Without counts in the folder, the committed ones say what the code is.
    other = json.loads(json.dumps(data["clean"]))
    next(row for row in other["ladders"] if row["ladder"] == "strided")["code_sha256"] = "0" * 64
    write(source, {"clean": other})
    assert main(["merge", str(source), "--into", str(target)]) == 1
    said = capsys.readouterr().out
    assert "sanitizer on strided: left out: it is of other code than the counts" in said
    assert "sanitizer on csr_matrix: clean" in said
    write(source, data)
    assert main(["merge", str(source), "--into", str(target)]) == 0
    assert "counts of csr_matrix: 2 of 2 rungs" in capsys.readouterr().out
    # One rung counted once only, another of other code, a tool that did not finish: they are left out, and what was
    # there stays. A report is taken over.
    counts = data["agreement"]["rungs"]
    by_name = {row["rung"]: row for row in counts if row["ladder"] == "csr_matrix"}
    by_name["row_warp"]["counts"] = by_name["row_warp"]["counts"][:1]
    by_name["vectorised"]["code_sha256"] = "0" * 64
    clean = {row["ladder"]: row["tools"] for row in data["clean"]["ladders"]}
    clean["strided"]["racecheck"] = {"errors": 2, "says": "rung 0: Race"}
    del clean["csr_matrix"]["synccheck"]
    write(source, data)
    assert main(["merge", str(source), "--into", str(target)]) == 1
    said = capsys.readouterr().out
    assert "counts of csr_matrix: 0 of 2 rungs; left out, incomplete or of other code: row_warp, vectorised" in said
    assert "sanitizer on strided: racecheck: rung 0: Race" in said
    assert "sanitizer on csr_matrix: left out: synccheck did not finish" in said
    kept = json.loads((target / "emulator" / "agreement.json").read_text())["rungs"]
    assert [row["counts"] for row in kept if row["ladder"] == "csr_matrix"] and len(kept) == len(counts)
    rows = {row["ladder"]: row for row in json.loads((target / "emulator" / "clean.json").read_text())["ladders"]}
    assert rows["strided"]["tools"]["racecheck"]["errors"] == 2 and set(rows["csr_matrix"]["tools"]) == set(TOOLS)


def test_folder_without_records_is_a_wrong_command_line(tmp_path, capsys):
    assert main(["merge", str(tmp_path)]) == 2
    assert "there are no records in it" in capsys.readouterr().err
