"""The bill of a test run: what each kind of test cost."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from tools import bill, thorough

REPORTS = [
    ("book/sgemm.ipynb::Cell 3", 4.0, False),
    ("tests/kernels/sgemm/test_rungs.py::test_a[x]", 1.5, False),
    ("tests/kernels/sgemm/test_rungs.py::test_b", 1.0, False),
    ("tests/kernels/sgemm/test_sgemm.py::test_c", 0.5, False),
    ("tests/test_package.py::test_d", 0.25, False),
    ("tests/cli/test_new.py::test_e", 0.04, False),
    ("tests/cli/test_new.py::test_e", 2.0, True),
]


@pytest.fixture
def full() -> bill.Bill:
    made = bill.Bill()
    for nodeid, seconds, closes in REPORTS:
        made.pytest_runtest_logreport(SimpleNamespace(nodeid=nodeid, cpu_seconds=seconds, closes=closes))
    return made


def test_kinds_are_added_up_and_the_rest_is_pytests(full: bill.Bill) -> None:
    assert [line.strip() for line in full.lines(12.0)] == [
        "4.0  book",
        "2.5  tests/kernels, rungs",
        "2.0  the browser",
        "0.5  tests/kernels",
        "0.2  tests",
        "2.7  starting, collecting and reporting",
        "12.0  all together",
    ]


@pytest.mark.parametrize(("total", "printed"), [(bill.LEAST - 1, False), (bill.LEAST, True)])
def test_only_a_long_run_prints_its_bill(full: bill.Bill, total: float, printed: bool) -> None:
    said: list[str] = []
    full._clock = lambda: total
    full.pytest_terminal_summary(SimpleNamespace(section=said.append, line=said.append))
    assert bool(said) == printed and ("CPU seconds" in said) == printed


def test_seconds_between_reports_are_a_tests(request: pytest.FixtureRequest) -> None:
    made = bill.Bill(iter((1.0, 2.0, 5.0, 7.0, 10.0)).__next__)
    for last, spent in ((False, 3.0), (True, 3.0)):
        protocol = made.pytest_runtest_protocol(None if last else request.node)
        next(protocol)
        report = SimpleNamespace(when="teardown")
        making = made.pytest_runtest_makereport()
        next(making)
        with pytest.raises(StopIteration):
            making.send(report)
        assert report.cpu_seconds == spent and report.closes == last


def test_first_of_each_key_is_taken_and_the_rest_is_thorough() -> None:
    words = ["ant", "bee", "asp", "wasp", "moth"]
    found = thorough.first_of_each(words, lambda word: word[0], len)
    taken = [one for one in found if isinstance(one, str)]
    assert taken == ["ant", "bee", "wasp", "moth"]
    (left,) = (one for one in found if not isinstance(one, str))
    assert left.values == ("asp",) and [mark.name for mark in left.marks] == ["thorough"]
    pairs = thorough.first_of_each([("a", 1), ("a", 2)], lambda pair: pair[0], unpack=True)
    assert pairs[0] == ("a", 1) and pairs[1].values == ("a", 2)
