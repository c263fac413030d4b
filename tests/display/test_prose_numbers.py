"""Numbers for prose: published once, pasted by the book, and the same in every run."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import nbformat
import numpy as np
import pytest
from nbformat.v4 import new_code_cell, new_notebook
from tools.samples import text_of

from climb.display.prose_numbers import kept_together, number, say

ROOT = Path(__file__).resolve().parents[2]


def test_say_prints_what_it_publishes(capsys):
    say(ratio=2.13456, sectors=32, text="it's 4 µs", wide=np.float64(1234.5), count=np.int32(7))
    assert capsys.readouterr().out.split("\n")[:-1] == [
        "ratio = 2.13",
        "sectors = 32",
        "text = it's 4 µs",
        "wide = 1230",
        "count = 7",
    ]
    number("fine", 1.23456, ".2f")
    assert capsys.readouterr().out == "fine = 1.23\n"


@pytest.mark.parametrize("value", ["", "  ", "'quoted'", "two\nlines"])
def test_say_refuses_text_that_prose_cannot_hold(value):
    with pytest.raises(ValueError, match="prose takes one line"):
        say(x=value)


def test_say_refuses_thousands_with_a_comma_which_prose_would_show_as_a_tuple(capsys):
    with pytest.raises(ValueError, match="reads a tuple"):
        say(x="24,837")
    say(x="24 837", rungs="naive, tiled")
    assert "24 837" in capsys.readouterr().out


@pytest.mark.parametrize("value", [None, True, [1], float])
def test_say_refuses_what_is_neither_number_nor_text(value):
    with pytest.raises(TypeError, match="expected a number or text"):
        say(x=value)


def test_say_refuses_a_number_that_is_not_finite():
    for value in (float("nan"), float("inf")):
        with pytest.raises(ValueError, match="finite"):
            say(x=value)


def test_number_refuses_a_name_that_a_role_cannot_hold():
    with pytest.raises(ValueError, match="cannot be pasted"):
        number("a b", 1)


@pytest.fixture(scope="module")
def executed(tmp_path_factory):
    """A notebook that says numbers and draws, executed twice in fresh kernels, as nbval would."""
    from nbconvert.preprocessors import ExecutePreprocessor

    code = [
        "import sys; sys.path[:0] = ['.', 'tests']\nfrom tools.samples import made_up\nfrom climb import *",
        "say(ratio=2.13456, sectors=32)",
        "ladder_figure(made_up())",
    ]
    done = []
    for _ in range(2):
        notebook = new_notebook(cells=[new_code_cell(c, id=f"c{i}") for i, c in enumerate(code)])
        ExecutePreprocessor(timeout=120, record_timing=False).preprocess(notebook, {"metadata": {"path": str(ROOT)}})
        done.append(notebook)
    return done


def test_notebook_gets_glue_outputs_and_svg_figures_and_no_png(executed):
    said, drawn = executed[0].cells[1].outputs, executed[0].cells[2].outputs
    assert said[0].text == "ratio = 2.13\nsectors = 32\n"
    assert [o.data for o in said[1:]] == [
        {"application/papermill.record/text/plain": "2.13"},
        {"application/papermill.record/text/plain": "32"},
    ]
    assert [o.metadata["scrapbook"] for o in said[1:]] == [
        {"name": name, "mime_prefix": "application/papermill.record/"} for name in ("ratio", "sectors")
    ]
    assert set(drawn[0].data) == {"image/svg+xml", "text/plain"} and len(drawn) == 1


def test_notebook_executed_twice_has_the_same_outputs(executed):
    first, second = ([c.outputs for c in notebook.cells] for notebook in executed)
    assert first == second


def test_prose_pastes_numbers_and_a_missing_one_fails_the_build(executed, tmp_path):
    """A book of two pages is built with -W: one is complete, and one uses a name that no cell has defined."""
    from nbformat.v4 import new_markdown_cell

    toc = "format: jb-book\nroot: whole\nchapters: [{file: missing}]\n"
    (tmp_path / "_toc.yml").write_text(toc, encoding="utf-8")
    (tmp_path / "_config.yml").write_text("execute: {execute_notebooks: 'off'}\nlogo: ''\n", encoding="utf-8")

    said = executed[0].cells[1].copy()
    said.metadata = {"tags": ["remove-cell"]}
    for name, prose in (
        ("whole", "It is {glue:text}`ratio` times, {glue:text}`sectors` sectors."),
        ("missing", "It is {glue:text}`nobody` times."),
    ):
        page = new_notebook(cells=[new_markdown_cell("# Page", id="a"), said, new_markdown_cell(prose, id="b")])
        page.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
        nbformat.write(page, tmp_path / f"{name}.ipynb")
    main = "from jupyter_book.cli.main import main; main()"
    command = [sys.executable, "-c", main, "build", "-W", "-n", "--keep-going", "--all", str(tmp_path)]
    plain = {**os.environ, "NO_COLOR": "1"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=plain)
    warned = [line for line in (done.stdout + done.stderr).splitlines() if "WARNING" in line or "ERROR" in line]
    assert done.returncode != 0 and len(warned) == 1, done.stdout + done.stderr
    assert "missing.ipynb" in warned[0] and "No key 'nobody' found" in warned[0]
    html = (tmp_path / "_build" / "html" / "whole.html").read_text(encoding="utf-8")
    assert "It is 2.13 times, 32 sectors." in text_of(html)
    assert "ratio = 2.13" not in text_of(html)


def test_number_and_unit_are_joined_by_a_no_break_space():
    assert kept_together("17 %") == "17\u00a0%"
    assert kept_together("4.28 TB/s") == "4.28\u00a0TB/s"
    assert kept_together("NVIDIA H200") == "NVIDIA H200"
    assert kept_together("3 of 4 lanes") == "3 of 4\u00a0lanes"
