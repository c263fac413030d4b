"""The order of tiles of tgemm, for problems far larger than those that tests compute."""

from __future__ import annotations

import numpy as np
import pytest

from climb import cp, load_ladder

PLACES = """
#include "place.cuh"
extern "C" __global__ void places(int rows, int columns, int2* at)
{
    const int t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t < rows * columns) at[t] = place(t, rows, columns);
}
"""


@pytest.mark.parametrize(("rows", "columns"), [(1, 5), (8, 3), (9, 4), (16, 1), (21, 6)])
def test_tiles_are_computed_in_columns_of_eight_each_once(rows: int, columns: int) -> None:
    options = ("-std=c++17", f"-I{load_ladder('tgemm').folder}")
    kernel = cp.RawModule(code=PLACES, options=options).get_function("places")
    at = cp.zeros((rows * columns, 2), dtype=np.int32)
    kernel((1,), (rows * columns,), (np.int32(rows), np.int32(columns), at))
    groups = [range(first, min(first + 8, rows)) for first in range(0, rows, 8)]
    expected = [(row, column) for group in groups for column in range(columns) for row in group]
    assert [tuple(each) for each in cp.asnumpy(at).tolist()] == expected
