"""A GPU's runs of the kernels of public projects: results as NumPy's, and counts as the emulator's."""

from __future__ import annotations

import pytest
from tools.thorough import thorough

from climb.validation.foreign import PROGRAMS, Program, emulated, summary
from climb.validation.foreign.launches import outputs_sha256
from climb.validation.foreign.record import compare_program, record, result

#: Programs whose counts depend on the order in which threads run: a GPU counts other retries than the emulator.
ORDER = {"components", "hash_table", "solve_lower", "sssp"}
#: Counts that differ for a reason that we do not know, a few per cent: ptxas loads less than the PTX asks for.
UNKNOWN = {"non_local_means", "paged_attention"}
FEW = {"bfs_queue", "histogram64", "needle", "red_black", "sobol", "spmv_ell"}


def test_every_program_is_right_on_the_gpu() -> None:
    assert {one["program"]: one["wrong"] for one in record().results} == dict.fromkeys(PROGRAMS, "")


@pytest.mark.parametrize(
    "program", [one if one.name in FEW else thorough(one) for one in PROGRAMS.values()], ids=lambda one: one.name
)
def test_counts_differ_only_for_known_reasons(program: Program) -> None:
    done = emulated.run(program)
    counts = compare_program(program, done.steps, done.compiled, done.counters)
    without = [one for one in counts if not one.equal and not one.why]
    assert not without or program.name in ORDER | UNKNOWN, without
    assert all(abs(one.emulator / one.hardware[0] - 1) < 0.15 for one in without if program.name in UNKNOWN)
    bits = result(program)["outputs_sha256"] == outputs_sha256(done.outputs)
    assert bits or any(map(_floats, done.outputs)), "integers differ"


def _floats(output: object) -> bool:
    return output.dtype.kind == "f"


def test_a_program_whose_code_has_changed_is_not_compared() -> None:
    name = next(name for name, one in PROGRAMS.items() if one.faults)
    program, steps = PROGRAMS[name], PROGRAMS[name].steps()
    with pytest.raises(LookupError, match=f"stale counts of the program {name}; on a GPU, run: climb agreement"):
        compare_program(program, steps, program.compiled(next(iter(program.faults))), [])


def test_the_summary_names_every_difference() -> None:
    found = summary.read_summary()
    assert found.programs == found.right == len(PROGRAMS) and found.launches == len(record().launches)
    assert found.compared - found.equal == len(found.different) and found.equal / found.compared > 0.95
    names = {one["what"].partition(",")[0] for one in found.different if not one["why"]}
    assert names == ORDER | UNKNOWN


@pytest.mark.thorough
def test_the_summary_equals_a_new_comparison() -> None:
    """If this fails, run `climb agreement --only programs --compare`."""
    assert summary.summarise() == summary.read_summary()
