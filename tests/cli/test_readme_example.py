"""The example of README.md: the command prints what README.md shows, and the test fails as it says."""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path

import numpy as np
import pytest

from climb.cli import main
from climb.emulator import expect, run

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"
SECTION = re.compile(r"^## Your own kernels.*?(?=^## )", re.MULTILINE | re.DOTALL)
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(language: str) -> list[str]:
    """The fenced blocks of a language in the section, in order."""
    section = SECTION.search(README.read_text(encoding="utf-8"))[0]
    return [text for name, text in BLOCK.findall(section) if name == language]


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The command of the section, in a folder with its files."""
    monkeypatch.chdir(tmp_path)
    Path("softmax.cu").write_text(blocks("cuda")[0], encoding="utf-8")
    section = SECTION.search(README.read_text(encoding="utf-8"))[0]
    return shlex.split(
        re.search(r"^    climb (emulate softmax\.cu(?:.*\\\n)*.*)$", section, re.MULTILINE)[1].replace("\\\n", "")
    )


def mend() -> None:
    Path("softmax.cu").write_text(blocks("cuda")[0].replace("row > rows", "row >= rows"), encoding="utf-8")


def shown_equals(number: int, text: str) -> None:
    """The block of the section shows the text. With WRITE_README=1 it is written there."""
    if os.environ.get("WRITE_README"):
        readme, section = README.read_text(encoding="utf-8"), SECTION.search(README.read_text(encoding="utf-8"))[0]
        old = [found for found in BLOCK.finditer(section) if found[1] == "text"][number]
        new = section[: old.start(2)] + text + section[old.end(2) :]
        README.write_text(readme.replace(section, new), encoding="utf-8")
    assert blocks("text")[number] == text


def test_mistake_is_found_as_the_readme_shows(command: list[str], capsys: pytest.CaptureFixture) -> None:
    assert main(command) == 3
    shown_equals(0, capsys.readouterr().err)


def test_cost_is_shown_as_the_readme_shows(command: list[str], capsys: pytest.CaptureFixture) -> None:
    mend()
    assert main([*command, "--show", "4"]) == 0
    table = capsys.readouterr().out.partition("\nx (float32")[0]
    shown_equals(1, f"{table}\n")


@pytest.mark.usefixtures("command")
def test_expectation_fails_as_the_readme_shows() -> None:
    mend()
    names = {"np": np, "expect": expect, "run": run}
    exec(blocks("python")[0], names)
    with pytest.raises(AssertionError) as failed:
        names["test_softmax"]()
    shown_equals(2, f"{failed.value}\n")
