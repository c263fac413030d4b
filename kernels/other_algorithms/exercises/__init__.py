"""The exercises and exhibits of the chapter ``book/other-algorithms.ipynb``.

``untangle`` is a kernel to complete, ``judge`` looks at two functions of whole numbers that are worked out on paper,
``exhibit(name)`` is the source of a kernel that is wrong.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from climb.bench.exercise import Check, Exercise, Verdict, exhibit_reader
from climb.bench.problem import Argument, Launch, Problem, Size, ceil_div

POINTS, THREADS = 32, 64

exhibit = exhibit_reader(__file__)


def _signals(size: Size, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Spectra of whole numbers, all of them even: halves of their sums are exact."""
    return {"both": 2 * rng.integers(-100, 100, (size["signals"], POINTS, 2)).astype(np.float32)}


def _spectra(inputs: dict[str, np.ndarray], size: Size) -> dict[str, np.ndarray]:
    both = inputs["both"][..., 0].astype(np.float64) + 1j * inputs["both"][..., 1]
    signals = np.fft.ifft(both, axis=1)
    found = {"first": np.fft.fft(signals.real, axis=1), "second": np.fft.fft(signals.imag, axis=1)}
    return {name: np.stack([value.real, value.imag], axis=-1) for name, value in found.items()}


untangle = Exercise(
    name="untangle",
    problem=Problem(
        name="untangle",
        title="Two real spectra from one complex transform",
        size_keys=("signals",),
        arguments=(
            Argument("both", "float32", ("signals", lambda size: POINTS, lambda size: 2)),
            Argument("first", "float32", ("signals", lambda size: POINTS, lambda size: 2), "output"),
            Argument("second", "float32", ("signals", lambda size: POINTS, lambda size: 2), "output"),
        ),
        make_inputs=_signals,
        reference=_spectra,
        tolerance=lambda size: 1e-12,  # the kernel is exact, the float64 reference transforms twice
        flops=lambda size: 4 * POINTS * size["signals"],
        bytes=lambda size: 24 * POINTS * size["signals"],
        headline=(),
        check=(),
    ),
    launches=lambda size: (
        Launch(
            "untangle",
            (ceil_div(POINTS * size["signals"], THREADS),),
            (THREADS,),
            ("both", "first", "second", np.int32(size["signals"])),
        ),
    ),
    sizes=({"signals": 1}, {"signals": 5}),
    folder=Path(__file__).parent,
    hints=(
        "The spectrum of a real signal at the frequency -k is the conjugate of that at k. What are then the spectra "
        "of a + i b at k and at -k, in terms of those of a and b?",
        "Add the spectrum at k and the conjugate of that at -k: b cancels, and twice a is left. Subtract them, "
        "and twice i b is left. The opposite of frequency 0 is 0 itself.",
    ),
)


def judge(kept: Callable[[int, int], int], operations: Callable[[int, int], float]) -> Verdict:
    """The verdict on the two functions of the exercise on paper: outputs that a tile keeps, operations per output."""
    checks = []
    for edge, k in ((32, 3), (32, 9), (64, 11), (16, 1)):
        right, found = (edge - k + 1) ** 2, kept(edge, k)
        checks.append(Check(f"kept({edge}, {k})", None if found == right else f"{found} is not right"))
    for k, transform in ((3, 388), (9, 388), (11, 1000)):
        right = (4 * 32 * transform + 1024 * 4 * k) / (2 * (33 - k) ** 2)
        found = operations(k, transform)
        checks.append(
            Check(f"operations({k}, {transform})", None if abs(found - right) < 1e-6 else f"{found:.1f} is not right")
        )
    return Verdict("other_algorithms", tuple(checks))
