"""A point that a record holds under a wrong name is read as skipped, with the kernel that shows it."""

from __future__ import annotations

import json

import pytest
from msgspec.structs import replace
from tiny_ladder import made

from climb.bench import records, report
from climb.bench.records import load_record, save_record

FMA, SPLIT = "gemm_f32f32_ffma_kernel", "gemm_bf16x9_kernel"


def read_with(tmp_path, precision, kernels):
    """The tiny record as read, with a peer that says this of itself."""
    library = {"name": "cuBLAS", "version": "1", "algorithm": "any", "precision": precision, "kernels": kernels}
    points = [replace(p, library=library) if p.kind == "peer" else p for p in made.record().points]
    save_record(replace(made.record(), points=tuple(points)), tmp_path / "scale.json")
    return load_record("scale", folder=tmp_path)


@pytest.mark.parametrize(("precision", "kernels"), [("BF16x9", SPLIT), ("fp32", FMA), ("TF32", FMA), ("BF16x9", "")])
def test_a_peer_that_its_kernels_do_not_contradict_is_kept(tmp_path, precision, kernels):
    read = read_with(tmp_path, precision, kernels)
    assert read.skipped == () and len(read.points) == len(made.record().points)


def test_an_fp32_kernel_under_the_name_of_an_emulation_is_skipped_once_for_each_size(tmp_path):
    read = read_with(tmp_path, "BF16x9", f"Memset (Device); {FMA}")
    peers = [p for p in made.record().points if p.kind == "peer"]
    assert [p for p in read.points if p.kind == "peer"] == [] and len(read.points) == len(made.record().points) - len(
        peers
    )
    assert {one.reason for one in read.skipped} == {f"asked for BF16x9, it ran a float32 kernel: {FMA}"}
    assert len(read.skipped) == len({json.dumps(p.size) for p in peers})
    assert report.skipped_peers(read) == [f"scale, {peers[0].name}: {read.skipped[0].reason}"]


@pytest.mark.parametrize("gpu", ["nvidia-h200", "nvidia-h100-80gb-hbm3"])
@pytest.mark.parametrize("name", ["sgemm", "tgemm"])
def test_a_hopper_gpu_has_no_bf16x9_of_cublaslt(gpu, name):
    """The peer is refused where it is measured; in records made before it was, it is read as skipped."""
    record = load_record(name, folder=records.RECORDS / gpu)
    assert "cuBLASLt BF16x9" not in {point.name for point in record.points}
    assert {one.name for one in record.skipped if "it ran a float32 kernel" in one.reason} == {"cuBLASLt BF16x9"}
