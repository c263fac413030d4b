"""All programs: importing a module registers those of its projects."""

from . import language_models
from .program import PROGRAMS

__all__ = ["PROGRAMS", "language_models"]
