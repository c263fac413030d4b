"""All programs: importing a module registers those of its projects."""

from . import attention, collectives, fields, graphs, hashing, images, language_models, libraries, rodinia, samples
from .program import PROGRAMS

__all__ = [
    "PROGRAMS",
    "attention",
    "collectives",
    "fields",
    "graphs",
    "hashing",
    "images",
    "language_models",
    "libraries",
    "rodinia",
    "samples",
]
