"""Outcomes of a shared ladder's rungs: the same from this process and, beside a GPU, from a child."""

from __future__ import annotations

import pytest

from climb.distributed import outcomes as module
from climb.distributed.outcomes import outcomes
from climb.distributed.plan import COMPUTE, After
from climb.distributed.registry import load_shared_ladder

HALO = load_shared_ladder("halo3d")
SIZE = {"planes": 8, "n": 4, "k": 3, "filters": 1}
#: The kernel that needs the halos waits for them here.
HALOS_HAVE_COME = After(COMPUTE, "messages")


@pytest.fixture(params=["emulator", "cupy"])
def backend(request, monkeypatch):
    """Let kernels of this process run on the emulator, or seem to run on a GPU."""
    monkeypatch.setattr(module, "backend", request.param)


@pytest.mark.emulated
def test_chosen_rungs_are_run_and_a_plan_that_lacks_a_wait_is_wrong_if_messages_are_late(backend):
    whole = outcomes(HALO, SIZE, rungs=["overlap", "exchange"])
    assert [(one.name, one.ranks, one.messages) for one in whole] == [("overlap", 2, 2), ("exchange", 2, 2)]
    (lucky,) = outcomes(HALO, SIZE, order="written", rungs=["overlap"], without=HALOS_HAVE_COME)
    assert lucky.error < 1e-6
    with pytest.raises(RuntimeError, match=r"^rank 1 failed: WrongResult: halo3d 'overlap' at planes=8, n=4"):
        outcomes(HALO, SIZE, rungs=["overlap"], without=HALOS_HAVE_COME)


def test_a_name_that_is_no_rung_and_a_step_that_no_plan_has_are_refused(backend):
    with pytest.raises(KeyError, match="has no rung 'overlapp'"):
        outcomes(HALO, SIZE, rungs=["overlapp"])
    with pytest.raises(ValueError, match="the plan of 'overlap' for rank 0 has no After"):
        outcomes(HALO, SIZE, rungs=["overlap"], without=After("messages", "elsewhere"))
