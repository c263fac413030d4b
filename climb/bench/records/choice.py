"""The GPU whose records a reader sees: the book's GPU, or the GPU that ``CLIMB_GPU`` names.

The sentences of the book are checked against the records of ``BOOK_GPU``. If the chosen GPU lacks a record that a
chapter shows, the book's record is shown instead, under its own name. That is no error: a GPU may have any part of the
records. A call that names a GPU gets the records of that GPU and no others.
"""

from __future__ import annotations

import os
from pathlib import Path

from climb import paths

RECORDS = paths.RECORDS
#: The GPU whose records the sentences of the book are checked against.
BOOK_GPU = "nvidia-h200"
#: The environment variable that chooses another folder of ``records/``.
VARIABLE = "CLIMB_GPU"


def chosen_gpu() -> str:
    """Return the folder of ``records/`` that ``CLIMB_GPU`` names, or the book's."""
    return os.environ.get(VARIABLE, "").strip() or BOOK_GPU


#: The reader's choice, made when the process starts.
DEFAULT_GPU = chosen_gpu()
#: The records that the book's have replaced so far, as ladders or places in the folder, in order of use.
STOOD_IN: dict[str, None] = {}


def stands_in(gpu: str) -> bool:
    """Return whether the book's records replace those that ``gpu`` lacks: only if the reader chose that GPU."""
    return gpu == DEFAULT_GPU != BOOK_GPU


def gpu_with(place: str, gpu: str) -> str:
    """Return the GPU whose file at this place is shown, such as ``hardware/transpose.json``: ``gpu``, or the book's
    GPU."""
    if not stands_in(gpu) or (RECORDS / gpu / place).exists():
        return gpu
    STOOD_IN[place.removesuffix(".json")] = None
    return BOOK_GPU


def shown_file(place: str, gpu: str = DEFAULT_GPU) -> Path:
    """Return the path of the file at this place that is shown for ``gpu``, by `gpu_with`."""
    return RECORDS / gpu_with(place, gpu) / place
