"""The common part of the references of several problems: sums over neighbours."""

from __future__ import annotations

import numpy as np

from climb.bench import references


def test_bands_make_up_the_whole_sum(monkeypatch):
    monkeypatch.setattr(references, "BAND", 4)
    source = np.arange(24.0).reshape(6, 4)
    np.testing.assert_array_equal(
        references.correlate(source, np.array([[0.0, 0, 0], [0, 2, 0], [0, 0, 0]])), 2 * source
    )
