"""The records of the validation, as ``climb.bench.records.load`` checks them.

Rows are TypedDicts: a tool's report on a kernel is passed on unchanged.
"""

from __future__ import annotations

from typing import NotRequired, TypedDict

import msgspec

from climb.bench.records import Device, StoredSize


class LaunchCounts(TypedDict):
    """Nsight Compute's counts of one launch: of a rung, or of a pattern by its label; a row of counts for each run.

    A count that was not requested is None; the rows are in the order of the record's metrics.
    """

    label: NotRequired[str]
    ladder: NotRequired[str]
    rung: NotRequired[str]
    size: NotRequired[StoredSize]
    launch: NotRequired[int]
    code_sha256: str
    counts: list[list[int | float | None]]


class AgreementRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``emulator/agreement.json``."""

    date: str
    commit: str
    tool: str
    nvrtc: str
    device: Device
    metrics: list[str]
    rungs: list[LaunchCounts]
    patterns: list[LaunchCounts]


class ProgramResult(TypedDict):
    """A GPU's result of a foreign program: ``wrong`` is empty if NumPy agrees with its outputs, whose hash it has."""

    program: str
    wrong: str
    outputs_sha256: str


class ProgramCounts(TypedDict):
    """Nsight Compute's counts of one launch of a foreign program, as in ``LaunchCounts``."""

    program: str
    launch: int
    code_sha256: str
    counts: list[list[int | float | None]]


class ProgramRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``emulator/programs.json``."""

    date: str
    commit: str
    tool: str
    nvrtc: str
    device: Device
    metrics: list[str]
    results: list[ProgramResult]
    launches: list[ProgramCounts]


class KeptCode(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``emulator/code/<ladder>.<rung>.json``: PTX and machine code, compressed and in base 85."""

    made_from: str
    filename: str
    lowered: tuple[str, ...]
    include_dirs: tuple[str, ...]
    ptx: str
    cubin: str


class Finding(TypedDict):
    """One tool's report on one planted fault, and on the kernel without it. Empty if the tool was not run.

    ``errors`` is None if the kernel did not end.
    """

    errors: NotRequired[int | None]
    says: NotRequired[str]
    driver: NotRequired[str]
    mended: NotRequired[int | None]
    mended_driver: NotRequired[str]


class FaultRow(TypedDict):
    """One planted fault: the emulator's report, and that of each tool of compute-sanitizer."""

    name: str
    source_sha256: str
    emulator: str
    tools: dict[str, Finding]


class SanitizerRecord(TypedDict):
    """``emulator/sanitizer.json``."""

    date: str
    commit: str
    tool: str
    nvrtc: str
    device: Device
    faults: list[FaultRow]


class Report(TypedDict):
    """The number of reports that a tool made, and the first of them."""

    errors: int
    says: str


class CleanRow(TypedDict):
    """The tools' reports on the rungs of one ladder. ``tool`` is compute-sanitizer's version, if not the file's."""

    ladder: str
    rungs: int
    launches: int
    code_sha256: str
    tools: dict[str, Report]
    tool: NotRequired[str]


class CleanRecord(TypedDict):
    """``emulator/clean.json``."""

    date: str
    commit: str
    tool: str
    device: Device
    ladders: list[CleanRow]


class VariantRow(TypedDict):
    """A GPU's results of a variant of an exhibit: a product of square matrices of side ``n``, ``launches`` times.

    ``wrong``: the number of wrong elements of each launch with random matrices; ``constant``: with constant ones.
    """

    name: str
    source_sha256: str
    n: int
    launches: int
    wrong: list[int]
    constant: list[int]
    tools: dict[str, Report]


class StagesRecord(TypedDict):
    """``emulator/stages.json``."""

    date: str
    commit: str
    tool: str
    nvrtc: str
    device: Device
    variants: list[VariantRow]


class FuzzKind(TypedDict):
    """Programs of one kind: their number, the number of words compared, first and last seed, and the differences."""

    programs: int
    words: int
    seeds: tuple[int, int]
    different: list[list[object]]
    refused: list[tuple[int, str]]


class FuzzRecord(TypedDict):
    """``emulator/fuzz.json``; ``hashes`` are of the GPU's words, by kind and seed."""

    date: str
    commit: str
    nvrtc: str
    device: Device
    kinds: dict[str, FuzzKind]
    hashes: dict[str, dict[str, str]]


class TensorForm(TypedDict):
    """Sums of one kind of matrix product, and the number of them that have other bits on the emulator."""

    sums: int
    different: int


class TensorRecord(TypedDict):
    """``emulator/tensor.json``; ``forms`` by their names in ``validation.tensor_products.forms``."""

    date: str
    commit: str
    nvrtc: str
    device: Device
    seed: int
    forms: dict[str, TensorForm]


class DivergenceRecord(TypedDict):
    """``profiles/divergence.json``; ``cubins`` are hashes of the machine code by label."""

    date: str
    tool: str
    device: Device
    nvrtc: str
    metrics: dict[str, str]
    cubins: dict[str, str]
    counts: dict[str, dict[str, float]]
