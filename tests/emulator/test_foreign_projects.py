"""Kernels of public projects: the emulator computes what NumPy does, reports no error, and finds every planted bug."""

from __future__ import annotations

import pytest
from tools.thorough import first_of_each, thorough

from climb.emulator import EmulatorError
from climb.validation.foreign import PROGRAMS, Outcome, Program, emulated

ALL = [(one, fault, outcome) for one in PROGRAMS.values() for fault, outcome in one.faults.items()]
FAULTS = [each for each in ALL if not each[0].thorough]


@pytest.mark.parametrize(
    "program",
    [
        *first_of_each((one for one in PROGRAMS.values() if not one.thorough), lambda one: one.file),
        *(thorough(one) for one in PROGRAMS.values() if one.thorough),
    ],
    ids=lambda one: one.name,
)
def test_program_is_right_and_raises_nothing(program: Program) -> None:
    emulated.run(program)


@pytest.mark.parametrize(
    ("program", "fault", "outcome"),
    [
        *first_of_each(FAULTS, lambda each: each[2], unpack=True),
        *(thorough(*each) for each in ALL if each[0].thorough),
    ],
    ids=lambda each: getattr(each, "name", None),
)
def test_planted_bug_is_found(program: Program, fault: int, outcome: Outcome) -> None:
    with pytest.raises(outcome) as raised:
        emulated.run(program, fault)
    if isinstance(raised.value, EmulatorError):
        assert raised.value.where.line and raised.value.where.text


def test_every_planted_bug_of_a_source_is_tried_once() -> None:
    for file in {one.file for one in PROGRAMS.values()}:
        tried = [fault for one in PROGRAMS.values() if one.file == file for fault in one.faults]
        text = next(one.source() for one in PROGRAMS.values() if one.file == file)
        planted = {n for n in range(1, 30) if f"FAULT == {n}\n" in text or f"FAULT != {n}\n" in text}
        assert sorted(tried) == sorted(planted), file
