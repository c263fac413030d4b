"""The findings of the chapters: each chapter that finds something about GPUs shows where its findings hold."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from tools import notebooks

from climb import paths
from climb.bench import records
from climb.bench.hardware import gpu_slug
from climb.bench.records import RecordError
from climb.display.where_it_holds import Finding, read_findings, where_it_holds

BOOK = paths.ROOT / "book"


#: Chapters of the parts Start and Back that find something about GPUs; the others of these parts explain or list.
OTHERS = ("light-speed", "profiling")


def chapters_with_findings(*parts: str) -> list[str]:
    """The chapters of the parts; by default every chapter that has to have findings."""
    listed = yaml.safe_load((paths.ROOT / "_toc.yml").read_text(encoding="utf-8"))["parts"]
    wanted = parts or ("Techniques", "Worklogs", "Hopper", "Beyond")
    found = [Path(c["file"]).name for p in listed if p["caption"] in wanted for c in p["chapters"]]
    return found if parts else [*found, *OTHERS]


@pytest.mark.parametrize("chapter", chapters_with_findings())
def test_chapter_shows_where_its_findings_hold_before_its_last_section(chapter: str) -> None:
    cells = notebooks.read(BOOK / f"{chapter}.ipynb").cells
    shown = [at for at, cell in enumerate(cells) if f'where_it_holds("{chapter}")' in cell.source]
    assert len(shown) == 1 and chapter in read_findings(), "mark its findings in findings.toml"
    (at,) = shown
    assert "## Where this holds" in cells[at - 1].source
    rest = [cell.source for cell in cells[at + 1 :] if cell.source.startswith("## ")]
    assert [heading.splitlines()[0] for heading in rest] == ["## Three lines to remember"]


@pytest.mark.parametrize("chapter", chapters_with_findings("Techniques", "Worklogs"))
def test_chapter_compares_its_kernels_on_two_gpus_after_its_findings(chapter: str) -> None:
    """The expectation stands in the text before the table, whether or not the second GPU has a record.

    A chapter that shows no ladder's times, such as the stub of a new one, has nothing to compare.
    """
    cells = notebooks.read(BOOK / f"{chapter}.ipynb").cells
    if not any("timings(" in cell.source for cell in cells if cell.cell_type == "code"):
        return
    shown = [at for at, cell in enumerate(cells) if "two_gpus_table(" in cell.source]
    assert len(shown) == 1, "show two_gpus_table once, below the findings: ARCHITECTURE.md, A chapter, step 8"
    (at,) = shown
    assert f'where_it_holds("{chapter}")' in cells[at - 2].source
    assert "Written before we measured: " in cells[at - 1].source


def test_findings_belong_to_chapters_and_name_gpus_with_records() -> None:
    found = read_findings()
    assert set(found) == set(chapters_with_findings())
    folders = {folder.name for folder in records.RECORDS.iterdir() if folder.is_dir()}
    for findings in found.values():
        assert 3 <= len(findings) <= 6
        assert {gpu_slug(gpu) for finding in findings for gpu in finding.seen_on} <= folders
        assert all(text[0].isupper() or text[0].isdigit() or "async" in text for f in findings for text in (f.finding,))
        assert all(f.finding.endswith(".") and f.why.endswith(".") for f in findings)


@pytest.mark.parametrize(
    ("fields", "where"),
    [
        ({"holds": "general"}, "any GPU"),
        ({"holds": "since", "since": "7.0"}, "since sm_70"),
        ({"holds": "seen", "seen_on": ("NVIDIA H200", "Other GPU")}, "seen on NVIDIA H200, Other GPU"),
    ],
)
def test_mark_in_words(fields: dict[str, object], where: str) -> None:
    assert Finding(finding="It is so.", why="A law.", **fields).where == where


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ('holds = "since"', "since"),
        ('holds = "seen"', "seen_on"),
        ('holds = "general"\nsince = "7.0"', "since"),
        ('holds = "general"\nseen_on = ["NVIDIA H200"]', "seen_on"),
        ('holds = "often"', "often"),
        ('holds = "general"\nsinse = "7.0"', "sinse"),
    ],
)
def test_wrong_finding_is_refused(tmp_path: Path, row: str, message: str) -> None:
    path = tmp_path / "findings.toml"
    path.write_text(f'[[float4]]\nfinding = "It is so."\nwhy = "A law."\n{row}\n', encoding="utf-8")
    with pytest.raises(RecordError, match=message):
        read_findings(path)


def test_chapter_without_findings_is_named() -> None:
    with pytest.raises(KeyError, match="intro"):
        where_it_holds("intro")
