"""All programs: importing a module registers those of its projects."""

from . import attention, fields, graphs, hashing, images, language_models, libraries, rodinia, samples
from .program import PROGRAMS

__all__ = [
    "PROGRAMS",
    "attention",
    "fields",
    "graphs",
    "hashing",
    "images",
    "language_models",
    "libraries",
    "rodinia",
    "samples",
]
