"""Summarise the results of the foreign programs on a GPU and on the emulator, for the chapter.

The summary is read from ``programs_compared.json`` beside the counts; ``climb agreement --only programs --compare``
writes it, and a test compares again.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from climb.bench import records
from climb.validation.foreign.emulated import run
from climb.validation.foreign.launches import outputs_sha256
from climb.validation.foreign.program import PROGRAMS
from climb.validation.foreign.record import compare_program, record, record_path, result


@dataclass(frozen=True)
class ProgramSummary:
    """The comparison in numbers.

    ``right`` of ``programs`` agree with NumPy on the GPU, ``same_bits`` have the same results on the emulator, bit by
    bit. ``equal`` of ``compared`` counts that are not zero are equal; ``different`` holds the others.
    """

    programs: int
    launches: int
    right: int
    same_bits: int
    compared: int
    equal: int
    different: list[dict[str, Any]]


def summarise() -> ProgramSummary:
    """Run all programs on the emulator and compare. Raises LookupError for a program whose current code was not
    counted."""
    right = same = 0
    counts = []
    for program in PROGRAMS.values():
        found = result(program)
        done = run(program)
        counts += compare_program(program, done.steps, done.compiled, done.counters)
        right += not found["wrong"]
        same += found["outputs_sha256"] == outputs_sha256(done.outputs)
    counts = [one for one in counts if one.emulator or any(one.hardware)]
    different = [
        {**asdict(one), "emulator": int(one.emulator), "hardware": [int(each) for each in one.hardware]}
        for one in counts if not one.equal
    ]  # fmt: skip
    return ProgramSummary(
        len(PROGRAMS), len(record().launches), right, same, len(counts), len(counts) - len(different),
        different,
    )  # fmt: skip


def compared_path(gpu: str = records.DEFAULT_GPU) -> Path:
    """Return the file with the summary of a GPU."""
    return record_path(gpu).with_name("programs_compared.json")


def read_summary(gpu: str = records.DEFAULT_GPU) -> ProgramSummary:
    """Read the committed summary."""
    return records.load(compared_path(records.gpu_with("emulator/programs_compared.json", gpu)), ProgramSummary)


def write_summary() -> Path:
    """Compare all programs and write the summary. Returns the file."""
    path = compared_path()
    records.save(path, asdict(summarise()), ProgramSummary)
    return path
