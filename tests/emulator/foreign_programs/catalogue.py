"""All programs: importing a module registers those of its projects."""

from . import attention, hashing, language_models
from .program import PROGRAMS

__all__ = ["PROGRAMS", "attention", "hashing", "language_models"]
