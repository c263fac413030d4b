"""The bill of a test run: what each kind of test cost."""

from __future__ import annotations

import itertools
from pathlib import Path
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


def test_every_fourth_value_is_taken_and_the_rest_is_thorough() -> None:
    assert [getattr(one, "values", one) for one in thorough.sparse("abcdefg")] == [
        "a", ("b",), ("c",), ("d",), "e", ("f",), ("g",)
    ]  # fmt: skip
    pairs = thorough.sparse([("a", 1), ("b", 2)], every=2, unpack=True)
    assert pairs[0] == ("a", 1) and pairs[1].values == ("b", 2)
    assert {mark.name for one in thorough.sparse("ab")[1:] for mark in one.marks} == {"thorough"}


class Case:
    """A case of a test, as far as the choice asks for it."""

    def __init__(self, path: str, case: str, marked: bool = False) -> None:
        self.path, self.nodeid, self._marked = Path(path), f"{path}::test_{case}", marked

    def get_closest_marker(self, name: str) -> str | None:
        return name if self._marked and name == "thorough" else None


def test_a_sample_has_every_fourth_case_of_functions_that_choose_none_themselves() -> None:
    tools = [Case("tests/emulator/test_x.py", f"a[{n}]") for n in range(6)]
    alone = Case("tests/emulator/test_x.py", "b")
    chosen = [Case("tests/kernels/sgemm/test_x.py", f"a[{n}]", marked=n > 1) for n in range(5)]
    every = [
        Case(f"tests/{file}", f"a[{n}]")
        for file in ("bench/test_x.py", "kernels/sgemm/test_rungs.py")
        for n in range(5)
    ]
    cells = [Case("book/emulator.ipynb", f"Cell {n}") for n in range(5)]
    left_out = thorough.repetitions([*tools, alone, *chosen, *every, *cells])
    assert left_out == {tools[1], tools[2], tools[3], tools[5]}


def test_each_test_in_turn_has_one_turn_and_without_turns_all_run(monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"tests/kernels/test_rungs.py::test_a[{number}]" for number in range(100 * thorough.TURNS)]
    found = []
    for part in range(thorough.TURNS):
        monkeypatch.setattr(thorough, "turn", part)
        found.append([name for name in names if thorough.has_its_turn(name)])
    assert sorted(itertools.chain(*found)) == sorted(names) and all(70 < len(one) < 130 for one in found)
    monkeypatch.setattr(thorough, "turn", None)
    assert all(map(thorough.has_its_turn, names))


def test_the_turn_depends_on_the_code_alone(tmp_path: Path) -> None:
    file = tmp_path / "kernels" / "a.cu"
    file.parent.mkdir()
    turns = []
    for number in range(10 * thorough.TURNS):
        file.write_text(f"// {number}")
        turns.append(thorough.turn_of(tmp_path))
        (tmp_path / "kernels" / "a.log").write_text(str(number))
        assert thorough.turn_of(tmp_path) == turns[-1]
    assert set(turns) == set(range(thorough.TURNS))


def test_values_in_turn_are_thorough_too() -> None:
    one = thorough.in_turn("ant")
    assert one.values == ("ant",) and [mark.name for mark in one.marks] == ["thorough", "in_turn"]
