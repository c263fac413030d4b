"""Marks of source lines on which the machine code does other accesses than the PTX."""

from __future__ import annotations

import pytest

from climb.emulator.counters.marks import Mark


@pytest.mark.parametrize(
    ("ptx", "sass", "loop", "changes"),
    [
        ({4: 2}, {4: 2}, False, False),
        ({4: 2}, {4: 3}, False, False),  # unrolled: each runs less often
        ({4: 2}, {4: 1}, False, True),
        ({4: 4}, {16: 1}, False, True),
        ({4: 2, 8: 1}, {4: 2, 8: 0}, False, True),
        ({4: 1}, {4: 1}, True, True),
    ],
)
def test_counts_may_differ_where_machine_code_has_fewer_or_other_accesses(ptx, sass, loop, changes) -> None:
    assert Mark("k.cu", 1, "global load", ptx, sass, loop).changes == changes
