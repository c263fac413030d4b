"""``climb check``: the exercise is found by kernel or file, hints are printed, and a terminal sees colours."""

from __future__ import annotations

import pytest

from climb.bench.registry import load_exercises
from climb.cli import check, main

FIELDS = load_exercises("coalescing")[0]


@pytest.mark.parametrize(
    ("name", "source", "status"),
    [
        ("mine.cu", FIELDS.solution, 0),
        ("fields.cu", FIELDS.skeleton, 1),
        ("fields.cu", "__global__ void other() {}", 1),
        ("mine.cu", FIELDS.skeleton.replace("squared[i] =", "squared[i] ="), 1),
    ],
)
def test_exercise_is_found_by_kernel_or_by_file_name(name, source, status, tmp_path, capsys):
    (tmp_path / name).write_text(source)
    assert main(["check", str(tmp_path / name)]) == status
    assert capsys.readouterr().out.endswith(f"fields: {'not yet' if status else 'solved'}\n")


def test_of_exercises_with_the_same_kernel_the_file_name_decides(tmp_path, capsys):
    kernel = {one.name: one for one in load_exercises("bank_conflicts")}["row_sums"]
    (tmp_path / "row_sums.cu").write_text(kernel.solution)
    assert main(["check", str(tmp_path / "row_sums.cu")]) == 0
    (tmp_path / "mine.cu").write_text(kernel.solution)
    assert main(["check", str(tmp_path / "mine.cu")]) == 2
    assert "may solve bank_conflicts/row_sums, coalescing/rows, conv1d/padding" in capsys.readouterr().err


@pytest.mark.parametrize("number", [1, 2])
def test_hints_are_printed_for_a_file_or_an_exercise(number, tmp_path, capsys):
    (tmp_path / "fields.cu").write_text(FIELDS.skeleton)
    assert main(["check", str(tmp_path / "fields.cu"), "--hint", str(number)]) == 0
    assert main(["check", "--exercise", "coalescing/fields", "--hint", str(number)]) == 0
    assert capsys.readouterr().out == 2 * f"{FIELDS.hints[number - 1]}\n"


def test_verdict_has_colours_on_a_terminal_alone(tmp_path, capsys, monkeypatch):
    (tmp_path / "rows.cu").write_text(load_exercises("coalescing")[1].skeleton)
    command = ["check", str(tmp_path / "rows.cu")]
    main(command)
    plain = capsys.readouterr().out
    assert "\033" not in plain and "right:   rows=1" in plain
    assert "not yet: global load: 31.2 sectors per request; asked: at most 4\n" in plain
    monkeypatch.setattr(check.sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.delenv("NO_COLOR", raising=False)
    main(command)
    coloured = capsys.readouterr().out
    assert "\033[33mnot yet:\033[0m global load: 31.2" in coloured and "\033[32mright:\033[0m" in coloured
    assert coloured.endswith("\033[1m\033[33mrows: not yet\033[0m\n")
    monkeypatch.setenv("NO_COLOR", "1")
    main(command)
    assert capsys.readouterr().out == plain
