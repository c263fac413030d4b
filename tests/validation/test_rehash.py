"""Records keep their points through a refactoring, and only through one that leaves the machine code as it was."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from tools.thorough import thorough

from climb.bench import identity, records
from climb.cli.errors import UsageError
from climb.cli.rehash import parse_renames
from climb.distributed.recorded import shared_record
from climb.validation.faults import clean
from climb.validation.rehash import convert, inventory, proof

SOURCE = """
constexpr int kWarp = 32;
__device__ float sum(float value)
{
    for (int offset = kWarp / 2; offset > 0; offset /= 2) value += __shfl_down_sync(0xffffffffu, value, offset);
    return value;
}
__global__ void warp_sums(const float* x, float* y) { y[threadIdx.x] = sum(x[threadIdx.x]); }
"""
LAUNCH = {"kernel": "warp_sums", "grid": [1], "block": [32], "shared_mem": 0, "args": ["x", "y"]}


@pytest.fixture(autouse=True)
def one_try(monkeypatch: pytest.MonkeyPatch) -> None:
    """These sources compile to the same code in every process."""
    monkeypatch.setattr(proof, "TRIES", 1)


def point(source: str = SOURCE, rung: str = "shuffles", **changed: Any) -> dict[str, Any]:
    """A point of an inventory."""
    one = {
        "module": "sums", "ladder": "sums", "rung": rung, "size": {"n": 32}, "source": source,
        "options": ["-std=c++17"], "launches": [copy.deepcopy(LAUNCH) | changed], "workspace": {},
    }  # fmt: skip
    one["sha256"] = identity.sha256(source, one["options"], one["launches"], one["workspace"])
    return one


def test_renamed_variable_has_other_tokens_and_the_same_machine_code() -> None:
    renamed = point(SOURCE.replace("value", "partial"))
    assert not proof.same_tokens(point(), renamed)
    assert proof.same_machine_code(point(), renamed) == ""


def test_rung_for_one_architecture_alone_is_compiled_for_it() -> None:
    """Its options name the architecture; setmaxnreg is refused on all others."""
    alone = SOURCE.replace("y[threadIdx.x]", 'asm volatile("setmaxnreg.inc.sync.aligned.u32 240;"); y[threadIdx.x]')
    old, new = point(alone), point(alone.replace("value", "partial"))
    for one in (old, new):
        one["options"].append("-arch=sm_90a")
    assert proof.same_machine_code(old, new) == ""


def test_renamed_kernel_has_the_same_tokens() -> None:
    renamed = point(SOURCE.replace("warp_sums", "sum_of_warp"), kernel="sum_of_warp")
    assert proof.same_tokens(point(), renamed) and proof.same_machine_code(point(), renamed) == ""


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        thorough({"source": SOURCE.replace("kWarp / 2", "kWarp / 4")}, "its machine code differs"),
        ({"grid": [2]}, "its launches differ"),
        ({"shared_mem": 16}, "its launches differ"),
        ({"args": ["y", "x"]}, "its launches differ"),
    ],
)
def test_another_program_is_told_apart(changed: dict[str, Any], reason: str) -> None:
    assert proof.same_machine_code(point(), point(**changed)) == reason


def test_plans_of_several_gpus_are_proven_too() -> None:
    """Some of their steps launch no kernel, and a graph of them is no option of the compiler."""
    wait = {"kernel": "", "args": [], "step": "exchange", "stream": "messages", "rank": 1}
    old, new, other = (point(SOURCE.replace("value", name)) for name in ("value", "partial", "partial"))
    for one in (old, new, other):
        one["launches"].append(wait)
        one["options"].append("graph")
    other["launches"][-1] = wait | {"rank": 0}
    assert proof.same_machine_code(old, new) == ""
    assert proof.same_machine_code(old, other) == "its launches differ"


def test_points_of_several_gpus_are_listed_with_the_hash_that_their_record_has() -> None:
    listed = {(one["ladder"], one["rung"], one["size"]["gpus"]): one for one in inventory._shared_points()}
    for rung, gpus in (("one_gpu", 1), ("graph", 2)):
        one, record = listed["halo_fft", rung, gpus], shared_record("halo_fft")
        assert one["sha256"] in {point.source_sha256 for point in record.points if point.name == rung}
        assert one["sha256"] == identity.sha256(one["source"], one["options"], one["launches"], one["workspace"])
        assert (one["options"][-1] == "graph") == (rung == "graph")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Records of one ladder and of its counters, in a folder of their own."""
    monkeypatch.setattr(records, "RECORDS", tmp_path)
    gpu = tmp_path / "gpu"
    (gpu / "hardware").mkdir(parents=True)
    (gpu / "emulator").mkdir()
    one = {"name": "shuffles", "size": {"n": 32}, "source_sha256": point()["sha256"]}
    stale = {"name": "shuffles", "size": {"n": 64}, "source_sha256": "0" * 64}
    for path in (gpu / "sums.json", gpu / "hardware" / "sums.json"):
        path.write_text(json.dumps({"ladder": "sums", "points": [one, stale]}, indent=1) + "\n", encoding="utf-8")
    counted = {
        "rungs": [{"ladder": "sums", "rung": "shuffles", "size": {"n": 32}, "launch": 0, "code_sha256": "a" * 64}]
    }
    # The code of another rung is kept, and was so when an older inventory had another hash for it.
    counted["rungs"].append({**counted["rungs"][0], "rung": "atomics", "code_sha256": "e" * 64})
    (gpu / "emulator" / "agreement.json").write_text(json.dumps(counted, indent=1) + "\n", encoding="utf-8")
    row = {"ladder": "sums", "code_sha256": clean.code_of(["a" * 64, "e" * 64])}
    (gpu / "emulator" / "clean.json").write_text(json.dumps({"ladders": [row]}, indent=1) + "\n", encoding="utf-8")
    of_ceilings = [{"ladder": name, "work": 4, "point": {"name": "shuffles"}} for name in ("sums", "maxima")]
    (gpu / "ceilings.json").write_text(json.dumps({"points": of_ceilings}, indent=1) + "\n", encoding="utf-8")
    return gpu


def old_and_new(new: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    def made(one: dict[str, Any], code: str) -> dict[str, Any]:
        key = {"ladder": "sums", "rung": one["rung"], "size": {"n": 32}, "launch": 0}
        counts = [{"key": key, "code_sha256": code}]
        return {"points": [one], "counts": counts, "kept": {}, "faults": {}, "searches": {}}

    return made(point(), "a" * 64), made(new, "b" * 64)


def test_proven_points_and_their_counts_get_todays_hash_and_name(folder: Path, monkeypatch) -> None:
    old, new = old_and_new(point(SOURCE.replace("value", "partial"), "warp_shuffles"))
    monkeypatch.setattr(inventory, "inventory", lambda renamed: new)
    monkeypatch.setattr(inventory, "counts", lambda: new["counts"])
    outcome = convert.convert(old, {"sums": {"shuffles": "warp_shuffles"}})
    assert (outcome.by_tokens, outcome.by_machine_code, outcome.left) == (0, 1, [])
    for path in (folder / "sums.json", folder / "hardware" / "sums.json"):
        fresh, stale = json.loads(path.read_text())["points"]
        assert (fresh["name"], fresh["source_sha256"]) == ("warp_shuffles", new["points"][0]["sha256"])
        assert stale["source_sha256"] == "0" * 64  # was stale before, and stays so
    counted, kept = json.loads((folder / "emulator" / "agreement.json").read_text())["rungs"]
    assert (counted["rung"], counted["code_sha256"]) == ("warp_shuffles", "b" * 64)
    assert kept["code_sha256"] == "e" * 64
    (row,) = json.loads((folder / "emulator" / "clean.json").read_text())["ladders"]
    assert row["code_sha256"] == clean.code_of(["b" * 64, "e" * 64])
    of_ceilings = json.loads((folder / "ceilings.json").read_text())["points"]
    assert [one["point"]["name"] for one in of_ceilings] == ["warp_shuffles", "shuffles"]  # the other ladder's stays


def test_records_of_several_gpus_are_no_points_of_one(folder: Path) -> None:
    """``sums`` is no ladder of the book, so looking it up would fail."""
    folder.rename(folder.parent / "gpu-x2")
    assert list(inventory._points({})) == []


@pytest.mark.thorough
def test_changed_kernel_keeps_its_old_hashes_and_is_listed(folder: Path, monkeypatch) -> None:
    before = {path: path.read_text() for path in folder.rglob("*.json")}
    old, new = old_and_new(point(SOURCE.replace("offset /= 2", "offset /= 4")))
    monkeypatch.setattr(inventory, "inventory", lambda renamed: new)
    monkeypatch.setattr(inventory, "counts", lambda: new["counts"])
    outcome = convert.convert(old, {})
    assert outcome.left == ["""sums 'shuffles' at {"n": 32}: its machine code differs"""]
    assert {path: path.read_text() for path in folder.rglob("*.json")} == before


def test_renames_are_parsed_and_a_wrong_one_is_refused() -> None:
    assert parse_renames(["a/b=c", "a/d=e"]) == {"a": {"b": "c", "d": "e"}}
    for wrong in ("a", "a/b", "a/=c", "/b=c", "a/b="):
        with pytest.raises(UsageError, match="expected LADDER/OLD=NEW"):
            parse_renames([wrong])
