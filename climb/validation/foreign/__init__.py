"""Kernels of public projects, rewritten: their expected results, the bugs that can be planted in them, their cost.

Each module has the programs of some projects; ``PROGRAMS`` has all of them by name. The emulator's tests run them with
all checks. On a GPU with ``ncu``, ``climb agreement --only programs`` runs them too, compares their results with
NumPy's, and counts; ``records/<gpu>/emulator/programs.json`` holds the results, and tests compare the emulator with
them.
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
