"""Rungs of the chapter on a whole network: their sizes, and the faults that their checks must find."""

from __future__ import annotations

import pytest
from hypothesis import strategies as st
from tools.rung_checks import *  # noqa: F403

from climb import WrongResult, load_ladder, verify
from climb.emulator import AsyncRace, BarrierMisuse, EarlyAccess, EndlessLoop, Race

#: Sizes to draw from: the narrowest network, and few samples.
SIZES = {
    name: st.fixed_dictionaries({"batch": st.integers(1, most), "width": st.just(32)})
    for name, most in (("unet", 3), ("unet_f16", 1))
}
#: Fused rungs have twenty kernels to translate; blocks of the last two wait for each other in thirty stages.
SLOW = {
    ("unet", rung) for rung in ("fused", "graph", "dependent", "persistent", "output_stationary", "in_registers")
} | {("unet_f16", "output_stationary")}

#: Faults planted in rungs: ladder, rung, original text, faulty text, and the error that must be raised.
PLANTED = [
    ("unet", "per_operation", "to[i] = one[i] + other[i]", "to[i] = one[i]", WrongResult),
    ("unet", "fused", "return threadIdx.x < kRows * kAfter ?", "return threadIdx.x < kRows ?", WrongResult),
    ("unet", "graph", "square / (square + 2.0f)", "square / (square + 1.0f)", WrongResult),
    ("unet", "dependent", "__syncthreads();  // all groups have stored", "// all groups have stored", Race),
    ("unet", "dependent", "if constexpr (kEarly) wait_for_launch_before();", "", EarlyAccess),
    ("unet", "dependent", "? load_made(activations", "? (activations", EarlyAccess),
    ("unet", "persistent", "wait_for_launch_before();  // every value", "// every value", EarlyAccess),
    ("unet", "persistent", "__syncthreads();  // the input of this stage", "// the input of this stage", Race),
    ("unet", "persistent", "hand_over(sums + row", "if (row > 0) hand_over(sums + row", EndlessLoop),
    ("unet", "persistent", "wait_for_groups<kDepth - 1>()", "wait_for_groups<kDepth>()", AsyncRace),
    ("unet", "output_stationary", "consumers_sync<kWidth>();  // all warps have stored",
     "// all warps have stored", Race),
    ("unet", "output_stationary", "if (again) mbarrier_wait", "if (false) mbarrier_wait", BarrierMisuse),
    ("unet", "output_stationary", "other = __shfl_xor_sync(kAllLanes, mean, apart)", "other = mean", WrongResult),
    ("unet_f16", "output_stationary", "bits = words[j / 2] >> 16 * (j % 2)", "bits = words[j / 2]", WrongResult),
    ("unet", "output_stationary", "hand_over(exchange + c.sums",
     "if (thread > 0) hand_over(exchange + c.sums", EndlessLoop),
    ("unet", "in_registers", "which == 0 ? s % 2 : 2", "which == 0 ? 0 : 2", Race),
    ("unet", "in_registers", "halo.before[i] = second ? taken : 0.0f", "halo.before[i] = taken", WrongResult),
]  # fmt: skip


@pytest.mark.thorough
def test_fused_kernels_are_right_for_one_sample() -> None:
    """The chapter's table of checks runs them too, at the same size."""
    verify(load_ladder("unet")["dependent"], {"batch": 1, "width": 32})
