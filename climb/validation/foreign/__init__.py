"""Kernels of public projects, rewritten: what they must compute, which bugs can be planted in them, what they cost.

Each module has the programs of some projects; ``PROGRAMS`` has all of them by name. The emulator's tests run them with
all checks. On a GPU with ``ncu``, ``climb agreement --only programs`` runs them too, compares their results with
NumPy's, and counts; ``records/<gpu>/emulator/programs.json`` holds what it found, and tests compare the emulator.
"""

from __future__ import annotations

from climb.validation.foreign import (
    attention,
    collectives,
    fields,
    graphs,
    hashing,
    images,
    language_models,
    libraries,
    rodinia,
    samples,
)
from climb.validation.foreign.program import PROGRAMS, WRONG, Empty, Outcome, Program, Steps

__all__ = [
    "PROGRAMS", "WRONG", "Empty", "Outcome", "Program", "Steps", "attention", "collectives", "fields", "graphs",
    "hashing", "images", "language_models", "libraries", "rodinia", "samples",
]  # fmt: skip
