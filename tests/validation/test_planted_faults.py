"""The emulator reports every planted fault in full, and nothing about the mended kernel."""

from __future__ import annotations

import re

import pytest
from tools.thorough import sparse

from climb.emulator import LaunchError
from climb.validation.faults import Fault, emulate
from climb.validation.faults.catalogue import FAULTS, STEPS


def test_catalogue_has_at_least_40_faults_with_unique_names() -> None:
    assert len(FAULTS) >= 40 and len({fault.name for fault in FAULTS}) == len(FAULTS)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_planted_fault_is_reported_in_full(fault: Fault) -> None:
    with pytest.raises(fault.error) as caught:
        emulate(fault, True, STEPS)
    error = caught.value
    assert type(error) is fault.error
    assert re.search(fault.says, str(error), re.DOTALL), str(error)
    assert error.where.kernel == "k" and error.where.lanes >= 0
    if fault.error is not LaunchError:
        assert error.where.line > 0 and f"fault.cu:{error.where.line}" in str(error) and "look at:" in str(error)
        assert error.where.block is not None and error.where.thread is not None
    if fault.at:
        assert error.where.text == fault.at
    if fault.block is not None and fault.error is not LaunchError:
        assert error.where.block == fault.block
    if fault.thread is not None and fault.error is not LaunchError:
        assert error.where.thread == fault.thread
    if fault.lanes is not None:
        assert error.where.lanes == fault.lanes
    if fault.allocation:
        assert error.allocation.name == fault.allocation
    for name, value in fault.details.items():
        assert getattr(error, name) == value, name
    if fault.other:
        assert error.other.text == fault.other


@pytest.mark.parametrize("fault", sparse(FAULTS), ids=lambda fault: fault.name)
def test_mended_kernel_is_clean(fault: Fault) -> None:
    emulate(fault, False, STEPS)
