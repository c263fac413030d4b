"""The commands that need a GPU: which functions they call with what, what they print, and their exit status."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest
from tiny_ladder import made

from climb.bench import cuda, hardware, profiling, records, repeats, spans, transfers
from climb.cli import common, main
from climb.validation.agreement import measuring, summary
from climb.validation.faults import clean
from climb.validation.faults import measuring as faults
from climb.validation.fuzzing import measuring as fuzzing
from climb.validation.profiles import divergence, occupancy
from climb.validation.tensor_products import measuring as tensor_products

HERE = records.RECORDS / records.DEFAULT_GPU


@pytest.fixture(autouse=True)
def on_a_gpu(monkeypatch):
    """A machine with a GPU and all tools, as far as the commands can see."""
    monkeypatch.setattr(cuda, "backend", "cupy")
    monkeypatch.setattr(common.shutil, "which", lambda name, path=None: f"/usr/bin/{name}")
    monkeypatch.setattr(hardware, "device_block", lambda: made.DEVICE)
    monkeypatch.setenv("WORKLOG_COMMIT", "f00")


def committed(place):
    """The data of a committed record."""
    return json.loads((HERE / place).read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("command", "module", "name", "ladder", "place"),
    [
        ("profile", profiling, "profile", "strided", "hardware/strided.json"),
        ("repeats", repeats, "repeat", "reduction", "repeats/reduction.json"),
    ],
)
def test_a_command_writes_the_file_of_each_ladder(command, module, name, ladder, place, monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(module, name, lambda ladder: committed(place))
    assert main([command, ladder, "--records", str(tmp_path)]) == 0
    assert capsys.readouterr().out == f"{tmp_path / place}\n"
    assert (tmp_path / place).read_bytes() == (HERE / place).read_bytes()


def test_transfers_are_measured_at_each_recorded_size(monkeypatch, tmp_path):
    points = {tuple(point["size"].items()): point for point in committed("transfers/conv3d.json")["points"]}
    monkeypatch.setattr(transfers, "move", lambda ladder, size: points[tuple(size.items())])
    assert main(["transfers", "conv3d", "--records", str(tmp_path), "--commit", "abc"]) == 0
    found = json.loads((tmp_path / "transfers" / "conv3d.json").read_text())
    assert found["points"] == list(points.values())
    assert (found["command"], found["commit"]) == ("climb transfers conv3d", "abc")


def test_spans_are_recorded_of_the_rungs_that_are_named(monkeypatch, tmp_path, capsys):
    asked = []
    monkeypatch.setattr(spans, "record_spans", lambda *args: asked.append(args) or "the file")
    assert main(["spans", "chain", "--rung", "graph", "--records", str(tmp_path)]) == 0
    assert asked == [("chain", ["graph"], tmp_path)] and capsys.readouterr().out == "the file\n"
    assert main(["spans", "chain", "--rung", "graf"]) == 2
    assert "chain has no rung 'graf'; it has stream, graph" in capsys.readouterr().err


def test_the_profiles_of_single_kernels_are_written(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(occupancy, "profile", lambda: committed("profiles/occupancy.json"))
    monkeypatch.setattr(divergence, "profile", lambda prepared: committed("profiles/divergence.json"))
    monkeypatch.setattr(divergence, "prepare", lambda: None)
    assert main(["occupancy", "--records", str(tmp_path)]) == main(["divergence", "--records", str(tmp_path)]) == 0
    for name in ("occupancy", "divergence"):
        place = f"profiles/{name}.json"
        assert (tmp_path / place).read_bytes() == (HERE / place).read_bytes()
        assert str(tmp_path / place) in capsys.readouterr().out or name == "divergence"


def test_a_search_is_written_with_a_line_a_trial(monkeypatch, tmp_path):
    from kernels.sgemm.sgemm import search

    monkeypatch.setattr(search, "search", lambda: committed("search/sgemm.json"))
    assert main(["search", "sgemm", "--records", str(tmp_path)]) == 0
    assert (tmp_path / "search" / "sgemm.json").read_bytes() == (HERE / "search" / "sgemm.json").read_bytes()
    compiled = []
    monkeypatch.setattr(search, "compile_all", lambda: compiled.append(True))
    assert main(["search", "sgemm", "--compile"]) == 0 and compiled == [True]


@pytest.mark.parametrize(
    ("argv", "kinds", "ladders"),
    [
        ([], ("rungs", "patterns"), []),
        (["--only", "patterns"], ("patterns",), []),
        (["--ladder", "copy", "--ladder", "saxpy"], ("rungs",), ["copy", "saxpy"]),
    ],
)
def test_agreement_counts_what_is_asked_for_and_compares(argv, kinds, ladders, monkeypatch, capsys, tmp_path):
    asked = []

    def record_agreement(*args):
        asked.append(args)
        return tmp_path / "agreement.json", True

    monkeypatch.setattr(measuring, "record_agreement", record_agreement)
    monkeypatch.setattr(summary, "write_summary", lambda: tmp_path / "compared.json")
    assert main(["agreement", *argv, "--seconds", "7"]) == 0
    assert asked == [(kinds, ladders, 7.0, None, None)]
    assert capsys.readouterr().out == f"{tmp_path / 'agreement.json'}\n{tmp_path / 'compared.json'}\n"
    assert main(["agreement", *argv, "--counts-only"]) == 0
    assert "compared.json" not in capsys.readouterr().out


def test_agreement_of_programs_is_compared_without_a_gpu(monkeypatch, capsys, tmp_path):
    from climb.validation.foreign import summary as programs

    monkeypatch.setattr(programs, "write_summary", lambda: tmp_path / "programs_compared.json")
    assert main(["agreement", "--only", "programs", "--compare"]) == 0
    assert capsys.readouterr().out == f"{tmp_path / 'programs_compared.json'}\n"
    assert main(["agreement", "--only", "rungs", "--compare"]) == 2
    assert "--compare takes no other option but --only programs" in capsys.readouterr().err


def test_agreement_without_all_counts_is_not_compared(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(measuring, "record_agreement", lambda *args: (tmp_path / "agreement.json", False))
    assert main(["agreement"]) == 1
    assert capsys.readouterr().out == f"{tmp_path / 'agreement.json'}\n"


def test_a_part_counted_with_another_compiler_does_not_drop_the_rest(monkeypatch, capsys, tmp_path):
    path = tmp_path / "emulator" / "agreement.json"
    path.parent.mkdir()
    path.write_bytes((HERE / "emulator" / "agreement.json").read_bytes())
    monkeypatch.setattr(measuring, "prepare", lambda kinds, ladders: {kind: [] for kind in kinds})
    monkeypatch.setattr(measuring, "compiler", lambda steps: "99.9")
    monkeypatch.setattr(measuring, "measure", lambda *args: True)
    for part in (["--ladder", "copy"], ["--only", "patterns"]):
        assert main(["agreement", *part, "--records", str(tmp_path)]) == 2
        assert "and here is 99.9; count everything: climb agreement" in capsys.readouterr().err
    assert path.read_bytes() == (HERE / "emulator" / "agreement.json").read_bytes()
    assert main(["agreement", "--counts-only", "--records", str(tmp_path)]) == 0


def step(ladder, rung):
    """A launch, as far as the sanitizer's record looks at it."""
    return SimpleNamespace(names={"ladder": ladder, "rung": rung, "launch": 0}, code=f"{ladder} {rung}")


def test_clean_rows_of_other_ladders_stay(monkeypatch, tmp_path):
    report = {"errors": 0, "says": ""}
    tools = dict.fromkeys(clean.TOOLS, report)

    def measure(ladders, seconds):
        return [{"ladder": name, "rungs": len(steps), "launches": len(steps), "code_sha256": f"of {len(steps)}",
                 "tools": tools} for name, steps in ladders.items()]  # fmt: skip

    monkeypatch.setattr(clean, "measure", measure)
    monkeypatch.setattr(clean, "sanitizer_version", lambda: "compute-sanitizer 2026")
    monkeypatch.setattr(clean, "prepare", lambda kinds, ladders: {"rungs": [step(n, "a") for n in ladders or "xyz"]})
    assert main(["sanitize", "clean", "--records", str(tmp_path)]) == 0
    path = tmp_path / "emulator" / "clean.json"
    assert [row["ladder"] for row in json.loads(path.read_text())["ladders"]] == ["x", "y", "z"]
    monkeypatch.setattr(common, "loaded", lambda names: [])
    monkeypatch.setattr(clean, "prepare", lambda kinds, ladders: {"rungs": [step("y", "a"), step("y", "b")]})
    assert main(["sanitize", "clean", "--ladder", "y", "--records", str(tmp_path)]) == 0
    rows = {row["ladder"]: row["code_sha256"] for row in json.loads(path.read_text())["ladders"]}
    assert rows == {"x": "of 1", "y": "of 2", "z": "of 1"}
    tools["racecheck"] = {"errors": 2, "says": "b 0: Race"}
    assert main(["sanitize", "clean", "--ladder", "y", "--records", str(tmp_path)]) == 1
    del tools["racecheck"]
    assert main(["sanitize", "clean", "--ladder", "y", "--records", str(tmp_path)]) == 1


@pytest.mark.parametrize(("said", "status"), [({"errors": 1}, 0), ({}, 1)])
def test_faults_that_a_tool_has_not_seen_are_a_failure(said, status, monkeypatch, capsys, tmp_path):
    found = {"faults": [{"name": "late", "tools": {"memcheck": said}}]}
    monkeypatch.setattr(faults, "record_faults", lambda *args: (tmp_path / "sanitizer.json", found))
    assert main(["sanitize", "faults"]) == status
    assert f"late {{'memcheck': {said.get('errors', 'missing')!r}}}" in capsys.readouterr().out


@pytest.mark.parametrize(("different", "status"), [([], 0), ([[3, [1, 2]]], 1)])
def test_programs_that_differ_are_a_failure(different, status, monkeypatch, capsys, tmp_path):
    kinds = {"control": {"programs": 4, "words": 9, "different": different, "refused": []}}
    asked = []
    monkeypatch.setattr(
        fuzzing, "record_fuzzing", lambda *args: asked.append(args) or (tmp_path / "x", {"kinds": kinds})
    )
    assert main(["fuzz", "--programs", "2", "--first", "5"]) == status
    assert asked[0][0] == [("control", 5), ("values", 5), ("control", 6), ("values", 6)]
    assert "control: 4 programs, 9 words compared" in capsys.readouterr().out


@pytest.mark.parametrize(("different", "status"), [(0, 0), (2, 1)])
def test_matrix_products_that_differ_are_a_failure(different, status, monkeypatch, capsys, tmp_path):
    forms = {"mma_k8": {"sums": 8, "different": different}, "mma_k16": {"sums": 8, "different": 0}}
    asked = []
    monkeypatch.setattr(
        tensor_products, "record_products", lambda *args: asked.append(args) or (tmp_path / "x", {"forms": forms})
    )
    assert main(["fuzz", "--tensor", "--sums", "8", "--first", "5"]) == status
    assert asked == [(8, 5, None, None)]
    out = capsys.readouterr().out
    assert "2 kinds of products, 16 sums compared" in out and ("mma_k8: 2 of 8 sums differ" in out) == bool(different)


def test_what_ncu_profiles_are_modules_that_exist():
    """The children are started by name; a name that no module has would be noticed on a GPU only."""
    import importlib.util

    for name in ("climb.bench.profiling", "climb.bench.bench_child", "climb.validation.agreement.__main__",
                 "climb.validation.faults.clean", "climb.validation.profiles.occupancy",
                 "climb.validation.profiles.divergence"):  # fmt: skip
        assert importlib.util.find_spec(name) is not None
        source = importlib.util.find_spec(name).loader.get_source(name)
        assert 'if __name__ == "__main__":' in source, name
