"""Lane efficiency and divergent branches: the emulator's beside what Nsight Compute counted on an NVIDIA H200.

The emulator runs PTX, the hardware SASS. Where ptxas kept the branches that PTX has, their numbers are equal. Where it
made predicated instructions of them, the emulator counts branches that are gone; those cases are marked, with what
ptxas did, which is looked up in the SASS. The machine code, run on a CPU, executes what the hardware executes: the
warp instructions, the thread instructions, and so lane efficiency are equal, but where a mark says why not.
"""

from __future__ import annotations

import hashlib
from functools import cache
from typing import Any

import numpy as np
import pytest
from tools.pending import pending
from tools.thorough import sparse, thorough

from climb import count_kernel, cp, load_ladder, opcodes, verify
from climb.emulator import Counters
from climb.validation.profiles import divergence
from climb.validation.profiles.divergence import Case, compiled
from climb.validation.sass_interpreter import SassCounts, run_sass
from kernels.divergence.divergence import DATA, MAX_STEPS, POINTS, escape_counts, image, sampled_counts

PROFILE = divergence.divergence_profile()
CASES = {case.label: case for case in divergence.cases()}
#: Cases in which ptxas turned branches of the PTX into predicates, by how their label begins, and what shows it: an
#: instruction of the SASS that carries a predicate where the PTX branches around it.
PREDICATED = {
    "reconverged": "LDG",  # if (i < end), around the loads of the next point
    "refilled": "STG",  # if (mine < share), around the store
    "sides<1>": "FFMA",  # both halves
    "sides<4>": "FFMA",
    "with_branch": "STG",  # one half stores and leaves
}
#: Rungs that wait for a GPU are in no profile.
CASES = {label: case for label, case in CASES.items() if label.split(", ")[0] not in pending("divergence")}


def predicated(label: str) -> bool:
    return any(label.startswith(name) for name in PREDICATED)


@cache
def emulated(label: str) -> tuple[Counters, list[Any]]:
    """The emulator's counts of a case, and the case's arguments afterwards."""
    case = CASES[label]
    args = [a.copy() if isinstance(a, np.ndarray) else a for a in case.args]
    return count_kernel(case.source, case.kernel, case.grid, case.block, args, options=("-std=c++17",)), args


def counted(label: str) -> Counters:
    return emulated(label)[0]


def ncu(label: str) -> dict[str, Any]:
    return PROFILE["counts"][label]


def efficiency(label: str) -> float:
    return ncu(label)["thread_instructions"] / (32 * ncu(label)["warp_instructions"])


def machine(label: str) -> SassCounts:
    """The counts of the case's machine code, executed on a CPU. It must write what the PTX writes."""
    case = CASES[label]
    args = [a.copy() if isinstance(a, np.ndarray) else a for a in case.args]
    found = run_sass(compiled(case), case.kernel, case.grid, case.block, args)
    assert all(np.array_equal(one, other) for one, other in zip(args, emulated(label)[1], strict=True))
    return found


def test_the_profile_says_where_it_is_from_and_has_every_case() -> None:
    assert PROFILE["tool"].startswith("Nsight Compute 20") and PROFILE["date"] >= "2026-11-21"
    assert PROFILE["device"]["name"] == "NVIDIA H200"
    assert list(PROFILE["counts"]) == list(CASES)


def test_nsight_compute_counters_are_consistent() -> None:
    for label in CASES:
        assert ncu(label)["threads_per_instruction"] == pytest.approx(32 * efficiency(label), abs=0.006)


@pytest.mark.parametrize("label", sparse(label for label in CASES if not predicated(label)))
def test_divergent_branches_and_lane_efficiency_equal_the_hardwares(label: str) -> None:
    assert counted(label).divergent_branches == ncu(label)["divergent_branches"]
    # The same lanes execute each line, but PTX and SASS have different numbers of instructions for it, and lane
    # efficiency is a mean over instructions: what stands outside the loop may weigh a little more or less.
    assert counted(label).lane_efficiency == pytest.approx(efficiency(label), abs=0.01)


#: Cases with a BSYNC to which several branches lead at once, where a GPU may count some arrivals together.
CONTESTED = ("flattened", "reconverged")
#: The single kernels, and the rungs with a mark; the chapter asserts the same of all rungs in two arrangements.
RUN = [label for label in CASES if ", " not in label or (label.startswith(CONTESTED) and label.endswith("image"))]


def same_code(label: str) -> bool:
    """Return whether the case's machine code is the one that was profiled. Another compiler's code may differ."""
    case = CASES[label]
    if hashlib.sha256(compiled(case).cubin).hexdigest() == PROFILE["cubins"][label]:
        return True
    assert ".".join(map(str, compiled(case).nvrtc_version)) != PROFILE["nvrtc"], "profiled another kernel: profile anew"
    return False


@pytest.mark.parametrize("label", [thorough(label) if label.endswith("image") else label for label in RUN])
def test_the_machine_code_executes_what_the_hardware_executes(label: str) -> None:
    if not same_code(label):
        pytest.skip("another compiler than the profile's")
    found, hardware = machine(label), ncu(label)
    mine = found.totals
    theirs = tuple(
        hardware[f"{what}_instructions{on}"] for what, on in (("warp", ""), ("thread", ""), ("thread", "_on"))
    )
    assert bool(found.contested) == label.startswith(CONTESTED)
    assert mine[1] == hardware["patched_thread_instructions"]
    if not found.contested:
        assert mine == theirs and found.lane_efficiency == efficiency(label)
        return
    # The BSYNC at the mark is executed once for several arrivals; then lanes that wait there already are counted again.
    (place,) = (one for one in found.instructions if one.offset in found.contested)
    more = [b - a for a, b in zip(mine, theirs, strict=True)]
    assert "BSYNC" in place.text and -place.warps < more[0] <= 0
    assert 0 <= more[1] == more[2] < 32 * place.warps
    assert found.lane_efficiency == pytest.approx(efficiency(label), abs=1.1e-4)


@pytest.mark.parametrize("label", sparse(label for label in CASES if predicated(label)))
def test_where_ptxas_predicated_the_emulator_counts_more_branches(label: str) -> None:
    assert counted(label).divergent_branches >= ncu(label)["divergent_branches"]
    (sign,) = (sign for name, sign in PREDICATED.items() if label.startswith(name))
    case: Case = CASES[label]
    found = opcodes(case.source, case.kernel)
    assert any(opcode.startswith("@") and opcode.split()[1].startswith(sign) for opcode in found), found


@pytest.mark.parametrize("rung", ["reconverged", "refilled"])
def test_some_branches_of_the_last_rungs_are_gone_on_shuffled_points(rung: str) -> None:
    label = f"{rung}, shuffled"
    assert counted(label).divergent_branches > ncu(label)["divergent_branches"] > 0
    assert counted(label).lane_efficiency == pytest.approx(efficiency(label), abs=0.04)


@pytest.mark.parametrize("data", DATA)
def test_a_warp_takes_the_steps_of_its_slowest_lane(data: str) -> None:
    """The hardware's instructions of early_exit are those of the model: per warp, ten a step and some besides."""
    size = {"n": divergence.POINTS, "data": data}
    given = load_ladder("divergence").inputs(size)
    slowest = escape_counts(given["re"], given["im"]).reshape(-1, 32).max(1).astype(np.int64)
    warps = slowest.size
    # A lane that leaves inside takes one more step, in which it is found outside.
    steps = np.minimum(slowest + 1, MAX_STEPS).sum()
    assert 10 * steps <= ncu(f"early_exit, {data}")["warp_instructions"] <= 10.2 * steps + 60 * warps


def test_arrangements_of_points_have_the_order_of_their_names() -> None:
    plain = sampled_counts("image")
    assert np.array_equal(np.sort(plain), sampled_counts("sorted"))
    assert np.array_equal(np.sort(plain), np.sort(sampled_counts("shuffled")))
    periodic = sampled_counts("periodic").reshape(-1, POINTS)
    assert (periodic[:, 0] == MAX_STEPS).all() and periodic[:, 1:].max() <= 8


def test_known_points_have_known_counts() -> None:
    """0, -1 and -2 never leave; 1 goes 0, 1, 2, 5; 2 goes 0, 2, 6; NaN and infinity are outside after one step."""
    re = np.array([0, -1, -2, 1, 2, 3, np.nan, np.inf], np.float32)
    assert escape_counts(re, np.zeros_like(re)).tolist() == [256, 256, 256, 3, 2, 1, 1, 1]


def test_a_point_outside_stays_outside_where_the_rungs_rely_on_it() -> None:
    """With |c|^2 <= 3.9 in float32 and |z|^2 barely above 4, the next z is outside too, whatever is rounded."""
    rng = np.random.default_rng(0)
    turn_c, turn_z = rng.uniform(0, 2 * np.pi, (2, 1 << 16))
    # The worst case: z^2 points away from c.
    turn_c[::2] = 2 * turn_z[::2] + np.pi
    c_re, c_im = (np.float32(np.sqrt(3.9)) * f(turn_c).astype(np.float32) for f in (np.cos, np.sin))
    z_re, z_im = (np.float32(2) * f(turn_z).astype(np.float32) for f in (np.cos, np.sin))
    outside = z_re * z_re + z_im * z_im > 4
    assert 1000 < outside.sum() < outside.size
    after = (z_re * z_re - z_im * z_im) + c_re, 2 * (z_re * z_im) + c_im
    assert (after[0] * after[0] + after[1] * after[1])[outside].min() > 4.05


@pytest.mark.parametrize("rung", ["compacted", "cycle_check"])
def test_points_at_the_circle_of_radius_two_and_in_cycles_have_exact_counts(rung: str) -> None:
    rng = np.random.default_rng(1)
    turn, radius = rng.uniform(0, 2 * np.pi, 200), rng.uniform(1.96, 2.01, 200)
    near = radius * np.exp(1j * turn)
    # -2 and its neighbours, and centres of cycles of length 1, 2, 3 and 4 with points beside them.
    special = np.array([-2, -1.9999999, -1.99, -2.0000002, 0, -1, -1.754877666, -0.1225611669 + 0.7448617666j, -1.3107])
    points = np.concatenate([near, special, special + 0.01, np.full(40, 0.3 + 0.5j)])
    re, im = points.real.astype(np.float32), points.imag.astype(np.float32)
    counts = load_ladder("divergence")[rung](cp.asarray(re), cp.asarray(im))
    assert np.array_equal(cp.asnumpy(counts), escape_counts(re, im))


@cache
def escaping_late() -> dict[str, np.ndarray]:
    """The points of a large picture that escape in the last five steps."""
    re, im = image(1 << 20)
    counts = escape_counts(re, im)
    late = np.flatnonzero((counts > MAX_STEPS - 6) & (counts < MAX_STEPS))
    assert counts[late].max() == MAX_STEPS - 1
    return {"re": re[late], "im": im[late]}


@pytest.mark.parametrize("rung", load_ladder("divergence").names)
def test_points_that_escape_in_the_very_last_steps_are_counted_to_the_end(rung: str) -> None:
    """One in ten thousand: a rung that stops a few steps early is wrong for no other."""
    late = escaping_late()
    verify(load_ladder("divergence")[rung], {"n": late["re"].size, "data": "image"}, inputs=late)
