"""Every rung of every ladder: right on awkward sizes and values, tidy, and compilable for every GPU it is meant for."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kernels.emulator import EmulatorError, OutOfBounds
from kernels.lab import ArgumentError, BoundRung, Ladder, WrongResult, cp, ladder_names, load_ladder, verify

LADDERS = {name: load_ladder(name) for name in ladder_names()}
ARCHITECTURES = ("sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120")


def rungs() -> Iterator[BoundRung]:
    for ladder in LADDERS.values():
        yield from ladder


def identify(rung: BoundRung) -> str:
    return f"{rung.ladder.name}-{rung.name}"


each_rung = pytest.mark.parametrize("rung", list(rungs()), ids=identify)
each_ladder = pytest.mark.parametrize("ladder", list(LADDERS.values()), ids=lambda ladder: ladder.name)

#: Sizes to draw from: small, with ones, primes and tile edges among them. A ladder without an entry is an error.
EDGE = st.one_of(st.integers(1, 70), st.sampled_from((31, 32, 33, 63, 64, 65, 127, 128, 129)))
SIZES = {
    "copy": st.fixed_dictionaries({"n": st.one_of(st.integers(1, 40), st.integers(1, 9000))}),
    "fma": st.fixed_dictionaries({"n": st.one_of(st.integers(1, 40), st.integers(1, 4200))}),
    "read": st.fixed_dictionaries({"n": st.one_of(st.integers(1, 40), st.integers(1, 25000))}),
    "strided": st.fixed_dictionaries({"n": st.integers(1, 600), "stride": st.integers(1, 70)}),
    "matmul": st.fixed_dictionaries({"m": EDGE, "n": EDGE, "k": EDGE}),
    "transpose": st.fixed_dictionaries({"rows": EDGE, "cols": EDGE}),
}


@each_rung
def test_right_at_the_sizes_of_the_problem(rung: BoundRung) -> None:
    for seed, size in enumerate(rung.ladder.problem.check):
        verify(rung, size, seed)


@each_rung
@settings(max_examples=8, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_right_at_any_size(rung: BoundRung, data: st.DataObject) -> None:
    size = data.draw(SIZES[rung.ladder.name])
    verify(rung, size, seed=data.draw(st.integers(0, 1000)))


@each_rung
def test_zeros_give_what_the_reference_gives(rung: BoundRung) -> None:
    size = rung.ladder.problem.check[-1]
    zeros = {name: np.zeros_like(value) for name, value in rung.ladder.inputs(size).items()}
    verify(rung, size, inputs=zeros)


@each_rung
def test_nan_comes_out_where_it_must_and_nowhere_else(rung: BoundRung) -> None:
    size = rung.ladder.problem.check[-1]
    inputs = rung.ladder.inputs(size)
    for value in inputs.values():
        flat = value.reshape(-1)
        flat[:: max(1, flat.size // 3)] = np.nan
    verify(rung, size, inputs=inputs)


@pytest.mark.parametrize("name", ["copy", "strided", "transpose"])
def test_what_is_only_moved_keeps_every_bit(name: str) -> None:
    """Infinities, the largest and the smallest floats and both zeros pass through; a tolerance of 0 is asserted."""
    special = np.array([np.inf, -np.inf, 3.4e38, 1.2e-38, 1e-45, -0.0, 0.0, 1.0], dtype=np.float32)
    ladder = LADDERS[name]
    size = ladder.problem.check[-1]
    assert ladder.problem.tolerance(size) == 0.0
    for rung in ladder:
        inputs = ladder.inputs(size)
        inputs["source"].reshape(-1)[:] = np.resize(special, inputs["source"].size)
        verify(rung, size, inputs=inputs)
        out = cp.asnumpy(rung(cp.asarray(inputs["source"]), **{k: size[k] for k in ladder.problem.parameters}))
        expected = ladder.problem.reference(inputs, size)["target"]
        assert np.array_equal(out.view(np.uint32), np.ascontiguousarray(expected).view(np.uint32))


@each_rung
def test_a_view_off_by_one_element_is_taken_or_refused_by_name(rung: BoundRung) -> None:
    """A view that starts one float later is aligned for floats but not for float4."""
    size = dict(rung.ladder.problem.check[-1])
    host = rung.ladder.inputs(size)
    shifted = {}
    for argument in rung.ladder.problem.inputs:
        value = host[argument.name]
        whole = cp.empty(value.size + 1, dtype=argument.dtype)
        whole[1:] = cp.asarray(value.reshape(-1))
        shifted[argument.name] = whole[1:].reshape(value.shape)
    parameters = {key: size[key] for key in rung.ladder.problem.parameters}
    needs_more = [n for n, b in rung.rung.alignment.items() if n in shifted and b > 4]
    if needs_more:
        with pytest.raises(ArgumentError, match=f"argument '{needs_more[0]}' starts 4 byte.* needs 16-byte alignment"):
            rung(*shifted.values(), **parameters)
        return
    assert np.array_equal(
        cp.asnumpy(rung(*shifted.values(), **parameters)),
        cp.asnumpy(rung(*(cp.asarray(host[n]) for n in shifted), **parameters)),
    )


@each_rung
def test_compiles_for_every_architecture(rung: BoundRung) -> None:
    size = rung.ladder.problem.headline[0]
    for arch in ARCHITECTURES:
        compiled = rung.compiled(size, arch)
        assert compiled.ptx and compiled.cubin, arch


@each_rung
def test_the_file_opens_with_idea_difference_and_demands(rung: BoundRung) -> None:
    first, second, third = rung.source.splitlines()[:3]
    assert re.match(r"// Idea: \w.*[.,;]?", first)
    assert second.startswith("// From the rung before: ")
    assert "// Requires: " in rung.source and third.startswith("//")
    assert ("the first rung" in second) == (rung.previous is None)


@each_rung
def test_the_launch_has_the_block_that_the_kernel_counts_on(rung: BoundRung) -> None:
    """A kernel that names its block size (kThreads, or kTile x kRows) is launched with just that many threads."""
    constants = {name: int(value) for name, value in re.findall(r"constexpr int (k\w+) = (\d+);", rung.source)}
    for size in rung.ladder.problem.check:
        for launch in rung.launches(size):
            if "kThreads" in constants:
                assert np.prod(launch.block) == constants["kThreads"]
            if "kRows" in constants:
                assert launch.block == (constants["kTile"], constants["kRows"])
            assert np.prod(launch.block) <= 1024 and max(launch.grid[1:], default=1) <= 65535


@each_ladder
def test_every_source_is_a_rung(ladder: Ladder) -> None:
    assert {path.name for path in ladder.folder.glob("*.cu")} == {rung.rung.source for rung in ladder}


@each_ladder
def test_each_rung_is_another_program(ladder: Ladder) -> None:
    size = ladder.problem.headline[0]
    assert len({rung.sha256(size) for rung in ladder}) == len(ladder.rungs)


#: Faults planted in rungs: what is replaced by what, and what must come of it.
PLANTED = [
    ("transpose", "naive", "row + j < rows", "row + j <= rows", OutOfBounds),
    ("transpose", "tiled", "row + j < cols", "row + j <= cols", OutOfBounds),
    ("transpose", "padded", "tile[threadIdx.x][threadIdx.y + j]", "tile[threadIdx.y + j][threadIdx.x]", WrongResult),
    ("transpose", "swizzled", "(threadIdx.y + j) ^ threadIdx.x]", "threadIdx.y + j]", WrongResult),
    ("transpose", "vectorised", "(q ^ (c / 4 % 8))", "(q ^ (c / 4 % 2 + 16))", EmulatorError),
    ("copy", "float4", "quads * kWidth + i", "quads * kWidth + i + 1", WrongResult),
    ("copy", "in_flight", "u < kUnroll; ++u) {\n        const size_t i = first + u * kThreads;\n        if (i < quads) {\n"
     "            reinterpret", "u < kUnroll - 1; ++u) {\n        const size_t i = first + u * kThreads;\n"
     "        if (i < quads) {\n            reinterpret", WrongResult),
    ("read", "float4", "start + kChunk <= n", "start + kChunk <= n + kChunk", OutOfBounds),
    ("matmul", "coalesced", "k < K", "k < K - 1", WrongResult),
    ("matmul", "naive", "row < M && col < N", "row < M", OutOfBounds),
    ("fma", "many_chains", "step < kSteps", "step < kSteps - kUnroll", WrongResult),
    ("strided", "strided", "[i * stride]", "[(i + 1) * stride]", OutOfBounds),
]  # fmt: skip


@pytest.mark.parametrize(("name", "rung_name", "old", "new", "error"), PLANTED)
def test_a_planted_fault_is_found(tmp_path, name: str, rung_name: str, old: str, new: str, error: type) -> None:
    """The checks that pass above fail for a kernel with one small mistake in it."""
    ladder = LADDERS[name]
    rung = ladder[rung_name]
    assert rung.source.count(old) == 1
    (tmp_path / rung.rung.source).write_text(rung.source.replace(old, new), encoding="utf-8")
    faulty = replace(ladder, folder=tmp_path)
    with pytest.raises(error):
        for size in ladder.problem.check:
            verify(faulty[rung_name], size)
