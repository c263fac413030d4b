"""Fragments: which lane of a warp holds which elements of a matrix. PTX ISA, section 9.7.14."""

from __future__ import annotations

import numpy as np

from ...simt.lanes import WARP

ROW = np.arange(WARP) // 4  # "groupID"
COLUMN = np.arange(WARP) % 4  # "threadID_in_group"
_HALVES = np.arange(2)


def _pairs(register_rows: list[int], register_columns: list[int], along: str) -> tuple[np.ndarray, np.ndarray]:
    """(row, column) of every half, each (32, registers, 2); a register holds neighbours `along` a row or a column."""
    first = ROW[:, None, None] + np.zeros((1, len(register_rows), 2), np.int64)
    second = 2 * COLUMN[:, None, None] + _HALVES + np.zeros((1, len(register_rows), 1), np.int64)
    rows, columns = (first, second) if along == "row" else (second, first)
    return rows + np.array(register_rows)[:, None], columns + np.array(register_columns)[:, None]


def _singles(
    rows: np.ndarray, columns: np.ndarray, register_rows: list[int], register_columns: list[int]
) -> tuple[np.ndarray, np.ndarray]:
    """(row, column) of 32-bit elements, each (32, registers, 1)."""
    return (
        (rows[:, None] + np.array(register_rows))[:, :, None],
        (columns[:, None] + np.array(register_columns))[:, :, None],
    )


def fragment(matrix: str, kind: str, depth: int) -> tuple[np.ndarray, np.ndarray]:
    """(row, column) of the elements of `matrix` (a: 16 x depth, b: depth x 8, c: 16 x 8) that each lane holds.

    Both have the shape (32, registers, elements per register). PTX ISA, 9.7.14.5.
    """
    if matrix == "c":
        if kind == "f16":
            return _pairs([0, 8], [0, 0], "row")
        rows, columns = _pairs([0, 8], [0, 0], "row")
        return rows.reshape(WARP, 4, 1), columns.reshape(WARP, 4, 1)
    if kind == "tf32":
        steps = range(depth // 4)
        if matrix == "a":
            return _singles(ROW, COLUMN, [0, 8] * len(steps), [4 * step for step in steps for _ in range(2)])
        return _singles(COLUMN, ROW, [4 * step for step in steps], [0] * len(steps))
    steps = range(depth // 8)
    if matrix == "a":
        return _pairs([0, 8] * len(steps), [8 * step for step in steps for _ in range(2)], "row")
    return _pairs([8 * step for step in steps], [0] * len(steps), "column")
