"""Random CUDA programs give the same results as the same program in Python, and the same bits as a GPU."""

from __future__ import annotations

import numpy as np
import pytest
from harness import Device
from tools.thorough import thorough

from climb.validation.fuzzing import KINDS, control, digest, emulate, program, record, values

try:
    RECORD = record()
except LookupError:
    RECORD = None


@pytest.mark.parametrize("seed", [seed if seed < 20 else thorough(seed) for seed in range(60)])
def test_control_flow_equals_the_same_program_in_python(seed):
    cuda, python = control.program(seed)
    names: dict = {}
    exec(python, names)
    data = np.random.default_rng(seed).integers(0, 2**32, 64, np.uint32)
    out = np.zeros(120, np.uint32)
    found = Device(cuda).launch("k", 3, 40, data, out)
    plain = data.tolist()
    assert out.tolist() == [names["run"](plain, t) for t in range(120)], cuda
    # Six warps, and each lane stores once.
    assert found.total("global store").lanes == 120


def test_seed_determines_the_program():
    one, same, other = values.program(3), values.program(3), values.program(4)
    assert one == same != other


def test_programs_reach_every_operation():
    """Every operation occurs in some program of the recorded run."""
    every = "".join(values.program(seed) for seed in range(400))
    for _, _, code in values.OPERATIONS:
        word = code.split("(")[0] if code.startswith("__") else ""
        assert word in every


@pytest.mark.skipif(RECORD is None, reason="no random programs were run on a GPU")
@pytest.mark.parametrize("seed", [seed if seed < 4 else thorough(seed) for seed in range(12)])
@pytest.mark.parametrize("kind", KINDS)
def test_outputs_equal_the_gpus_bits(kind, seed):
    assert digest(emulate(program(kind, seed))) == RECORD["hashes"][kind][str(seed)]


@pytest.mark.skipif(RECORD is None, reason="no random programs were run on a GPU")
def test_recorded_run_found_no_difference():
    for kind in KINDS:
        ran = RECORD["kinds"][kind]
        assert ran["programs"] >= 500 and ran["words"] > 1000 * ran["programs"] ** 0.5
        assert ran["different"] == [] and ran["refused"] == []
