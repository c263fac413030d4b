"""Compiling ahead lists exactly the modules that measuring asks CuPy for."""

from __future__ import annotations

import io
import json
import sys
from types import SimpleNamespace

import pytest
from tiny_ladder import scale
from tools.nvbench_double import nvbench_double  # noqa: F401

from climb.bench import compile_ahead, ladder, measure
from climb.bench.measure import Sampling

TINY = "tiny_ladder.scale"


def test_modules_compiled_ahead_are_those_that_measuring_makes(nvbench, tmp_path, monkeypatch):
    asked = []
    make = ladder.make_module

    def noted(path, options, names):
        asked.append(compile_ahead.Program(str(path), tuple(options), tuple(names)))
        return make(path, options, names)

    monkeypatch.setattr(ladder, "make_module", noted)
    scale.ladder.modules.clear()
    targets = measure.targets_of(scale.ladder, TINY)
    measure.run(targets, Sampling(), keep=tmp_path)
    assert compile_ahead.programs(targets) == list(dict.fromkeys(asked)), "the library's kernel is that of a rung"
    assert len(set(asked)) == 3


@pytest.mark.emulated
def test_nothing_is_compiled_ahead_without_a_gpu(monkeypatch):
    monkeypatch.setattr(compile_ahead, "programs", lambda targets: 1 / 0)
    compile_ahead.compile_ahead([])


def test_a_module_that_was_made_is_told_before_the_next_one_which_may_end_the_process(monkeypatch):
    told, raw = [], io.BytesIO()

    def make(path, options, names):
        told.append(raw.getvalue().decode())
        return SimpleNamespace(compile=(lambda: None) if path.name != "wrong.cu" else (lambda: 1 / 0))

    monkeypatch.setattr(compile_ahead, "make_module", make)
    monkeypatch.setattr(
        sys, "stdin", io.StringIO(json.dumps([[name, [], []] for name in ("a.cu", "wrong.cu", "b.cu")]))
    )
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw))
    assert compile_ahead.main() == 0
    assert told == ["", "1\n", "1\n"] and raw.getvalue() == b"1\n1\n"
