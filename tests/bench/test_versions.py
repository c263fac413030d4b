"""Installed against locked: what differs is said, and another compiler than the locked one stops a recording."""

from __future__ import annotations

import shutil
from pathlib import Path

import msgspec
import pytest
from tiny_ladder import made

from climb.bench import cuda, hardware, records, report, versions
from climb.bench.timings import Timings
from climb.cli import main
from climb.display.card import card
from climb.toolchain import packages

LOCK = """\
nvidia-cuda-nvrtc-cu12==12.9.86 ; sys_platform != 'darwin' \\
    --hash=sha256:00
torch==2.11.0 \\
    --hash=sha256:00
numpy==2.4.6 ; python_full_version < '3.12' \\
    --hash=sha256:00
numpy==2.5.5 ; python_full_version >= '3.12' \\
    --hash=sha256:00
"""


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "requirements.txt").write_text(LOCK)
    monkeypatch.setattr(versions, "_installed", {"torch": "2.11.0+cu130"}.get)
    return tmp_path


def test_every_pin_of_both_locks_is_read(root):
    (root / "requirements-gpu.txt").write_text("triton==3.6.0 \\\n")
    pins = {"nvidia-cuda-nvrtc-cu12": "12.9.86", "torch": "2.11.0", "numpy": "2.5.5", "triton": "3.6.0"}
    assert versions.locked(root) == pins


def test_locked_versions_differ_in_nothing_and_a_local_part_does_not_count(root):
    assert versions.differences((12, 9), root) == {}


def test_another_compiler_and_another_library_are_named_with_the_locked_version(root, monkeypatch):
    monkeypatch.setattr(versions, "_installed", {"torch": "2.12.1"}.get)
    found = versions.differences((13, 0), root)
    assert found == {"nvrtc": "13.0 (locked: 12.9.86)", "torch": "2.12.1 (locked: 2.11.0)"}
    assert "the NVRTC that would compile the kernels is 13.0 (locked: 12.9.86)" in versions.compiler_differs(found)
    assert versions.compiler_differs({"torch": "2.12.1 (locked: 2.11.0)"}) is None


def test_a_package_outside_a_checkout_has_no_lock_to_differ_from(tmp_path):
    assert versions.differences((13, 0), tmp_path) == {}


def test_recording_with_another_compiler_is_refused_unless_it_is_asked_for(monkeypatch, capsys):
    monkeypatch.setattr(cuda, "backend", "cupy")
    monkeypatch.setattr(versions, "compiler", lambda: (13, 0))
    monkeypatch.setattr(hardware, "device_block", lambda: made.DEVICE)
    assert main(["record", "saxpy", "--only", "events"]) == 1
    said = capsys.readouterr().err
    assert "not as locked: nvrtc 13.0" in said and "--any-compiler records all the same" in said

    class Reached(Exception):
        pass

    def reached():
        raise Reached

    monkeypatch.setattr(hardware, "device_block", reached)
    with pytest.raises(Reached):
        main(["record", "saxpy", "--only", "events", "--any-compiler"])


def test_a_record_with_other_versions_says_so_on_the_card_and_in_the_report(tmp_path):
    from tiny_ladder import scale

    differs = {"nvrtc": "13.0 (locked: 12.9.86)"}
    record = msgspec.structs.replace(made.record(), device={**made.DEVICE, "differs": differs})
    records.save_record(record, tmp_path / "scale.json")
    assert records.load_record("scale", folder=tmp_path).device["differs"] == differs
    assert "Not as locked: nvrtc 13.0 (locked: 12.9.86)" in repr(
        card(before=[], minutes=1, timings=Timings(scale.ladder, "cold", record))
    )
    assert "Not as locked: nvrtc 13.0 (locked: 12.9.86): scale." in report.report(
        ["tiny_ladder.scale"], folder=tmp_path
    )
    assert "Not as locked" not in repr(card(before=[], minutes=1, timings=Timings(scale.ladder, "cold", made.record())))


def test_an_older_record_and_counts_of_another_compiler_are_named_in_the_report(tmp_path):
    older = {**made.DEVICE, "nvrtc": "13.0"}
    assert versions.of_record(older) == {"nvrtc": f"13.0 (locked: {versions.locked()[versions.COMPILER]})"}
    for same in ("12.9", "12.9.41"):
        assert versions.of_record({**older, "nvrtc": same}) == {}
    records.save_record(msgspec.structs.replace(made.record(), device=older), tmp_path / "scale.json")
    (tmp_path / "hardware").mkdir()
    (tmp_path / "hardware" / "other.json").write_bytes(msgspec.json.encode({"device": older}))
    (tmp_path / "hardware" / "same.json").write_bytes(msgspec.json.encode({"device": {**older, "nvrtc": "12.9"}}))
    said = report.report(["tiny_ladder.scale"], folder=tmp_path)
    assert "Not as locked: nvrtc 13.0 (locked: 12.9.86): scale, counts of other." in said and "same" not in said
    # So are all other files beside the times; one without a device has its compiler's version alone.
    for kind, text in (("search", {"device": older}), ("emulator", {"nvrtc": "13.0"})):
        (tmp_path / kind).mkdir()
        (tmp_path / kind / "some.json").write_bytes(msgspec.json.encode(text))
    said = report.report(["tiny_ladder.scale"], folder=tmp_path)
    assert "scale, counts of other, searches of some, comparisons with the emulator: some." in said


@pytest.mark.parametrize(
    ("name", "version", "differs"),
    [
        ("NPP", "13.0.1", {"nvidia-npp": "13.0.1 (locked: 13.2.0.93)"}),
        ("NPP", "13.2.0", {}),  # it reports three numbers of four
        ("PyTorch", "2.11.0+cu130", {}),
        ("PyTorch", "2.10.0+cu130", {"torch": "2.10.0+cu130 (locked: 2.11.0)"}),
        ("some other library", "1", {}),
    ],
)
def test_a_library_that_reports_another_version_than_the_locked_one_is_named(tmp_path, name, version, differs):
    (tmp_path / "requirements-gpu.txt").write_text("nvidia-npp==13.2.0.93\ntorch==2.11.0\n", encoding="utf-8")
    point = made.point("peer", "peer", {"n": 1024}, "cold", seconds=1e-6)
    point = msgspec.structs.replace(point, library={"name": name, "version": version})
    assert versions.of_libraries([point], tmp_path) == differs


@pytest.mark.parametrize(
    ("package", "version", "differs"), [("2.8.1", "2.8.0", {}), ("2.8.2", "2.8.0", None), ("2.8.1", "2.7.0", None)]
)
def test_a_library_may_report_another_version_than_its_own_package_has(tmp_path, package, version, differs):
    (tmp_path / "requirements-gpu.txt").write_text(f"cutensor-cu13=={package}\n", encoding="utf-8")
    point = made.point("peer", "peer", {"n": 1024}, "cold", seconds=1e-6)
    point = msgspec.structs.replace(point, library={"name": "cuTENSOR", "version": version})
    expected = {"cutensor-cu13": f"{version} (locked: {package})"} if differs is None else differs
    assert versions.of_libraries([point], tmp_path) == expected


def test_the_compiler_of_the_bindings_is_loaded_where_two_are_installed(tmp_path, monkeypatch):
    import ctypes.util

    some_library = next(Path("/lib/x86_64-linux-gnu").glob("libutil.so*"), None)
    if some_library is None:
        pytest.skip(f"no small shared library to load ({ctypes.util.find_library('util')})")
    for place, major in (("cuda_nvrtc", 12), ("cu13", 13)):
        folder = tmp_path / "nvidia" / place / "lib"
        folder.mkdir(parents=True)
        shutil.copy(some_library, folder / f"libnvrtc.so.{major}")
    monkeypatch.setattr(packages, "site_packages", lambda: [tmp_path])
    for major, place in ((12, "cuda_nvrtc"), (13, "cu13")):
        monkeypatch.setattr(packages, "bindings_major", lambda major=major: major)
        assert packages.preload("nvrtc") == tmp_path / "nvidia" / place / "lib" / f"libnvrtc.so.{major}"
    assert packages.preload("nvjitlink") is None
