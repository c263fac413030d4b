"""What is asked of every rung of every ladder: right on awkward sizes and values, tidy, and compilable for every GPU.

Each chapter has a module ``tests/kernels/<chapter>/test_rungs.py``, so that chapters can be tested side by side. The
module names the chapter's ladders in ``SIZES`` (ladder: the sizes to draw from) and lists in ``PLANTED`` the faults
that the checks must find (ladder, rung, original text, faulty text, expected error). It takes the tests from here with
``from tools.rung_checks import *``. What ``SIZES`` cannot reach is for ``tools.corners``.
"""

from __future__ import annotations

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
from climb.bench.problem import Size
from tools.corners import Corner, with_fault

ARCHITECTURES = ("sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120")
ASSEMBLED = ("sm_75", "sm_120")
#: A length of a small array: any, with those around a warp and a tile among them.
EDGE = st.one_of(st.integers(1, 70), st.sampled_from((31, 32, 33, 63, 64, 65, 127, 128, 129)))


def _rungs(ladders: Iterable[Ladder]) -> Iterator[BoundRung]:
    for ladder in ladders:
        yield from ladder


def _identify(value: object) -> str | None:
    if isinstance(value, BoundRung):
        return f"{value.ladder.name}-{value.name}"
    if isinstance(value, Ladder):
        return value.name
    if not isinstance(value, tuple):
        return None
    if isinstance(value[0], Corner):
        return f"{_identify(value[1])}-{value[0].why}"
    return "-".join(value[:2])  # a planted fault: where it is


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """``rung``: each of the module's ladders'; ``float_rung``: those that NaN can be put into, for whole numbers have
    none; ``ladder``: each."""
    ladders = [load_ladder(name) for name in metafunc.module.SIZES]
    corners = getattr(metafunc.module, "CORNERS", ())
    values: dict[str, list] = {
        "rung": list(_rungs(ladders)),
        "cornered": [(corner, rung) for corner in corners for rung in _rungs(ladders) if corner.applies(rung)],
        "float_rung": [
            rung for rung in _rungs(ladders) if all(np.dtype(a.dtype).kind == "f" for a in rung.ladder.problem.inputs)
        ],
        "ladder": ladders,
        "planted": metafunc.module.PLANTED,
        "hidden": getattr(metafunc.module, "HIDDEN", ()),
    }
    for name in values.keys() & metafunc.fixturenames:
        metafunc.parametrize(name, values[name], ids=_identify)


@pytest.fixture(scope="module")
def module(request: pytest.FixtureRequest) -> ModuleType:
    """The chapter's module that took the test."""
    return request.module


def _verify_or_refused(rung: BoundRung, size: Size, seed: int) -> None:
    """Right, or refused before anything runs, with the reason that the rung gives."""
    reason = rung.rung.requires(size)
    if reason is None:
        verify(rung, size, seed)
    else:
        with pytest.raises(ArgumentError, match=re.escape(reason)):
            verify(rung, size, seed)


def test_right_at_the_sizes_of_the_problem(rung: BoundRung) -> None:
    for seed, size in enumerate(rung.ladder.problem.check):
        _verify_or_refused(rung, size, seed)


@settings(max_examples=6, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_right_at_any_size(rung: BoundRung, module: ModuleType, data: st.DataObject) -> None:
    size = data.draw(module.SIZES[rung.ladder.name])
    _verify_or_refused(rung, size, data.draw(st.integers(0, 1000)))


def test_zeros_give_what_the_reference_gives(rung: BoundRung) -> None:
    size = rung.ladder.problem.check[-1]
    zeros = {name: np.zeros_like(value) for name, value in rung.ladder.inputs(size).items()}
    verify(rung, size, inputs=zeros)


def test_nan_comes_out_where_it_must_and_nowhere_else(float_rung: BoundRung) -> None:
    size = float_rung.ladder.problem.check[-1]
    inputs = float_rung.ladder.inputs(size)
    for value in inputs.values():
        flat = value.reshape(-1)
        flat[:: max(1, flat.size // 3)] = np.nan
    verify(float_rung, size, inputs=inputs)


def _refusal(rung: BoundRung, name: str) -> str:
    element = _element_bytes(rung, name)
    return f"argument '{name}' starts {element} byte.* needs {rung.rung.alignment[name]}-byte alignment"


def _element_bytes(rung: BoundRung, name: str) -> int:
    return next(np.dtype(a.dtype).itemsize for a in rung.ladder.problem.inputs if a.name == name)


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
    case = replace(Case.make(rung.ladder, size, inputs=host), device_inputs=shifted)
    arrays = case.arrays()
    run_and_check(case, rung, arrays, rung.prepare(arrays, size))


def test_compiles_for_every_architecture(rung: BoundRung) -> None:
    """To machine code for the oldest and the newest; the front end takes it for those between, to which the source says
    what it says to one of the two. The chapters read the machine code for the GPU of the records."""
    size = rung.ladder.problem.headline[0]
    for arch in ASSEMBLED:
        compiled = rung.compiled(size, arch, whole=True)
        assert compiled.ptx and compiled.cubin, arch
        for text in compiled.sources.values():
            assert text.count("__CUDA_ARCH__") == text.count("#if __CUDA_ARCH__ >= 800\n")
    for arch in ARCHITECTURES:
        if arch not in ASSEMBLED:
            compiled.check_syntax(arch)


def test_the_file_opens_with_idea_difference_and_demands(rung: BoundRung) -> None:
    first, second, third = rung.source.splitlines()[:3]
    assert re.match(r"// Idea: \w.*[.,;]?", first)
    assert second.startswith("// From the rung before: ")
    assert "// Requires: " in rung.source and third.startswith("//")
    assert ("the first rung" in second) == (rung.previous is None)


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


def test_every_source_is_a_rung(ladder: Ladder) -> None:
    assert {path.name for path in ladder.folder.glob("*.cu")} == {rung.path.name for rung in ladder}


def test_each_rung_is_another_program(ladder: Ladder) -> None:
    size = ladder.problem.headline[0]
    assert len({rung.sha256(size) for rung in ladder}) == len(ladder.rungs)


@pytest.mark.emulated
def test_a_planted_fault_is_found(tmp_path: Path, planted: tuple[str, str, str, str, type]) -> None:
    """The checks that pass above fail for a kernel with one small mistake in it."""
    name, rung_name, old, new, error = planted
    rung = load_ladder(name)[rung_name]
    faulty = with_fault(rung, old, new, tmp_path)
    with pytest.raises(error):
        for size in rung.ladder.problem.check:
            if rung.rung.requires(size) is None:
                verify(faulty, size)
