"""Every rung of every ladder: right on awkward sizes and values, tidy, and compilable for every GPU it is meant for."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kernels.emulator import EmulatorError, OutOfBounds, Race, Uninitialised
from kernels.lab import ArgumentError, BoundRung, Ladder, WrongResult, cp, ladder_names, load_ladder, verify

LADDERS = {ladder.name: ladder for ladder in map(load_ladder, ladder_names())}
ARCHITECTURES = ("sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120")
ASSEMBLED = ("sm_75", "sm_90", "sm_120")


def rungs() -> Iterator[BoundRung]:
    for ladder in LADDERS.values():
        yield from ladder


def identify(rung: BoundRung) -> str:
    return f"{rung.ladder.name}-{rung.name}"


each_rung = pytest.mark.parametrize("rung", list(rungs()), ids=identify)
#: Those that NaN can be put into: whole numbers have none.
each_float_rung = pytest.mark.parametrize(
    "rung",
    [r for r in rungs() if all(np.dtype(a.dtype).kind == "f" for a in r.ladder.problem.inputs)],
    ids=identify,
)
each_ladder = pytest.mark.parametrize("ladder", list(LADDERS.values()), ids=lambda ladder: ladder.name)

#: Sizes to draw from: small, with ones, primes and tile edges among them. A ladder without an entry is an error.
EDGE = st.one_of(st.integers(1, 70), st.sampled_from((31, 32, 33, 63, 64, 65, 127, 128, 129)))
#: Filters of conv2d with a border: few, for each is another kernel to compile. test_conv2d.py has the others.
CONV2D_FILTERS = (
    {"k": 3, "k_cols": 3, "border": "zero"},
    {"k": 5, "k_cols": 5, "border": "reflect"},
    {"k": 3, "k_cols": 9, "border": "clamp"},
)
SIZES = {
    "copy": st.fixed_dictionaries({"n": st.one_of(st.integers(1, 40), st.integers(1, 9000))}),
    "fma": st.fixed_dictionaries({"n": st.one_of(st.integers(1, 40), st.integers(1, 4200))}),
    "read": st.fixed_dictionaries({"n": st.one_of(st.integers(1, 40), st.integers(1, 25000))}),
    "strided": st.fixed_dictionaries({"n": st.integers(1, 600), "stride": st.integers(1, 70)}),
    "matmul": st.fixed_dictionaries({"m": EDGE, "n": EDGE, "k": EDGE}),
    "sgemm": st.fixed_dictionaries({"m": EDGE, "n": st.one_of(st.just(256), EDGE), "k": EDGE}),
    "transpose": st.fixed_dictionaries({"rows": EDGE, "cols": EDGE}),
    "occupancy": st.fixed_dictionaries(
        {
            "n": st.one_of(st.integers(0, 40), st.integers(0, 9000)),
            "threads": st.one_of(st.integers(1, 1024), st.sampled_from((32, 128, 1024))),
            "shared": st.one_of(st.just(0), st.integers(0, 227 << 10)),
        }
    ),
    "occupancy_fma": st.fixed_dictionaries(
        # A run takes seconds, of whatever size: half of those drawn are empty.
        {"n": st.one_of(st.just(0), st.integers(1, 3000)), "threads": st.integers(1, 300), "shared": st.just(0)}
    ),
    "saxpy": st.fixed_dictionaries({"n": st.one_of(st.integers(0, 40), st.integers(0, 9000))}),
    "intensity": st.fixed_dictionaries({"n": st.integers(0, 3000), "steps": st.integers(1, 100)}),
    "divergence": st.fixed_dictionaries(
        {
            "n": st.one_of(st.integers(0, 40), st.integers(0, 5000)),
            "data": st.sampled_from(("shuffled", "image", "sorted", "periodic")),
        }
    ),
    "stencil1d": st.fixed_dictionaries(
        {"n": st.one_of(st.integers(0, 40), st.integers(0, 3000)), "radius": st.integers(1, 9)}
    ),
    "stencil2d": st.fixed_dictionaries(
        {"rows": st.one_of(st.just(0), EDGE), "cols": st.one_of(st.just(0), EDGE), "radius": st.integers(1, 5)}
    ),
    "conv2d": st.builds(
        lambda rows, cols, shape: {"rows": rows, "cols": cols, **CONV2D_FILTERS[shape]},
        st.one_of(st.just(0), EDGE),
        st.one_of(st.just(0), EDGE),
        st.integers(0, 2),
    ),
    "reduction": st.fixed_dictionaries({"n": st.one_of(st.integers(0, 40), st.integers(0, 70000))}),
    "reduction_max": st.fixed_dictionaries({"n": st.one_of(st.integers(1, 40), st.integers(1, 70000))}),
    "argmax": st.fixed_dictionaries({"n": st.one_of(st.integers(1, 40), st.integers(1, 70000))}),
    "accurate_sum": st.fixed_dictionaries({"n": st.one_of(st.integers(0, 40), st.integers(0, 70000))}),
    "histogram": st.fixed_dictionaries(
        {
            "n": st.one_of(st.integers(0, 40), st.integers(0, 5000), st.integers(65000, 140000)),
            "bins": st.sampled_from((1, 10, 256)),
            "data": st.sampled_from(("uniform", "constant", "zipf")),
        }
    ),
    "coarse_stencil": st.fixed_dictionaries(
        {
            "rows": st.one_of(st.just(0), EDGE, st.integers(200, 300)),
            "cols": EDGE,
            "radius": st.integers(1, 4),
            "outputs": st.sampled_from((1, 2, 4, 8, 16, 32)),
        }
    ),
    "coarse_matmul": st.fixed_dictionaries(
        {
            "m": st.one_of(EDGE, st.integers(200, 300)),
            "n": EDGE,
            "k": EDGE,
            "outputs": st.sampled_from((1, 2, 4, 8, 16, 32)),
        }
    ),
    "coarse_histogram": st.fixed_dictionaries(
        {
            "n": st.one_of(st.integers(0, 40), st.integers(0, 5000), st.integers(16000, 300000)),
            "bins": st.sampled_from((1, 10, 256)),
            "outputs": st.sampled_from((1, 2, 4, 8, 16)),
        }
    ),
    "conv1d": st.fixed_dictionaries(
        {
            "i": st.one_of(st.integers(0, 70), st.sampled_from((128, 129, 260, 1030))),
            "o": st.integers(0, 5),
            "l": st.sampled_from((4, 19)),  # lengths and taps are compiled in
            "k": st.sampled_from((1, 5)),
        }
    ),
    "conv1d_channels": st.fixed_dictionaries(
        {
            "i": st.one_of(st.integers(0, 20), st.sampled_from((32, 33, 65, 258))).map(lambda n: 4 * n),
            "o": st.integers(0, 5),
            "l": st.just(4),
            "k": st.just(5),
            "channels": st.sampled_from((1, 4)),
        }
    ),
    **dict.fromkeys(
        ("classifier", "classifier_int"),
        st.fixed_dictionaries(
            {
                "inputs": st.one_of(st.just(0), EDGE, st.integers(1, 5000)),
                "outputs": st.one_of(st.integers(0, 40), st.integers(1, 140)),
                "batch": st.integers(0, 3),
            }
        ),
    ),
    "histogram_bins": st.fixed_dictionaries(
        {
            "n": st.one_of(st.integers(0, 40), st.integers(0, 5000), st.integers(65000, 140000)),
            "bins": st.sampled_from((1, 300, 1024)),
        }
    ),
    # The time that the emulator takes grows with the number of weights, so the larger volumes have few.
    "conv3d": st.one_of(
        st.fixed_dictionaries({"n": st.integers(0, 37), "k": st.just(3)}),
        st.fixed_dictionaries({"n": st.integers(0, 11), "k": st.sampled_from((5, 7))}),
        st.fixed_dictionaries({"n": st.integers(1, 6), "k": st.sampled_from((9, 11))}),
    ),
    "convlayer_int": st.fixed_dictionaries(
        {
            "n": st.one_of(st.integers(0, 17), st.sampled_from((28, 31))),
            "c_in": st.integers(0, 5),
            "c_out": st.integers(0, 7),
            "k": st.sampled_from((1, 2, 3, 5)),
        }
    ),
    "convlayer": st.fixed_dictionaries(
        {
            "n": st.one_of(st.integers(0, 17), st.sampled_from((28, 31, 33, 40))),
            "c_in": st.integers(0, 13),
            "c_out": st.one_of(st.integers(0, 9), st.sampled_from((16, 33, 65))),
            "k": st.sampled_from((1, 2, 3, 3, 4, 5)),
        }
    ),
}


def verify_or_refused(rung: BoundRung, size: dict, seed: int) -> None:
    """Right, or refused before anything runs, with the reason that the rung gives."""
    reason = rung.rung.requires(size)
    if reason is None:
        verify(rung, size, seed)
    else:
        with pytest.raises(ArgumentError, match=re.escape(reason)):
            verify(rung, size, seed)


@each_rung
def test_right_at_the_sizes_of_the_problem(rung: BoundRung) -> None:
    for seed, size in enumerate(rung.ladder.problem.check):
        verify_or_refused(rung, size, seed)


@each_rung
@settings(max_examples=8, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_right_at_any_size(rung: BoundRung, data: st.DataObject) -> None:
    size = data.draw(SIZES[rung.ladder.name])
    verify_or_refused(rung, size, data.draw(st.integers(0, 1000)))


@each_rung
def test_zeros_give_what_the_reference_gives(rung: BoundRung) -> None:
    size = rung.ladder.problem.check[-1]
    zeros = {name: np.zeros_like(value) for name, value in rung.ladder.inputs(size).items()}
    verify(rung, size, inputs=zeros)


@each_float_rung
def test_nan_comes_out_where_it_must_and_nowhere_else(rung: BoundRung) -> None:
    size = rung.ladder.problem.check[-1]
    inputs = rung.ladder.inputs(size)
    for value in inputs.values():
        flat = value.reshape(-1)
        flat[:: max(1, flat.size // 3)] = np.nan
    verify(rung, size, inputs=inputs)


@pytest.mark.parametrize("name", ["copy", "strided", "transpose", "occupancy"])
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


def _refusal(rung: BoundRung, name: str) -> str:
    element = _element_bytes(rung, name)
    return f"argument '{name}' starts {element} byte.* needs {rung.rung.alignment[name]}-byte alignment"


def _element_bytes(rung: BoundRung, name: str) -> int:
    return next(np.dtype(a.dtype).itemsize for a in rung.ladder.problem.inputs if a.name == name)


@each_rung
def test_a_view_off_by_one_element_is_taken_or_refused_by_name(rung: BoundRung) -> None:
    """A view that starts one element later is aligned for elements but not for vectors of them."""
    size = dict(rung.ladder.problem.check[-1])
    host = rung.ladder.inputs(size)
    shifted = {}
    for argument in rung.ladder.problem.inputs:
        value = host[argument.name]
        whole = cp.empty(value.size + 1, dtype=argument.dtype)
        whole[1:] = cp.asarray(value.reshape(-1))
        shifted[argument.name] = whole[1:].reshape(value.shape)
    parameters = {key: size[key] for key in rung.ladder.problem.parameters}
    needs_more = [n for n, b in rung.rung.alignment.items() if n in shifted and b > _element_bytes(rung, n)]
    if needs_more:
        with pytest.raises(ArgumentError, match=_refusal(rung, needs_more[0])):
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
        # Machine code for the oldest, the newest and that of the records: it takes most of the time of a compilation.
        assert compiled.ptx and (arch not in ASSEMBLED or compiled.cubin), arch


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
        for launch in rung.launches(size) if rung.rung.requires(size) is None else ():
            one_thread = launch.grid == launch.block == (1,)  # it sets an output to where its atomics start
            if "kThreads" in constants and not one_thread:
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


#: The head of the loop in which copy's in_flight rung stores.
STORES_FROM = """u < kUnroll; ++u) {
        const size_t i = first + u * kThreads;
        if (i < quads) {
            reinterpret"""

#: Faults planted in rungs: what is replaced by what, and what must come of it.
PLANTED = [
    ("occupancy", "one_float", "target, n);", "target, n + 1);", OutOfBounds),
    ("occupancy", "four_floats", "<float, 4>", "<float, 3>", WrongResult),
    ("occupancy", "one_quad", "<float4, 1>", "<float2, 1>", WrongResult),
    ("occupancy", "four_quads", "(source, target", "(target, target", WrongResult),
    ("occupancy", "eight_quads", "<float4, 8>", "<float4, 2>", WrongResult),
    ("occupancy", "released", "target, n);", "target, n - 1);", WrongResult),
    ("occupancy_fma", "chains_1", "n, b);", "n, -b);", WrongResult),
    ("occupancy_fma", "chains_2", "<2>", "<1>", WrongResult),
    ("occupancy_fma", "chains_4", "n, b);", "n + 1, b);", OutOfBounds),
    ("occupancy_fma", "chains_8", "<8>", "<4>", WrongResult),
    ("occupancy_fma", "chains_48", "source, target", "target, target", WrongResult),
    ("occupancy_fma", "capped_48", "n, b);", "n - 1, b);", WrongResult),
    ("saxpy", "float2", "pairs * kWidth + i", "pairs * kWidth + i + 1", WrongResult),
    ("saxpy", "float4", "a * p.w + q.w", "a * p.w + q.z", WrongResult),
    ("saxpy", "in_flight", "quads = n / kWidth", "quads = (n + kWidth - 1) / kWidth", EmulatorError),
    ("saxpy", "four_scalars", "blockIdx.x) * kThreads * kUnroll", "blockIdx.x) * kThreads", WrongResult),
    ("intensity", "scalar", "step < steps", "step <= steps", WrongResult),
    ("intensity", "float4", "quads * kWidth + i", "quads * kWidth + i + 1", WrongResult),
    ("divergence", "fixed", "k < kMaxSteps", "k < kMaxSteps - 1", WrongResult),
    ("divergence", "early_exit", "count < kMaxSteps", "count <= kMaxSteps", WrongResult),
    ("divergence", "strided", "if (i >= n)", "if (i > n)", OutOfBounds),
    ("divergence", "flattened", "        z = {0.0f, 0.0f};", "        z = c;", WrongResult),
    ("divergence", "rejoined", "count == kMaxSteps", "count == kBatch", WrongResult),
    ("divergence", "refilled", "finished & ((1u << lane) - 1)", "finished", WrongResult),
    ("transpose", "naive", "row + j < rows", "row + j <= rows", OutOfBounds),
    ("transpose", "tiled", "row + j < cols", "row + j <= cols", Uninitialised),
    ("transpose", "padded", "tile[threadIdx.x][threadIdx.y + j]", "tile[threadIdx.y + j][threadIdx.x]", Uninitialised),
    ("transpose", "swizzled", "(threadIdx.y + j) ^ threadIdx.x]", "threadIdx.y + j]", Uninitialised),
    ("transpose", "vectorised", "(q ^ (c / 4 % 8))", "(q ^ (c / 4 % 2 + 16))", EmulatorError),
    ("copy", "float4", "quads * kWidth + i", "quads * kWidth + i + 1", WrongResult),
    ("copy", "in_flight", STORES_FROM, STORES_FROM.replace("< kUnroll", "< kUnroll - 1"), WrongResult),
    ("read", "float4", "start + kChunk <= n", "start + kChunk <= n + kChunk", OutOfBounds),
    ("matmul", "coalesced", "k < K", "k < K - 1", WrongResult),
    ("matmul", "naive", "row < M && col < N", "row < M", OutOfBounds),
    ("matmul", "tiled", "b_row < K && col < N", "col < N", OutOfBounds),
    ("matmul", "register_column", "sum[i] += a[line + i][k]", "sum[i] += a[line][k]", WrongResult),
    ("matmul", "register_tile", "first_row + line + i < M && ", "", OutOfBounds),
    ("matmul", "vectorised", "row + kHalf + quad * 4", "row + quad * 4", WrongResult),
    ("matmul", "prefetched", "a_line < M ? K - a_k : 0", "K - a_k", OutOfBounds),
    ("sgemm", "square", "first_row + a_line < M ? K - k0 - a_k : 0", "K - k0 - a_k", OutOfBounds),
    ("sgemm", "linearised", "b[k][j][col / kOut]", "b[k][j][col % kAcross]", WrongResult),
    ("sgemm", "offset", "b[k][col + j]", "b[k][col + j + 5]", EmulatorError),
    ("sgemm", "padded", "&a[k][line + q / 4 * kHalf]", "&a[k][line + q]", WrongResult),
    ("sgemm", "warp_tile", "col + q * kLanesAcross;", "col + q * kLanesDown;", EmulatorError),
    ("sgemm", "neighbours", "across = lane / 2 % kLanesAcross", "across = lane % kLanesAcross", WrongResult),
    ("sgemm", "buffered", "if (more) put(turn ^ 1);", "if (more) put(turn);", Race),
    ("sgemm", "pipelined", "slices_of<T>(K)", "slices_of<T>(K - 1)", WrongResult),
    ("sgemm", "read_ahead", "place, 0, K, shared", "place, 0, K + 1, shared", EmulatorError),
    ("sgemm", "tuned", "tile.store(C, ldc", "tile.store(C, ldc + 1", EmulatorError),
    ("sgemm", "stream", "worker <= last", "worker < last", WrongResult),
    ("stencil1d", "naive", "at >= 0 && at < n", "at < n", OutOfBounds),
    ("stencil1d", "tiled", "first - kRadius + i", "first + i", WrongResult),
    ("stencil1d", "windowed", "kHalo * kOut + o + offset", "kHalo * kOut + offset", WrongResult),
    ("stencil1d", "direct", "at + 3 < n", "at < n", OutOfBounds),
    ("stencil2d", "naive", "r >= 0 && r < rows && c >= 0", "r < rows && c >= 0", OutOfBounds),
    ("stencil2d", "tiled", "tile[threadIdx.y + down]", "tile[threadIdx.y + kRadius]", WrongResult),
    ("stencil2d", "register_column", "row < rows && col < cols", "row < rows", OutOfBounds),
    ("stencil2d", "direct", "y - o <= kRadius", "y - o < kRadius", WrongResult),
    ("stencil2d", "marching", "row + 1 < last + kRadius", "row + 1 < last", WrongResult),
    ("conv3d", "naive", "col >= n", "col > n", OutOfBounds),
    ("conv3d", "coalesced", "x >= 0 && x < n", "x < n", OutOfBounds),
    ("conv3d", "float4", "if (dx + i < K)", "if (dx + i < K - 1)", WrongResult),
    ("conv3d", "tiled", "first_row - kRadius", "first_row", WrongResult),
    ("conv3d", "register_row", "window[o + dx]", "window[o]", WrongResult),
    ("conv3d", "streamed", "__syncthreads();  // all threads are done with the plane before this one", "//", Race),
    ("conv3d", "pipelined", "(z + 1) % 2", "z % 2", Race),
    ("conv3d", "trimmed", "ours = begin - z + T::kRadius", "ours = begin - z + T::kRadius + 1", WrongResult),
    ("conv3d", "grouped", "half = 1 - half", "half = half", WrongResult),
    ("conv3d", "split", "other < kGroups - 1", "other < kGroups - 2", WrongResult),
    ("conv3d", "direct", "left = col - kRadius + x", "left = col - x", WrongResult),
    ("conv2d", "naive", "i * kAcross + j", "j * kAcross + i", WrongResult),
    ("conv2d", "constant", "row + i - kDown / 2", "row + i", WrongResult),
    ("conv2d", "shared", "left < kWide; left += kTile", "left < kTile; left += kTile", Uninitialised),
    ("conv2d", "two_step", "if (rank < kBelow + kRight)", "if (rank < kBelow)", Uninitialised),
    ("conv2d", "shuffle", "lane < j ? beyond : own", "own", WrongResult),
    ("conv2d", "texture", "c + 0.5f", "c + 1.0f", WrongResult),
    ("conv2d", "float4", "window[o + j]", "window[o]", WrongResult),
    ("conv2d", "register_tile", "y - h < kDown", "y - h < kDown - 1", WrongResult),
    ("conv2d", "streamed", "min(row + 1, last)", "row", WrongResult),
    ("conv2d", "ahead", "row + kAhead", "row + kAhead - 1", WrongResult),
    ("fma", "many_chains", "step < kSteps", "step < kSteps - kUnroll", WrongResult),
    ("reduction", "interleaved", "t % (2 * stride) == 0", "t % stride == 0", EmulatorError),
    ("reduction", "packed", "left < kThreads", "left <= kThreads", EmulatorError),
    ("reduction", "sequential", "stride = kThreads / 2", "stride = kThreads / 4", WrongResult),
    ("reduction", "first_add", "i + kThreads < n", "i < n", OutOfBounds),
    ("reduction", "shuffle", "offset = kWarp / 2", "offset = kWarp / 4", WrongResult),
    ("reduction", "float4", "start + kChunk <= n", "start < n", OutOfBounds),
    ("reduction", "atomics", "atomicAdd(total, sum)", "*total += sum", Race),
    ("reduction", "last_block", "atomicInc(&tickets, gridDim.x - 1)", "atomicInc(&tickets, gridDim.x)", WrongResult),
    ("reduction_max", "two_pass", "start + kChunk <= n", "start < n", OutOfBounds),
    ("reduction_max", "atomics", "*largest = -__int_as_float", "*largest = __int_as_float", WrongResult),
    ("argmax", "two_pass", "bits == magnitude || magnitude == 0", "magnitude == 0", WrongResult),
    ("argmax", "last_block", "i < gridDim.x; i", "i < gridDim.x - 1; i", WrongResult),
    ("accurate_sum", "float64", "double sum = 0.0;", "float sum = 0.0f;", WrongResult),
    ("accurate_sum", "compensated", "sum.low + lost", "sum.low", WrongResult),
    ("strided", "strided", "[i * stride]", "[(i + 1) * stride]", OutOfBounds),
    ("histogram", "global", "i < n && ", "i <= n && ", OutOfBounds),
    ("histogram", "shared", "        copy[bin] = 0;", "        copy[bin] = bin == 255;", WrongResult),
    ("histogram", "coarsened", "i += stride", "i += stride + 1", WrongResult),
    ("histogram", "vectorised", "quads = n / sizeof(uint4);", "quads = n / sizeof(uint4) + 1;", EmulatorError),
    ("histogram", "per_warp", "threadIdx.x / kWarpSize * kBins", "threadIdx.x * kBins", OutOfBounds),
    ("histogram", "interleaved", "(bin + step) % kCopies", "(bin + step) % (kCopies / 2)", WrongResult),
    ("histogram", "in_flight", "    for (; i < quads; i += stride) {", "    for (; i + stride < quads; i += stride) {",
     WrongResult),
    ("histogram", "permuted", "% kCopies * kWordBytes", "% kCopies * 8", WrongResult),
    ("conv1d", "unoptimised", "stride = blockDim.x / 2", "stride = blockDim.x / 4", WrongResult),
    ("conv1d", "coalesced", "__syncthreads();  // every thread has its row before the filters", "//", Race),
    ("conv1d", "float4", "to[3] = four.w", "to[3] = four.z", WrongResult),
    ("conv1d", "padded", "staged[i + i / kPadEvery] : 0.0f", "staged[i] : 0.0f", EmulatorError),
    ("conv1d", "shuffles", "offset = warpSize / 2", "offset = warpSize / 4", WrongResult),
    ("conv1d", "channels", "row = threadIdx.x * kChannels + c;\n#pragma unroll\n            for (int k",
     "row = threadIdx.x * kChannels;\n#pragma unroll\n            for (int k", WrongResult),
    ("conv1d", "wide_weights", "i < here * kTaps / kFilterWidth", "i <= here * kTaps / kFilterWidth", OutOfBounds),
    ("conv1d", "two_stores", "blockDim.x * kChannels * kTaps;", "blockDim.x * kChannels;", EmulatorError),
    ("conv1d", "registers", "base + c < channels", "true", OutOfBounds),
    ("conv1d", "turned", "__syncwarp();  // the warp's filters are there before", "//", Race),
    ("conv1d", "evict_first", "pack * kFilterWidth < floats", "pack * kFilterWidth <= floats", EmulatorError),
    ("conv1d", "bias_first", "offset_of_all = bias[out]", "offset_of_all = bias[out + 1]", EmulatorError),
    ("conv1d", "fitted", "value[i] : value[i + kFold / 2]", "value[i] : value[i]", WrongResult),
    ("conv1d", "in_flight", "            wait_for_groups<kGroups - 1 - g>();\n", "", EmulatorError),
    ("conv1d", "in_order", "if constexpr (g == kGroups - 1)", "if constexpr (g == 0)", WrongResult),
    ("conv1d_channels", "channels", "bias[i / length]", "bias[i % length]", EmulatorError),
    ("conv1d_channels", "unpadded", "row < here && at >= 0", "at >= 0", EmulatorError),
    ("conv1d_channels", "tree", "stride /= 2) {\n            if", "stride /= 4) {\n            if", WrongResult),
    ("coarse_stencil", "apart", "line = o * kRows + threadIdx.y", "line = o * kRows", WrongResult),
    ("coarse_stencil", "column", "i < kHigh * kWide", "i < (kHigh - kRadius) * kWide", Uninitialised),
    ("coarse_matmul", "column", "a[warp * kOut + o][k]", "a[warp + o][k]", WrongResult),
    ("coarse_histogram", "chunks", "first + (kOut - 1) * kThreads < quads", "first < quads", OutOfBounds),
    ("classifier", "tiles", "row < outputs && i < inputs", "row < outputs", OutOfBounds),
    ("classifier", "tile_sums", "if (across == 0) atomicAdd", "if (across == 1) atomicAdd", WrongResult),
    ("classifier", "lone_loader", "__syncthreads();  ", "", Race),
    ("classifier", "columns", "atomicAdd(output + sample * outputs + row, weight * input[sample * inputs + i])",
     "output[sample * outputs + row] += weight * input[sample * inputs + i]", Race),
    ("classifier", "row_thread", "i < inputs; ++i", "i < inputs - 1; ++i", WrongResult),
    ("classifier", "row_warp", "i += kWarp", "i += kWarp + 1", WrongResult),
    ("classifier", "float4", "if (lane == 0) output", "if (lane == 1) output", WrongResult),
    ("classifier", "shared_input", "__syncthreads();  // every warp", "// every warp", Race),
    ("classifier", "several_rows", "lane == 0 && first + r < outputs", "lane == 0", OutOfBounds),
    ("classifier", "row_block", "sum = block_sum<kBlock>(sum)", "sum = warp_sum(sum)", WrongResult),
    ("classifier", "in_flight", "i < packs ? mine[i]", "i <= packs ? mine[i]", OutOfBounds),
    ("classifier", "streaming", "i < packs ? __ldcs", "i <= packs ? __ldcs", OutOfBounds),
    ("classifier", "split", "begin = blockIdx.y * packs_per_piece", "begin = 0", WrongResult),
    ("classifier", "batched", "row < outputs && sample < batch", "row < outputs", EmulatorError),
    ("classifier", "batched", "wait_for_copies<kStages - 2>", "wait_for_copies<kStages - 1>", EmulatorError),
    ("classifier_int", "tiles", "row < outputs && i < inputs", "row < outputs", OutOfBounds),
    ("classifier_int", "lone_loader", "__syncthreads();  ", "", Race),
    ("classifier_int", "in_flight", "weight.y * value.y", "weight.y * value.x", WrongResult),
    ("histogram_bins", "copies_4", "constexpr int kCopies = 4;", "constexpr int kCopies = 8;", OutOfBounds),
    ("convlayer", "map_atomics", "atomicAdd(&output[out * plane + static_cast<size_t>(row) * n + col], sum)",
     "output[out * plane + static_cast<size_t>(row) * n + col] += sum", Race),
    ("convlayer", "pair_atomics", "first_row + i / kWide - kHalo", "first_row + i / kWide", WrongResult),
    ("convlayer", "output_stationary", "at >= plane", "at > plane", OutOfBounds),
    ("convlayer", "shared_inputs", "i < maps * kWide * kWide", "i < maps * kSide * kSide", Uninitialised),
    ("convlayer", "output_maps", "        __syncthreads();  // every thread has read these", "        // ", Race),
    ("convlayer", "implicit_gemm", "map < c_in && pixel < plane", "pixel < plane", OutOfBounds),
    ("convlayer", "vectorised", "[half * kHalf + quad]", "[half * 4 + quad]", WrongResult),
    ("convlayer", "pipelined", '"n"(kStages - 2)', '"n"(kStages - 1)', EmulatorError),
    ("convlayer", "direct", "window[down + tap / kSize]", "window[tap / kSize]", WrongResult),
    ("convlayer", "split", "part < number", "part < number - 1", WrongResult),
    ("convlayer", "winograd", "s[1] - s[2] - s[3]", "s[1] - s[2] + s[3]", WrongResult),
]  # fmt: skip


@pytest.mark.parametrize(("name", "rung_name", "old", "new", "error"), PLANTED)
def test_a_planted_fault_is_found(tmp_path, name: str, rung_name: str, old: str, new: str, error: type) -> None:
    """The checks that pass above fail for a kernel with one small mistake in it."""
    ladder = LADDERS[name]
    rung = ladder[rung_name]
    assert rung.source.count(old) == 1
    for included in ladder.folder.glob("*.cu*"):
        shutil.copy(included, tmp_path)
    (tmp_path / rung.rung.source).write_text(rung.source.replace(old, new), encoding="utf-8")
    faulty = replace(ladder, folder=tmp_path)
    with pytest.raises(error):
        for size in ladder.problem.check:
            if rung.rung.requires(size) is None:
                verify(faulty[rung_name], size)
