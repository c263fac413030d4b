"""Rungs of conv_layers: correct on awkward sizes and values, tidy, and their planted faults are found."""

from __future__ import annotations

from hypothesis import strategies as st
from tools.rung_checks import *  # noqa: F403

from climb import WrongResult
from climb.emulator import EmulatorError, OutOfBounds, Race, Uninitialised

#: Sizes to draw from: small, with ones, primes and tile edges among them.
SIZES = {
    "convlayer": st.fixed_dictionaries(
        {
            "n": st.one_of(st.integers(0, 17), st.sampled_from((28, 31, 33, 40))),
            "c_in": st.integers(0, 13),
            "c_out": st.one_of(st.integers(0, 9), st.sampled_from((16, 33, 65))),
            "k": st.sampled_from((1, 2, 3, 3, 4, 5)),
        }
    ),
    "convlayer_int": st.fixed_dictionaries(
        {
            "n": st.one_of(st.integers(0, 17), st.sampled_from((28, 31))),
            "c_in": st.integers(0, 5),
            "c_out": st.integers(0, 7),
            "k": st.sampled_from((1, 2, 3, 5)),
        }
    ),
}

#: Faults planted in rungs: what is replaced by what, and what must come of it.
PLANTED = [
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
    ("convlayer", "winograd_2d", "__syncthreads();  // every thread has read the last stage", "// ", Race),
]  # fmt: skip
