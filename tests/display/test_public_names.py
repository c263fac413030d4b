"""The names that `from climb import ...` gives."""

from __future__ import annotations

import subprocess
import sys

import pytest

import climb

#: What every chapter displays with.
DISPLAYED = {
    "Code", "access_figure", "card", "counters_table", "diff", "ladder_figure", "launch", "number", "sass", "say",
    "source", "table", "timing_table",
}  # fmt: skip


def test_public_names_exist_and_matplotlib_is_imported_late():
    for name in climb.__all__:
        assert getattr(climb, name) is not None, name
    assert callable(climb.timings) and callable(climb.counters)
    assert set(climb.__all__) >= DISPLAYED
    with pytest.raises(AttributeError, match=r"climb has no 'nonsense'"):
        _ = climb.nonsense
    code = "import sys, climb; from climb import cp, timings; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
