"""`climb speed --against`: two tables of speeds become one."""

from __future__ import annotations

from pathlib import Path

import pytest

from climb.bench.earlier_speed import compare
from climb.cli import main
from climb.paths import ROOT

EARLIER = """kernel       size            ready ms   run ms  thread instr. M  M per second
transpose    1024^2               4.0     30.0             14.7           400
reduction    1M, tree            30.5    100.0             62.9           600
"""
NOW = """kernel       size            ready ms  thread instr. M     1 process  M per s   2 processes  M per s
transpose    1024^2               1.5             14.7       17.9 ms      821       12.0 ms     1600
reduction    1M, tree             4.7             62.9       87.7 ms      717       50.0 ms      600
"""


def test_best_speeds_of_all_turns_are_compared():
    slow = iter((1, 1, 1, 2, 1, 1))

    def bench(folder: Path) -> str:
        assert (folder / "pyproject.toml").is_file()
        table = NOW if folder == ROOT else EARLIER
        return table.replace("1600", "800") if next(slow) == 2 else table

    *_, transpose, reduction, mean = compare("HEAD", ROOT, bench)
    assert transpose.split() == ["transpose", "4.0", "1.5", "400", "1600", "4.00"]
    assert reduction.split() == ["reduction", "30.5", "4.7", "600", "600", "1.00"]
    assert mean.split() == ["geometric", "mean", "2.00"]


def test_an_unknown_commit_is_named(capsys):
    assert main(["speed", "--against", "no-such-commit"]) == 2
    assert "no-such-commit" in capsys.readouterr().err


def test_a_table_of_another_kind_is_refused():
    with pytest.raises(ValueError, match="expected the head of its table"):
        list(compare("HEAD", ROOT, lambda folder: "something else\n"))
