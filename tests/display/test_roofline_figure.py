"""The roofline: dots at the intensity and rate of rungs, below roofs that were measured."""

from __future__ import annotations

import numpy as np
import pytest
from tools.samples import CEILINGS, made_up, texts

from climb.bench.records import load_record
from climb.bench.units import significant
from climb.display import style
from climb.display.figures import alt_text, roofline_figure
from climb.display.selection import select


def test_roofline_has_its_ridge_where_the_ceilings_meet():
    figure = roofline_figure(made_up("matmul", flops=4000))
    assert f"ridge {significant(60e12 / 4000e9, 2)}" in texts(figure)
    dots = [line for line in figure.axes[0].lines if len(line.get_xdata()) == 1]
    heights = [float(d.get_ydata()[0]) for d in dots if float(d.get_xdata()[0]) == pytest.approx(500)]
    assert heights == pytest.approx([4000 * 16384**2 / t for t in (3e-3, 1e-3, 6e-4)])


def test_every_dot_of_a_committed_record_stands_at_its_intensity_and_rate():
    """The dots of `matmul`, and of another ladder beside them the best one; the roof is what was measured."""
    record, other = load_record("matmul"), load_record("fma")
    chosen, beside = select(record), select(other)
    axes = roofline_figure(record, also=[other]).axes[0]
    dots = [line for line in axes.lines if len(line.get_xdata()) == 1]
    ridge, *dots = [(float(d.get_xdata()[0]), float(d.get_ydata()[0])) for d in dots]
    expected = [(p.flops / p.bytes, p.flops / p.median_s) for p in (*chosen.rungs, beside.best)]
    assert len(dots) == len(chosen.rungs) + 1
    assert np.array(dots) == pytest.approx(np.array(expected))
    bandwidth, peak = record.ceilings["copy_gb_s"] * 1e9, record.ceilings["fma_tflop_s"] * 1e12
    assert ridge == pytest.approx((peak / bandwidth, peak))
    (roof,) = (line for line in axes.lines if len(line.get_xdata()) == 3)
    x, y = np.array(roof.get_xdata()), np.array(roof.get_ydata())
    assert y == pytest.approx(np.minimum(x * bandwidth, peak))


def test_dot_on_the_roof_has_its_name_no_higher_than_the_roof():
    peak = 60e12
    record = made_up("matmul", rungs=(("naive", 1.0), ("best", 4000 * 16384**2 / peak)), flops=4000)
    axes = roofline_figure(record).axes[0]
    heights = {t.get_text(): t.xy[1] for t in axes.texts if t.get_text() in record.ladder.names}
    roof = (axes.transData + axes.transAxes.inverted()).transform((1.0, peak))[1]
    assert heights["naive"] < heights["best"] <= roof + 1e-9
    assert {t.get_text(): t.get_color() for t in axes.texts}["best"] == style.BEST


def test_roofline_names_other_ladders_with_their_best_rung():
    other = made_up("fma", rungs=(("one", 1e-2), ("two", 1e-3)), flops=2000)
    shown = texts(roofline_figure(made_up("matmul", flops=4000), also=[other]))
    assert "fma: two" in shown and not any("one" in t for t in shown)


def test_roofline_has_roofs_of_other_pipes():
    record = made_up("matmul", flops=4000, ceilings={**CEILINGS, "issue_ginst_s": 1000.0, "int32_top_s": 33.0})
    figure = roofline_figure(record, pipes=["single", "issue", "int32"])
    # Half of 60 TFLOP/s; 1000 G instructions of 32 lanes with two operations each; and the integers' own.
    shown = {text.replace("\n", " ") for text in texts(figure)}
    assert {"single operations, 30.0 T", "issue slots, 64.0 T", "integer multiply-adds, 33.0 T"} <= shown
    assert "Another roof: issue slots, 64.0 TFLOP/s." in alt_text(figure)
    with pytest.raises(ValueError, match="the roof of 'tensor_tf32' needs the ceiling tensor_tf32_tflop_s"):
        roofline_figure(record, pipes=["tensor_tf32"])


def test_roofline_refuses_a_problem_without_flops_and_a_record_without_ceilings():
    with pytest.raises(ValueError, match="transpose counts no FLOPs"):
        roofline_figure(made_up())
    with pytest.raises(ValueError, match="needs the ceiling copy_gb_s"):
        roofline_figure(made_up(flops=1, ceilings={"fma_tflop_s": 60.0}))
