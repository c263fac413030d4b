"""The destination of the lines of a long measurement: stderr, or a file."""

from __future__ import annotations

from pathlib import Path

import pytest

from climb.bench import progress


def test_lines_go_to_stderr(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.delenv(progress.VARIABLE, raising=False)
    progress.say("half")
    assert capsys.readouterr() == ("", "half\n")


def test_lines_go_to_the_end_of_the_file_that_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (file := tmp_path / "progress").write_text("earlier\n")
    monkeypatch.setenv(progress.VARIABLE, str(file))
    progress.say("half")
    progress.say("80 µs")
    assert file.read_text(encoding="utf-8") == "earlier\nhalf\n80 µs\n" and capsys.readouterr() == ("", "")
