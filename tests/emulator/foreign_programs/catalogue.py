"""All programs: importing a module registers those of its projects."""

from . import attention, graphs, hashing, images, language_models, rodinia, samples
from .program import PROGRAMS

__all__ = ["PROGRAMS", "attention", "graphs", "hashing", "images", "language_models", "rodinia", "samples"]
