"""Peers without a GPU: their descriptions, the choice of the fastest, and what happens without their library."""

from __future__ import annotations

import sys
import types
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from msgspec import structs
from tiny_ladder import made, scale
from tools.nvbench_double import nvbench_double  # noqa: F401

from climb.bench import measure, recording, records, report
from climb.bench.libraries import Prepared, cublaslt, description, dotted, fastest, prepared
from climb.bench.libraries.description import describe, shortened
from climb.bench.libraries.kernels_of import names_of
from climb.bench.measure import Sampling, Target
from climb.bench.problem import Peer, PeerUnavailable
from climb.bench.registry import ladder_names, load_ladder

TINY = "tiny_ladder.scale"
ABOUT = {"name": "library", "version": "1", "algorithm": "default", "precision": "TF32"}


def peer(prepare, name="library", **more) -> Peer:
    return Peer(name, prepare, lambda: dict(ABOUT), **more)


def missing(arrays, size):
    raise ModuleNotFoundError("No module named 'vendor'", name="vendor")


def no_shared_library(arrays, size):
    raise type("DynamicLibNotFoundError", (RuntimeError,), {})('Failure finding "libnppif.so.13"')


def refuses_odd(arrays, size):
    if size["n"] % 2:
        raise PeerUnavailable("n is odd")
    return scale.library.prepare(arrays, size)


@pytest.mark.parametrize("name", ladder_names())
def test_peers_of_a_ladder_have_different_names_and_none_is_a_rung(name):
    ladder = load_ladder(name)
    names = [one.name for one in ladder.peers]
    assert len(set(names)) == len(names) and not set(names) & set(ladder.names)


# Descriptions.


@pytest.mark.parametrize(
    ("number", "places", "version"),
    [(91900, (10000, 100, 1), "9.19.0"), (13020, (1000, 10), "13.2"), (300102, (100000, 100, 1), "3.1.2")],
)
def test_packed_versions_are_read(number, places, version):
    assert dotted(number, *places) == version


def test_a_description_has_what_was_chosen_and_the_kernels_that_ran():
    launch = Prepared(lambda: None, {"precision": "fp32", "choice": "tile 128 x 64"})
    found = description(peer(missing), launch, ("gemm<float>", "k" * 500))
    assert found == {
        "name": "library",
        "version": "1",
        "algorithm": "default",
        "precision": "fp32",
        "choice": "tile 128 x 64",
        "kernels": "gemm<float>; " + "k" * 157 + "...",
    }


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("void flip_filter<float, float>(float*, float const*)", "flip_filter<float, float>(float*, float const*)"),
        (
            f"void cub::detail::DeviceReduceKernel<cub::policy<double, {'x' * 200}>, true>(float const*, {'y' * 9})",
            "cub::detail::DeviceReduceKernel<...>",
        ),
        (
            f"void at::(anonymous namespace)::pad<float, (int)2, {'z' * 200}>(int)",
            "at::(anonymous namespace)::pad<...>",
        ),
        ("k" * 161, "k" * 157 + "..."),
    ],
)
def test_a_long_kernel_name_loses_its_arguments_and_keeps_what_it_is(name, short):
    assert shortened(name) == short


def test_a_launch_that_chooses_nothing_is_described_by_its_peer_alone():
    assert description(peer(missing), lambda: None, ()) == ABOUT


class Event:
    def __init__(self, name, start, device="DeviceType.CUDA"):
        self.name, self.device_type = name, device
        self.time_range = type("Range", (), {"start": start})


def test_kernels_are_named_in_the_order_of_their_start_and_repeats_are_counted():
    events = [
        Event("reduce", 9),
        Event("gemm", 3),
        Event("cudaLaunchKernel", 1, "DeviceType.CPU"),
        Event("gemm", 5),
        Event("Memset (Device)", 2),
        Event("Context Sync", 10),
    ]
    assert names_of(events) == ("Memset (Device)", "gemm x 2", "reduce")


# The fastest.


def candidate(name, log):
    return Prepared(lambda: log.append(name), {"choice": name})


def test_the_fastest_candidate_is_kept_and_each_ran_before_it_was_timed():
    log, times = [], {"slow": 3.0, "quick": 1.0, "late": 2.0}

    def seconds(enqueue):
        enqueue()
        assert log[-1] == log[-2]
        return times[log[-1]]

    best = fastest([lambda name=name: candidate(name, log) for name in times], seconds)
    assert best.chosen == {"choice": "quick"}


def test_a_tie_within_noise_keeps_the_earlier_candidate():
    taken = iter((1.0, 0.99, 0.95))
    best = fastest([lambda name=name: candidate(name, []) for name in "abc"], lambda enqueue: next(taken))
    assert best.chosen == {"choice": "c"}
    taken = iter((1.0, 0.985))
    best = fastest([lambda name=name: candidate(name, []) for name in "ab"], lambda enqueue: next(taken))
    assert best.chosen == {"choice": "a"}


def test_a_candidate_that_fails_is_left_out_and_none_left_says_why():
    def broken():
        raise RuntimeError("CUDNN_STATUS_NOT_SUPPORTED")

    assert fastest([broken, lambda: candidate("runs", [])], lambda enqueue: 1.0).chosen == {"choice": "runs"}
    with pytest.raises(PeerUnavailable, match="CUDNN_STATUS_NOT_SUPPORTED"):
        fastest([broken], lambda enqueue: 1.0)


def test_only_the_first_call_delivers_a_result_in_the_problems_layout():
    log = []
    launch = Prepared(lambda: log.append("run"), {}, lambda: log.append("deliver"))
    launch.enqueue()
    launch()
    launch()
    assert log == ["run", "run", "deliver", "run"]


# Libraries that are missing.


@pytest.mark.parametrize(("prepare", "what"), [(missing, "the module vendor"), (no_shared_library, "libnppif.so")])
def test_a_missing_library_is_named_with_what_installs_it(prepare, what):
    with pytest.raises(PeerUnavailable, match=f"{what} is not installed.*make gpu installs it"):
        prepared(peer(prepare), {}, {})


def products_of_integers(arrays) -> Callable[[], None]:
    (found,) = [found for found in load_ladder("classifier_int").peers if found.name == "CuPy"]
    return prepared(found, arrays, {})


def test_products_of_cupy_without_its_cublas_name_what_brings_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", np)
    monkeypatch.setitem(sys.modules, "cupy_backends.cuda.libs", types.ModuleType("cupy_backends.cuda.libs"))
    with pytest.raises(PeerUnavailable, match=r"libcublas.so.12.*cupy-cuda12x\[ctk\] brings it.*cannot import name"):
        products_of_integers({"weights": np.ones((2, 3)), "input": np.ones((1, 3))})


def test_products_of_cupy_with_its_cublas_are_launched(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy_backends.cuda.libs", types.SimpleNamespace(cublas=object()))
    monkeypatch.setitem(sys.modules, "cupy", np)
    arrays = {"weights": np.full((2, 3), 2), "input": np.full((1, 3), 5), "output": np.zeros((1, 2), int)}
    products_of_integers(arrays)()
    assert arrays["output"].tolist() == [[30, 30]]


def test_any_other_error_of_a_peer_is_not_taken_for_a_missing_library():
    def wrong(arrays, size):
        raise RuntimeError("out of memory")

    with pytest.raises(RuntimeError, match="out of memory"):
        prepared(peer(wrong), {}, {})


def recorded(monkeypatch, tmp_path, *peers):
    """A record of the tiny ladder with other peers, by NVBench's double."""
    monkeypatch.setattr(measure, "ladder_names", lambda: ())
    monkeypatch.setattr(scale, "ladder", replace(scale.ladder, peers=peers))
    return recording.record_ladder(TINY, Sampling(), [tmp_path], keep=tmp_path / "kept")


def test_a_missing_peer_is_skipped_with_its_reason_and_the_others_are_measured(nvbench, tmp_path, monkeypatch):
    made = recorded(monkeypatch, tmp_path, peer(missing, "absent"), scale.library)
    reason = "the module vendor is not installed or cannot be loaded; make gpu installs it"
    assert made.skipped == tuple(records.Skipped("absent", dict(size), reason) for size in scale.problem.recorded)
    assert {p.name for p in made.points if p.kind == "peer"} == {"library"}
    assert records.stale_points(made, scale.ladder) == [] and records.pending_peers(made, scale.ladder) == ()
    assert report.skipped_peers(made) == [f"scale, absent: {reason}"]
    records.save_record(made, tmp_path / "scale.json")
    assert records.load_record("scale", folder=tmp_path) == made


def test_a_peer_that_refuses_one_size_has_times_at_the_others(nvbench, tmp_path, monkeypatch):
    made = recorded(monkeypatch, tmp_path, peer(refuses_odd))
    assert [one.size for one in made.skipped] == [{"n": 1023}]
    assert made.find("library", {"n": 1024}, "cold").library["kernels"] == "one_kernel; another"
    assert report.skipped_peers(made) == ["scale, library at n=1023: n is odd"]


def test_a_compilers_message_is_reported_by_its_first_line_without_the_folders_of_its_machine():
    said = "CompileException: /tmp/venv/include/mma.h(55): cannot open a file\n  #include <x>\n\nIt ends.\n"
    record = structs.replace(made.record(), skipped=(records.Skipped("absent", {"n": 1024}, said),))
    assert report.skipped_peers(record) == ["scale, absent: CompileException: mma.h(55): cannot open a file"]


def test_a_peer_is_not_asked_for_sizes_that_are_not_its_own(nvbench, tmp_path, monkeypatch):
    even = replace(scale.library, requires=lambda size: "n is odd" if size["n"] % 2 else None)
    made = recorded(monkeypatch, tmp_path, even)
    assert {p.size["n"] for p in made.points if p.kind == "peer"} == {1024} and made.skipped == ()


def test_a_peer_that_is_not_swept_is_expected_at_the_headline_alone():
    problem = replace(scale.problem, sweep=({"n": 4096},))
    ladder = replace(scale.ladder, problem=problem, peers=(replace(scale.library, swept=False),))
    sizes = [size["n"] for kind, _, size in records.expected_points(ladder) if kind == "peer"]
    assert sizes == [size["n"] for size in problem.headline]


def test_a_peer_is_never_timed_with_a_wrong_result(nvbench, tmp_path, monkeypatch):
    def writes_nothing(arrays, size):
        return lambda: None

    monkeypatch.setattr(scale, "ladder", replace(scale.ladder, peers=(peer(writes_nothing),)))
    target = Target(TINY, "peer", "library", {"n": 1024})
    skipped: list[tuple[Target, str]] = []
    measure.run([target], Sampling(), keep=tmp_path, skipped=skipped)
    ((_, why),) = skipped
    assert "'library'" in why and "never written" in why
    assert all("min_samples" not in state.asked for state in nvbench.states)


# What cuBLASLt is told of matrices.


@pytest.mark.parametrize(
    ("address", "batch", "stride", "bytes_"),
    [(4096, 1, 0, 256), (4096 + 64, 1, 3, 64), (4096, 5, 1, 4), (4096, 5, 20, 16), (4096, 5, 1 << 20, 256)],
)
def test_alignment_holds_for_every_matrix_of_a_batch(address, batch, stride, bytes_):
    one = cublaslt.Matrix(address, 8, 8, 8, batch=batch, stride=stride)
    assert cublaslt.alignment(one) == bytes_
    assert all((address + 4 * index * stride) % bytes_ == 0 for index in range(batch))


def test_a_transposed_array_keeps_its_pitch_and_exchanges_its_extents():
    array = type("Array", (), {"shape": (3, 5), "dtype": "float16", "data": type("Data", (), {"ptr": 4096})})
    assert cublaslt.matrix(array) == cublaslt.Matrix(4096, 3, 5, 5, dtype="float16")
    assert cublaslt.matrix(array, transposed=True) == cublaslt.Matrix(4096, 5, 3, 5, transposed=True, dtype="float16")


def test_a_description_without_its_library_is_a_missing_peer():
    def unknown():
        raise ModuleNotFoundError("No module named 'nvmath'", name="nvmath")

    with pytest.raises(PeerUnavailable, match="the module nvmath is not installed"):
        description(Peer("library", missing, unknown), lambda: None, ())


def test_a_version_of_a_type_of_its_own_is_written_as_text():
    class Version(str):
        """A string type like that of PyTorch's version; msgspec, which writes parts of recordings, refuses it."""

    assert type(describe("PyTorch", Version("2.11.0"), "add", "fp32")["version"]) is str


# A peer is what its name says.

FMA_KERNEL = "sm80_xmma_gemm_f32f32_f32f32_f32_nn_n_tilesize256x128x8_stage3_warpsize4x2x1_ffma_aligna4_alignc4"
SPLIT_KERNEL = "sm100_xmma_gemm_f32f32_bf16x9_f32_nn_n_tilesize256x128x64"


def answers_with(kernel):
    return lambda enqueue: ("Memset (Device)", kernel)


def test_an_fp32_kernel_in_answer_to_bf16x9_is_refused_by_its_name():
    with pytest.raises(PeerUnavailable, match=f"asked for BF16x9, it ran a float32 kernel: {FMA_KERNEL}"):
        cublaslt.as_asked(candidate("first", []), "BF16x9", answers_with(FMA_KERNEL))


def test_of_the_heuristics_answers_only_those_of_the_precision_are_timed():
    def made(kernel, name):
        return lambda: cublaslt.as_asked(candidate(name, []), "BF16x9", answers_with(kernel))

    quick = iter((1.0,))
    best = fastest([made(FMA_KERNEL, "fp32"), made(SPLIT_KERNEL, "split")], lambda enqueue: next(quick))
    assert best.chosen == {"choice": "split"}
    with pytest.raises(PeerUnavailable, match=r"no candidate runs: .*ffma"):
        fastest([made(FMA_KERNEL, "fp32")], lambda enqueue: 1.0)


@pytest.mark.parametrize("precision", ["fp32", "TF32"])
def test_a_product_that_is_not_emulated_may_run_any_kernel_and_is_not_traced(precision):
    launch = candidate("only", [])
    assert cublaslt.as_asked(launch, precision, lambda enqueue: pytest.fail("traced")) is launch


def test_a_description_that_its_kernels_contradict_is_no_peer():
    launch = Prepared(lambda: None, {"precision": "3xTF32"})
    assert description(peer(missing), launch, ("multiply",))["kernels"] == "multiply"
    with pytest.raises(PeerUnavailable, match="asked for 3xTF32, it ran a float32 kernel: cutlass_80_simt_sgemm"):
        description(peer(missing), launch, ("multiply", "cutlass_80_simt_sgemm"))
