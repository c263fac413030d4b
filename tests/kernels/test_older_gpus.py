"""The code that rungs have for GPUs before compute capability 8.0 computes what the code for newer ones does."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest
from tools.code import whole_source
from tools.corners import with_fault
from tools.thorough import first_of_each, sparse, thorough

from climb import BoundRung, WrongResult, cp, ladder_names, load_ladder, verify
from climb.emulator import EmulatorError

NEWER = "__CUDA_ARCH__ >= 800"
#: Rungs for any GPU whose source asks for the architecture, which they do only to tell GPUs before 8.0 from the rest.
RUNGS = [
    rung
    for name in ladder_names()
    for rung in load_ladder(name)
    if float(rung.rung.capability) < 8 and NEWER in whole_source(rung.path)
]

#: Ladders and rungs that are large programs, which NVRTC compiles for a second or more.
LARGE = {"fft_conv3d", "convlayer_int", "karatsuba"}

#: The load of four floats in that code.
FOUR, TO = "*reinterpret_cast<const float4*>(from)", "*reinterpret_cast<float4*>(to)"
#: Faults in that code, in the form of ``PLANTED``.
PLANTED = [
    ("classifier", "batched", f"wanted ? {FOUR} : float4{{}};", f"{FOUR};", WrongResult),
    ("classifier", "split_k_per_warp", f"{FOUR} : float4{{}};", f"{FOUR} : {TO};", EmulatorError),
    ("classifier", "split_k_per_warp", f"{TO} =\n            wanted ? {FOUR} : float4{{}};", "", EmulatorError),
]  # fmt: skip

pytestmark = pytest.mark.emulated


@pytest.fixture(autouse=True)
def before_8(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compile for compute capability 7.5."""
    monkeypatch.setattr(sys.modules[cp.RawModule.__module__], "COMPUTE_CAPABILITY", "75")


def _is_large(rung: BoundRung) -> bool:
    return not LARGE.isdisjoint((rung.ladder.name, rung.name))


def _verify_at_a_middling_size(rung: BoundRung) -> None:
    problem = rung.ladder.problem
    work = problem.flops if any(map(problem.flops, problem.check)) else problem.bytes
    taken = sorted((s for s in problem.check if work(s) and not rung.rung.requires(s)), key=work)
    verify(rung, taken[len(taken) // 2])


@pytest.mark.parametrize(
    "rung",
    [
        *first_of_each(
            (rung for rung in reversed(RUNGS) if not _is_large(rung)), lambda rung: rung.ladder.folder.parent
        ),
        *(thorough(rung) for rung in RUNGS if _is_large(rung)),
    ],
    ids=lambda rung: f"{rung.ladder.name}-{rung.name}",
)
def test_results_before_compute_capability_8_are_right(rung: BoundRung) -> None:
    _verify_at_a_middling_size(replace(rung.ladder)[rung.name])  # a copy of the ladder: no kernel is compiled yet


@pytest.mark.parametrize("planted", sparse(PLANTED), ids=lambda planted: "-".join(planted[:2]))
def test_a_fault_in_code_for_older_gpus_is_found(planted: tuple[str, str, str, str, type], tmp_path: Path) -> None:
    name, rung_name, old, new, error = planted
    faulty = with_fault(load_ladder(name)[rung_name], old, new, tmp_path)
    with pytest.raises(error):
        _verify_at_a_middling_size(faulty)
