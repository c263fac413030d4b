"""The range of a chapter's findings: `book/findings.toml`, and the table that each chapter shows of it."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

import msgspec

from climb import paths
from climb.bench.records import RecordError
from climb.bench.records.store import explained
from climb.display.cell_output import CellOutput, table

FINDINGS = paths.ROOT / "book" / "findings.toml"

Text = Annotated[str, msgspec.Meta(min_length=1)]


class Finding(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A finding of a chapter, in one sentence.

    ``holds`` is "general" if the reason does not depend on a GPU, "since" if it began with an architecture, whose
    compute capability ``since`` gives, and "seen" if we know it only from measurements, on the GPUs in ``seen_on``.
    ``why`` gives the reason, in one sentence.
    """

    finding: Text
    holds: Literal["general", "since", "seen"]
    why: Text
    since: str = ""
    seen_on: tuple[Text, ...] = ()

    def __post_init__(self) -> None:
        if (self.holds == "since") != bool(self.since):
            raise ValueError('`since` belongs to findings that hold "since" an architecture')
        if (self.holds == "seen") != bool(self.seen_on):
            raise ValueError('`seen_on` belongs to findings that were "seen"')

    @property
    def where(self) -> str:
        """The range in which it holds, in words: "any GPU", "since sm_70", "seen on NVIDIA H200"."""
        if self.holds == "general":
            return "any GPU"
        return f"since sm_{self.since.replace('.', '')}" if self.since else f"seen on {', '.join(self.seen_on)}"


def read_findings(path: Path = FINDINGS) -> dict[str, tuple[Finding, ...]]:
    """Read and check all findings, by chapter. Raises RecordError with the wrong field, FileNotFoundError."""
    try:
        return msgspec.toml.decode(path.read_bytes(), type=dict[str, tuple[Finding, ...]])
    except msgspec.MsgspecError as error:
        raise RecordError(f"{path}: {explained(error)}") from None


_findings = functools.cache(read_findings)


def where_it_holds(chapter: str) -> CellOutput:
    """Show the findings of a chapter and the range of each. Raises KeyError for a chapter without findings."""
    if chapter not in _findings():
        raise KeyError(f"{FINDINGS.name} has no chapter '{chapter}'; it has {', '.join(_findings())}")
    return findings_table(_findings()[chapter])


def findings_table(findings: Sequence[Finding]) -> CellOutput:
    """Show findings and the range of each."""
    rows = [[found.finding, found.where, found.why] for found in findings]
    return table(rows, ["what we found", "where it holds", "why"])
