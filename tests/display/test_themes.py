"""Twins of figures for light and dark pages: every colour has its counterpart, and the ground is the page's."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tools.samples import BASE, LANES, access, made_up

from climb.display import style
from climb.display.figures import access_figure, ladder_figure, lanes_figure, roofline_figure, sweep_figure
from climb.display.palette import PALETTE
from climb.display.themes import UnknownColour, dark_twin, page_twins, save_twins, size_in_pixels

ROOT = Path(__file__).resolve().parents[2]


def committed_svgs() -> list[tuple[str, str]]:
    """The name of the cell and the text of every SVG in the chapters' outputs."""
    found = []
    for path in sorted((ROOT / "book").glob("*.ipynb")):
        for n, cell in enumerate(json.loads(path.read_text(encoding="utf-8"))["cells"]):
            for output in cell.get("outputs", []):
                if svg := output.get("data", {}).get("image/svg+xml"):
                    found.append((f"{path.name}, cell {n}", "".join(svg)))
    return found


def test_every_colour_of_every_figure_in_the_book_has_a_dark_counterpart():
    svgs = committed_svgs()
    assert len(svgs) > 50
    unknown = []
    for name, svg in svgs:
        try:
            light, dark = page_twins(svg, name)
        except UnknownColour as problem:
            unknown.append(str(problem))
            continue
        assert light != dark
        assert PALETTE["text"].light not in dark and PALETTE["text"].dark in dark
    assert unknown == []


def test_figures_drawn_now_have_twins_on_a_transparent_ground():
    reference, mine = made_up(), made_up(rungs=(("naive", 6e-3), ("tiled", 2e-3), ("padded", 1e-3)))
    both = type("Both", (), {"ladder": reference.ladder, "regime": "cold", "reference": reference, "mine": mine})
    series = {f"line {i}": [i + 1, i + 2] for i in range(len(style.SERIES))}
    for figure in (
        ladder_figure(both), access_figure(access(BASE + 128 * LANES)), roofline_figure(made_up(flops=4000)),
        sweep_figure([1, 2], series, xlabel="x", ylabel="y", lines={"limit": 3}), lanes_figure({"a": range(32)}),
    ):  # fmt: skip
        width, height = figure.get_size_inches() * 96
        svg = style.svg(figure)
        assert size_in_pixels(svg) == (round(width), round(height))
        light, dark = page_twins(svg)
        assert 'id="patch_1"' in svg and 'id="patch_1"' not in light and 'id="patch_1"' not in dark
        assert len(light) < len(svg)


def test_colour_outside_the_palette_is_refused_by_name():
    with pytest.raises(UnknownColour, match=r"a\.svg has #123456, red, which .*palette\.py does not know"):
        dark_twin('<path style="fill: #123456; stroke:#1f2933"/><path stroke="red" fill="none"/>', "a.svg")


def test_colours_are_exchanged_wherever_a_picture_may_have_them():
    text, ground = PALETTE["text"], PALETTE["ground"]
    svg = (
        f'<use xlink:href="#abcdef"/><g style="fill: #FFF; stroke:{text.light.upper()}; fill-opacity: 0.5" '
        f'fill="white" clip-path="url(#ffffff)"/>'
    )
    assert dark_twin(svg) == (
        f'<use xlink:href="#abcdef"/><g style="fill: {ground.dark}; stroke:{text.dark}; fill-opacity: 0.5" '
        f'fill="{ground.dark}" clip-path="url(#ffffff)"/>'
    )


def test_light_twin_keeps_the_shapes_and_drops_what_a_browser_needs_not():
    svg = (
        '<?xml version="1.0"?>\n<svg width="3pt" height="6pt"><metadata>x</metadata><!-- naive -->\n'
        '<g id="patch_1">\n<path d="M 0 0 L 1.23456 -0.001 z " style="fill: #ffffff"/>\n</g>\n'
        '<path id="p" d="M 10.00001 0.125 L 7 8.999"/></svg>'
    )
    assert page_twins(svg)[0] == '<svg width="3pt" height="6pt">\n<path id="p" d="M 10 0.12 L 7 9"/></svg>\n'
    assert size_in_pixels(svg) == (4, 8)
    assert size_in_pixels('<svg viewBox="0 0 64 32">') == (64, 32) and size_in_pixels("<svg>") is None


def test_twins_are_written_beside_each_other(tmp_path):
    svg = f'<svg><path fill="{PALETTE["best"].light}"/></svg>'
    light, dark = save_twins(svg, tmp_path / "a.svg")
    assert (light.name, dark.name) == ("a.svg", "a-dark.svg")
    assert PALETTE["best"].light in light.read_text() and PALETTE["best"].dark in dark.read_text()
