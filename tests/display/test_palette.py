"""The colours: readable on both grounds, distinct, and the same in CSS."""

from __future__ import annotations

from pathlib import Path

import pytest

from climb.display.palette import PALETTE, contrast, palette_css

STATIC = Path(__file__).resolve().parents[2] / "book" / "_static"
LEAST = {"text": 4.5, "mark": 3.0, "area": 1.0}
# The page, and the panels of admonitions, exercises and cards on it.
GROUNDS = {"light": ("#ffffff", "#f4f7fa"), "dark": ("#121212", "#1c2229")}


@pytest.mark.parametrize("name", PALETTE)
def test_colour_has_the_contrast_that_its_use_needs_on_both_pages(name):
    colour = PALETTE[name]
    assert contrast(colour.light, GROUNDS["light"][0]) >= LEAST[colour.use]
    assert all(contrast(colour.dark, ground) >= LEAST[colour.use] for ground in GROUNDS["dark"])
    if colour.use == "text":
        assert contrast(colour.light, GROUNDS["light"][1]) >= LEAST["text"]


def test_contrast_is_that_of_wcag():
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)


def test_no_light_colour_stands_for_two_entries():
    lights = [colour.light for colour in PALETTE.values()]
    assert len(set(lights)) == len(lights)


def test_committed_css_defines_the_palette():
    written = (STATIC / "palette.css").read_text(encoding="utf-8")
    assert written == palette_css(), "book/_static/palette.css is not the palette's; run: climb figures"
    for colour in PALETTE.values():
        assert f"--rl-{colour.name}: {colour.light};" in written and f"--rl-{colour.name}: {colour.dark};" in written
