"""Which GPU's records a reader sees: those of the book's GPU, or those of the GPU that ``CLIMB_GPU`` names.

The sentences of the book are checked against the records of ``BOOK_GPU``. Where the chosen GPU lacks a record that a
chapter shows, the book's record stands in, under its own name; nothing is an error, so a GPU may have any part of the
records. A call that names a GPU gets the records of that GPU and no others.
"""

from __future__ import annotations

import os

from climb import paths

RECORDS = paths.RECORDS
#: The GPU whose records the sentences of the book are checked against.
BOOK_GPU = "nvidia-h200"
#: The environment variable that chooses another folder of ``records/``.
VARIABLE = "CLIMB_GPU"


def chosen_gpu() -> str:
    """The folder of ``records/`` that ``CLIMB_GPU`` names, or the book's."""
    return os.environ.get(VARIABLE, "").strip() or BOOK_GPU


#: The reader's choice, made when the process starts.
DEFAULT_GPU = chosen_gpu()
#: What the book's records have stood in for so far, as ladders or places in the folder, in the order of the questions.
STOOD_IN: dict[str, None] = {}


def stands_in(gpu: str) -> bool:
    """Whether the book's records stand in for those that ``gpu`` lacks: only if it is the reader's choice."""
    return gpu == DEFAULT_GPU != BOOK_GPU


def gpu_with(place: str, gpu: str) -> str:
    """The GPU whose file at this place is shown, such as ``hardware/transpose.json``: ``gpu``, or the book's GPU."""
    if not stands_in(gpu) or (RECORDS / gpu / place).exists():
        return gpu
    STOOD_IN[place.removesuffix(".json")] = None
    return BOOK_GPU
