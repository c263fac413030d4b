"""The fragments picture: boxes of what one lane holds side by side, one lane marked."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.collections import PolyCollection
from matplotlib.colors import to_rgba
from tools.overlaps import overlaps

from climb import alt_text, fragments_figure
from climb.display import style

ROWS, COLUMNS = np.indices((16, 16))
A = ROWS % 8 * 4 + COLUMNS % 8 // 2
B = COLUMNS[:, :8] * 4 + ROWS[:, :8] % 8 // 2
C = A[:, :8]


def boxes(figure, colour):
    """The number of boxes of a colour in each matrix of the picture."""
    drawn = [one for one in figure.findobj(PolyCollection) if one.get_facecolor().size]
    return [len(one.get_paths()) for one in drawn if np.allclose(one.get_facecolor()[0], to_rgba(colour))]


def test_neighbours_of_a_lane_are_one_box_and_the_lane_is_marked():
    figure = fragments_figure(A, B, C, lane=5)
    assert boxes(figure, style.BEST) == [2, 4, 2]  # of B, A and C: registers of two halves, pairs of sums
    assert boxes(figure, style.FAINT) == [62, 124, 62]
    assert "Lane 5 holds 8 elements of A, 4 elements of B, 4 elements of C." in alt_text(figure)


def test_numbers_stand_in_reading_order_and_do_not_overlap():
    figure = fragments_figure(A, B, C, lane=0)
    numbers = [text.get_text() for text in figure.axes[0].texts if text.get_text().isdigit()]
    assert numbers[:8] == ["0", "1", "2", "3", "0", "1", "2", "3"]  # B's first column, from above
    assert numbers[64:68] == ["0", "1", "2", "3"] and len(numbers) == 64 + 128 + 64
    assert overlaps(figure) == []


def test_matrices_that_do_not_fit_a_product_are_refused():
    with pytest.raises(ValueError, match="no product: A is 16 x 16, B 8 x 8, C 16 x 8"):
        fragments_figure(A, B[:8], C, lane=0)
