"""Rungs of the chapter warp_shuffles: their sizes, and the faults that their checks must find."""

from __future__ import annotations

from hypothesis import strategies as st
from tools.corners import *  # noqa: F403
from tools.corners import Corner
from tools.rung_checks import *  # noqa: F403

from climb import WrongResult
from climb.emulator import EmulatorError, OutOfBounds, Race

#: Sizes to draw from: small, among them ones, primes and tile edges.
SIZES = {
    "reduction": st.fixed_dictionaries({"n": st.one_of(st.integers(0, 40), st.integers(0, 70000))}),
    "reduction_max": st.fixed_dictionaries({"n": st.one_of(st.integers(1, 40), st.integers(1, 70000))}),
    "argmax": st.fixed_dictionaries({"n": st.one_of(st.integers(1, 40), st.integers(1, 70000))}),
    "accurate_sum": st.fixed_dictionaries({"n": st.one_of(st.integers(0, 40), st.integers(0, 70000))}),
}

#: Sizes, constants and inputs that reach branches which the sizes above leave out.
CORNERS = [
    *(
        Corner(
            ladder,
            "more blocks than threads",
            {"n": 128 * 100 + 77},
            {
                f"kernels.warp_shuffles.{ladder}.{name}": value
                for name, value in (("WIDE_THREADS" if ladder == "reduction" else "THREADS", 32), ("CHUNK", 128))
            },
            {"constexpr int kThreads = 1024;": "constexpr int kThreads = 32;", "kUnroll = 8": "kUnroll = 1"},
        )
        for ladder in ("reduction", "reduction_max", "argmax", "accurate_sum")
    ),
]

#: Faults planted in rungs: ladder, rung, original text, faulty text, and the error that must be raised.
PLANTED = [
    ("reduction", "interleaved", "t % (2 * stride) == 0", "t % stride == 0", EmulatorError),
    ("reduction", "non_divergent", "left < kThreads", "left <= kThreads", EmulatorError),
    ("reduction", "sequential", "stride = kThreads / 2", "stride = kThreads / 4", WrongResult),
    ("reduction", "first_add", "i + kThreads < n", "i < n", OutOfBounds),
    ("reduction", "shuffle", "offset = kWarp / 2", "offset = kWarp / 4", WrongResult),
    ("reduction", "vectorised", "start + kChunk <= n", "start < n", OutOfBounds),
    ("reduction", "atomics", "atomicAdd(total, sum)", "*total += sum", Race),
    ("reduction", "last_block", "atomicInc(&tickets, gridDim.x - 1)", "atomicInc(&tickets, gridDim.x)", WrongResult),
    ("reduction_max", "two_pass", "start + kChunk <= n", "start < n", OutOfBounds),
    ("reduction_max", "atomics", "*largest = -__int_as_float", "*largest = __int_as_float", WrongResult),
    ("argmax", "two_pass", "bits == magnitude || magnitude == 0", "magnitude == 0", WrongResult),
    ("argmax", "last_block", "i < gridDim.x; i", "i < gridDim.x - 1; i", WrongResult),
    ("accurate_sum", "float64", "double sum = 0.0;", "float sum = 0.0f;", WrongResult),
    ("accurate_sum", "compensated", "sum.low + lost", "sum.low", WrongResult),
]  # fmt: skip

#: Planted faults that only the corners reach.
HIDDEN = [
    ("reduction", "last_block", "i < gridDim.x; i += kThreads", "i < gridDim.x; i += 2 * kThreads", WrongResult),
]  # fmt: skip
