"""Checks of every rung of every ladder: right at awkward sizes and values, tidy, and compilable for every GPU.

Each chapter has a module ``tests/kernels/<chapter>/test_rungs.py``, so that chapters can be tested side by side. The
module names the chapter's ladders in ``SIZES`` (ladder: the sizes to draw from) and lists in ``PLANTED`` the faults
that the checks must find (ladder, rung, original text, faulty text, expected error). It takes the tests from here with
``from tools.rung_checks import *``. Branches that no size in ``SIZES`` reaches are tested by ``tools.corners``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from climb import ArgumentError, BoundRung, Ladder, cp, load_ladder, verify
from climb.bench.checking import Case, run_and_check
from climb.bench.identity import expand_includes
from climb.bench.problem import Size
from climb.toolchain.includes import included_files
from tools import thorough as thoroughness
from tools.corners import faulty_text, with_fault
from tools.rung_choice import element_bytes, needs_more, pytest_generate_tests  # noqa: F401
from tools.thorough import choose

#: Architectures to make machine code for, and those between, of which 8.6, 8.9 and 9.0 are covered by their neighbours.
ASSEMBLED = ("sm_75", "sm_120")
BETWEEN = ("sm_80", "sm_100")
#: Of a problem's sizes to check, counted from the last, `make test` takes every sixth one.
EVERY = choose(6, thorough=1)
#: How many random sizes a rung is tried at.
DRAWN = choose(1, thorough=3)
#: Lengths of small arrays: any up to 70, and those around a warp and a tile.
EDGE = st.one_of(st.integers(1, 70), st.sampled_from((31, 32, 33, 63, 64, 65, 127, 128, 129)))
#: Inputs, by ladder and name, in which a NaN anywhere reaches every output. Weights are among them: beyond the edge of
#: an image or a volume they are multiplied by zeros, and 0 x NaN is NaN, as in the reference.
REACHES_ALL = {
    *((ladder, "source") for ladder in ("accurate_sum", "argmax", "async_reduction", "reduction", "reduction_max")),
    ("classifier_work", "input"),
    *((ladder, "filter") for ladder in ("conv2d", "conv2d_sizes", "fft_conv2d")),
    *((ladder, "weights") for ladder in ("conv3d", "conv3d_tiles", "fft_conv3d", "fft_crossover")),
    ("unet", "parameters"),
    ("unet_f16", "parameters"),
}
#: The same of one rung, by ladder, rung and name, because it takes a single sample.
REACHES_ALL_OF_ONE = {
    *(
        ("unet", rung, name)
        for rung in ("persistent", "output_stationary", "in_registers")
        for name in ("sample", "observation")
    ),
    *(("unet_f16", "output_stationary", name) for name in ("sample", "observation")),
}


#: Inputs of which zeros mean nothing, by ladder and name.
NEVER_ZERO = {("sparse_gemm", "metadata"), ("sparse_pipe", "metadata")}


@pytest.fixture(scope="module")
def module(request: pytest.FixtureRequest) -> ModuleType:
    """Return the chapter's module that imported the test."""
    return request.module


def _verify_or_refused(rung: BoundRung, size: Size, seed: int) -> None:
    """Check the result, or that the rung refuses the size, with its reason, before anything runs."""
    reason = rung.rung.requires(size)
    if reason is None:
        verify(rung, size, seed)
    else:
        with pytest.raises(ArgumentError, match=re.escape(reason)):
            verify(rung, size, seed)


def test_every_planted_fault_changes_the_text_that_it_names(module: ModuleType) -> None:
    """Most faults are only tried in turn: a kernel that no longer has the text is noticed at once."""
    listed = [*getattr(module, "PLANTED", ()), *getattr(module, "HIDDEN", ())]
    for ladder, rung, old, new, _ in (one.values[0] if hasattr(one, "marks") else one for one in listed):
        bound = load_ladder(ladder)[rung]
        assert faulty_text(bound, old, new) != expand_includes(bound.path), (ladder, rung, old)


def test_results_are_right_at_the_problems_sizes(checked: BoundRung) -> None:
    """In a run with turns, as `make test-all` is, every second size has its turn."""
    turn = thoroughness.turn
    for seed, size in list(enumerate(reversed(checked.ladder.problem.check)))[::EVERY]:
        if turn is None or (seed + turn) % 2 == 0:
            _verify_or_refused(checked, size, seed)


@settings(max_examples=DRAWN, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_results_are_right_at_random_sizes(drawn: BoundRung, module: ModuleType, data: st.DataObject) -> None:
    size = data.draw(module.SIZES[drawn.ladder.name])
    _verify_or_refused(drawn, size, data.draw(st.integers(0, 1000)))


def test_zeros_give_the_reference(zeroed: BoundRung) -> None:
    last = zeroed
    size = last.ladder.problem.check[-1]
    zeros = {
        name: value if (last.ladder.name, name) in NEVER_ZERO else np.zeros_like(value)
        for name, value in last.ladder.inputs(size).items()
    }
    verify(last, size, inputs=zeros)


def _poisonings(size_of_input: int) -> Iterator[np.ndarray]:
    """Yield positions for a few NaNs: three or four spread out, then one at the start, at the end, in the middle."""
    yield np.arange(0, size_of_input, max(1, size_of_input // 3))
    yield from (np.array([at]) for at in (0, size_of_input - 1, size_of_input // 2))


def _least_of_several_blocks_first(rung: BoundRung) -> list[Size]:
    """The sizes to check, by work; those that the rung computes in a single block last."""
    problem = rung.ladder.problem
    taken = [size for size in problem.check if rung.rung.requires(size) is None]
    by_work = sorted(taken, key=lambda size: problem.bytes(size) + problem.flops(size))
    return sorted(by_work, key=lambda size: all(math.prod(launch.grid) == 1 for launch in rung.launches(size)))


def _poisoned(rung: BoundRung, name: str, sizes: Iterable[Size]) -> Iterator[tuple[Size, dict[str, np.ndarray], bool]]:
    """Yield (size, inputs with NaNs in the one called ``name``, whether they reach some outputs but not all)."""
    ladder, problem = rung.ladder, rung.ladder.problem
    for size in sizes:
        if rung.rung.requires(size) is not None:
            continue
        clean = ladder.inputs(size)
        if not clean[name].size or any(0 in a.extents(size) for a in problem.outputs):
            continue
        before = problem.reference(clean, size)
        for positions in _poisonings(clean[name].size):
            inputs = ladder.inputs(size)
            inputs[name].reshape(-1)[positions] = np.nan
            with np.errstate(all="ignore"):
                after = problem.reference(inputs, size)
            same = np.concatenate([np.ravel(before[key] == after[key]) for key in before])
            yield size, inputs, bool(same.any() and not same.all())


def test_nan_in_one_input_reaches_the_outputs_that_depend_on_it_and_no_others(
    poisoned: tuple[BoundRung, str], module: ModuleType
) -> None:
    """A rung may leave out products with zeros where its problem's docstring says so. The chapter's module then gives a
    reference that leaves them out too, in ``NAN_REFERENCES``."""
    rung, name = poisoned
    ladder, problem = rung.ladder.name, rung.ladder.problem
    reaches_all = (ladder, name) in REACHES_ALL or (ladder, rung.name, name) in REACHES_ALL_OF_ONE
    sizes = reversed(problem.check) if thoroughness.enabled else _least_of_several_blocks_first(rung)
    choices = _poisoned(rung, name, sizes)
    first = next(choices)
    if reaches_all:
        size, inputs, _ = first
    else:
        size, inputs, partial = first if first[2] else next((choice for choice in choices if choice[2]), first)
        assert partial, "no NaN leaves some outputs alone: nothing is tested"
    case = Case.make(rung.ladder, size, inputs=inputs)
    own = getattr(module, "NAN_REFERENCES", {}).get((rung.ladder.name, rung.name))
    if own is not None:
        case = replace(case, reference=own(inputs, size))
    arrays = case.arrays()
    run_and_check(case, rung, arrays, rung.prepare(arrays, size))


def _refusal(rung: BoundRung, name: str) -> str:
    element = element_bytes(rung, name)
    return f"argument '{name}' starts {element} byte.* needs {rung.rung.alignment[name]}-byte alignment"


def test_view_off_by_one_element_is_right_or_refused_by_name(shifted: BoundRung) -> None:
    """A view that starts one element later is aligned for elements but not for vectors of them."""
    rung = shifted
    size = dict(rung.ladder.problem.check[-1])
    host = rung.ladder.inputs(size)
    views = {}
    for argument in rung.ladder.problem.inputs:
        value = host[argument.name]
        whole = cp.empty(value.size + 1, dtype=argument.dtype)
        whole[1:] = cp.asarray(value.reshape(-1))
        views[argument.name] = whole[1:].reshape(value.shape)
    parameters = {key: size[key] for key in rung.ladder.problem.parameters}
    if names := needs_more(rung):
        with pytest.raises(ArgumentError, match=_refusal(rung, names[0])):
            rung(*views.values(), **parameters)
        return
    case = replace(Case.make(rung.ladder, size, inputs=host), device_inputs=views)
    arrays = case.arrays()
    run_and_check(case, rung, arrays, rung.prepare(arrays, size))


def _architectures(rung: BoundRung, among: tuple[str, ...]) -> tuple[str, ...]:
    """Those on which the rung can run."""
    if rung.rung.arch:
        return (rung.rung.arch,)
    least = int(rung.rung.capability.replace(".", ""))
    return tuple(arch for arch in among if int(arch.removeprefix("sm_")) >= least)


def test_source_is_valid_for_the_oldest_and_the_newest_architecture(built: BoundRung) -> None:
    """Ask the compiler's front end; all other tests compile for 9.0."""
    rung = built
    for arch in _architectures(rung, ASSEMBLED):
        rung.check_syntax(rung.ladder.problem.check[-1], arch)
    for text in (rung.source, *included_files(rung.source, (str(rung.path.parent),)).values()):
        assert text.count("__CUDA_ARCH__") == text.count("#if __CUDA_ARCH__ >= 800\n")


@pytest.mark.thorough
@pytest.mark.in_turn
def test_source_compiles_for_every_architecture(rung: BoundRung) -> None:
    """Make machine code for the oldest and the newest GPU. Those between see the same source as one of the two, so ask
    the front end alone, and that for the first of each generation: 8.6 and 8.9 have the language of 8.0."""
    size = next(size for size in rung.ladder.problem.headline if rung.rung.requires(size) is None)
    for arch in _architectures(rung, ASSEMBLED):
        compiled = rung.compiled(size, arch)
        assert compiled.ptx and compiled.cubin, arch
    for arch in _architectures(rung, BETWEEN):
        rung.check_syntax(size, arch)


def _is_own(rung: BoundRung) -> bool:
    """Return whether the rung's file is in its ladder's folder, unlike a first rung that continues another ladder."""
    return rung.path.parent == rung.ladder.folder


def test_file_opens_with_idea_difference_and_requirements(rung: BoundRung) -> None:
    first, second, third = rung.source.splitlines()[:3]
    assert re.match(r"// Idea: \w.*[.,;]?", first)
    assert second.startswith("// From the rung before: ")
    assert "// Requires: " in rung.source and third.startswith("//")
    if _is_own(rung):
        assert ("the first rung" in second) == (rung.previous is None)


def test_launch_has_the_block_size_that_the_kernel_names(rung: BoundRung) -> None:
    """A kernel that names its block size (kThreads, or kTile x kRows) is launched with exactly that many threads."""
    source = expand_includes(rung.path)
    constants = {name: int(value) for name, value in re.findall(r"constexpr int (k\w+) = (\d+);", source)}
    for size in rung.ladder.problem.check:
        for launch in rung.launches(size) if rung.rung.requires(size) is None else ():
            one_thread = launch.grid == launch.block == (1,)  # sets an output to the start value of its atomics
            if "kThreads" in constants and not one_thread:
                assert np.prod(launch.block) == constants["kThreads"]
            if "kRows" in constants:
                assert launch.block == (constants["kTile"], constants["kRows"])
            assert np.prod(launch.block) <= 1024 and max(launch.grid[1:], default=1) <= 65535


def test_every_source_file_is_a_rung(ladder: Ladder) -> None:
    assert {path.name for path in ladder.folder.glob("*.cu")} == {rung.path.name for rung in ladder if _is_own(rung)}


def test_no_two_rungs_are_the_same_program(ladder: Ladder) -> None:
    for size in ladder.problem.headline:
        taken = [rung for rung in ladder if rung.rung.requires(size) is None]
        assert len({rung.sha256(size) for rung in taken}) == len(taken)


@pytest.mark.emulated
def test_planted_fault_is_found(tmp_path: Path, planted: tuple[str, str, str, str, type]) -> None:
    """The check that passes at the problem's sizes fails for a kernel with one small mistake in it."""
    name, rung_name, old, new, error = planted
    rung = load_ladder(name)[rung_name]
    faulty = with_fault(rung, old, new, tmp_path)
    with pytest.raises(error):
        for size in rung.ladder.problem.check:
            if rung.rung.requires(size) is None:
                verify(faulty, size)
