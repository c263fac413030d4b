"""The peers that tables show: the fastest form of each library, and a lower precision where it is faster."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest
from tiny_ladder import made, scale

from climb.bench import report
from climb.bench.records import load_record
from climb.bench.shown_peers import shown
from climb.bench.timings import Timings
from climb.display.selection import select


def peer(name, seconds, library, precision="fp32"):
    point = made.point("library", "peer", {"n": 1024}, "cold", seconds=seconds)
    return msgspec.structs.replace(point, name=name, library={"name": library, "precision": precision})


def names(*peers):
    return [point.name for point in shown(peers)]


def test_the_fastest_form_of_each_library_is_shown_and_the_fastest_library_first():
    given = (peer("NCHW", 5e-6, "cuDNN"), peer("cuFFT", 9e-6, "cuFFT"), peer("NHWC", 4e-6, "cuDNN"))
    assert names(*given) == ["NHWC", "cuFFT"]


def test_a_lower_precision_is_shown_beside_full_precision_where_it_is_faster():
    full, slower, faster = (
        peer("fp32", 4e-6, "cuDNN"),
        peer("TF32", 8e-6, "cuDNN", "TF32"),
        peer("half", 1e-6, "cuDNN", "fp16"),
    )
    assert names(full, faster) == ["fp32", "half"]
    assert names(full, slower) == ["fp32"]
    assert names(full, slower, faster) == ["fp32", "half"]


def test_a_lower_precision_that_is_an_fp32_kernel_is_not_shown_twice():
    assert names(peer("fp32", 4e-6, "cuDNN"), peer("TF32", 3.99e-6, "cuDNN", "TF32")) == ["fp32"]


def test_a_form_named_after_a_precision_that_it_did_not_use_is_shown_as_what_it_is():
    """It may use TF32, and chose the same fp32 kernel: the form that is named fp32 stands for both, unless it is slower
    by more than noise."""
    full, allowed = peer("cuDNN", 4.05e-6, "cuDNN"), peer("cuDNN TF32", 4e-6, "cuDNN")
    assert names(full, allowed) == names(allowed, full) == ["cuDNN"]
    assert names(peer("cuDNN", 5e-6, "cuDNN"), allowed) == ["cuDNN TF32"]
    assert names(allowed) == ["cuDNN TF32"]
    assert names(peer("cuFFT", 4e-6, "cuFFT"), allowed) == ["cuFFT", "cuDNN TF32"]


def test_three_tf32_products_count_as_full_precision():
    assert names(peer("fp32", 4e-6, "CUTLASS"), peer("three", 2e-6, "CUTLASS", "3xTF32")) == ["three"]


def test_float64_stands_beside_float32_where_it_is_faster_and_not_in_place_of_it():
    full, faster = peer("fp32", 4e-6, "cuBLAS"), peer("fp64", 3e-6, "cuBLAS", "fp64")
    lower, slower = peer("TF32", 1e-6, "cuBLAS", "TF32"), peer("fp64", 5e-6, "cuBLAS", "fp64")
    assert names(full, faster, lower) == ["fp32", "TF32", "fp64"]
    assert names(full, slower, lower) == ["fp32", "TF32"]


def test_a_lower_precision_of_another_library_does_not_hide_behind_the_first():
    assert names(peer("fp32", 4e-6, "cuDNN"), peer("TF32", 8e-6, "cuBLAS", "TF32")) == ["fp32", "TF32"]


def test_the_report_has_the_shown_peers_alone_and_says_so(tmp_path):
    record = made.record()
    slow = [
        msgspec.structs.replace(p, name="library TF32", median_s=9e-6, library={"name": "None", "precision": "TF32"})
        for p in record.points
        if p.kind == "peer"
    ]
    record = msgspec.structs.replace(record, points=(*record.points, *slow))
    ladder = replace(scale.ladder, peers=(*scale.ladder.peers, replace(scale.library, name="library TF32")))
    assert [list(row.against) for row in report.rows_of(ladder, record)] == [["library"], ["library"]]


@pytest.mark.parametrize(("kernels", "drawn"), [({"kernels": "gemm"}, ["fast"]), ({}, ["fast", "slow"])])
def test_a_figure_draws_the_shown_peers_of_records_that_name_kernels(kernels, drawn):
    forms = [
        msgspec.structs.replace(peer(name, seconds, "cuDNN"), library={"name": "cuDNN", "precision": "fp32", **kernels})
        for name, seconds in (("fast", 3e-6), ("slow", 5e-6))
    ]
    rungs = tuple(p for p in made.record().points if p.kind == "rung")
    record = msgspec.structs.replace(made.record(), points=(*rungs, *forms))
    chosen = select(Timings(scale.ladder, "cold", record))
    assert [p.name for p in chosen.peers] == ["fast", "slow"] and [p.name for p in chosen.drawn_peers] == drawn


def test_beside_rungs_in_tf32_the_libraries_are_shown_in_tf32():
    """Not the form in fp32, which would make any kernel in TF32 look many times as fast as the library."""
    peers = (
        peer("fp32", 8e-6, "cuBLAS"),
        peer("TF32", 1e-6, "cuBLAS", "TF32"),
        peer("halves", 4e-6, "CUTLASS", "fp16"),
    )
    assert [point.name for point in shown(peers, "TF32")] == ["TF32", "halves"]
    assert [point.name for point in shown(peers)] == ["fp32", "TF32", "halves"]


@pytest.mark.parametrize("name", ["tf32gemm", "classifier_tf32", "hgemm", "convlayer_f16", "sparse_gemm"])
def test_ladders_in_low_precision_are_compared_with_libraries_in_theirs(name):
    chosen = select(load_record(name))
    assert chosen.drawn_peers[0].library["precision"].startswith(chosen.ladder.problem.precision)
    assert chosen.peer.library["precision"].startswith(chosen.ladder.problem.precision)


def test_the_report_names_peers_that_were_added_after_the_record():
    record = made.record()
    ladder = replace(scale.ladder, peers=(*scale.ladder.peers, replace(scale.library, name="newer")))
    assert report.unmeasured_peers(record, scale.ladder) == []
    assert report.unmeasured_peers(record, ladder) == [f"scale, newer: added after this record of {record.date}"]
