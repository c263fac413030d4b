"""The figures of the book: ladder, time against error, overview, roofline, sweep, access picture, and more.

Each function returns a matplotlib figure in the book's style, which a notebook shows as SVG. ``alt_text(figure)``
describes it in words. ``climb figures`` draws the pictures of the README and the front page.
"""

from __future__ import annotations

from pathlib import Path

from climb.bench.records import DEFAULT_GPU, Record, find_record, load_record
from climb.bench.registry import ladder_names, load_ladder
from climb.display.access_figure import access_figure
from climb.display.error_figure import error_figure
from climb.display.fragments_figure import fragments_figure
from climb.display.ladder_figure import ladder_figure
from climb.display.lanes_figure import lanes_figure
from climb.display.launch_figure import launch_figure
from climb.display.overview_figure import overview_figure
from climb.display.palette import palette_css
from climb.display.ring_figure import ring_figure
from climb.display.roofline_figure import roofline_figure
from climb.display.shared_figures import messages_figure, timeline_figure
from climb.display.social_picture import draw_social_picture
from climb.display.spans_figure import spans_figure
from climb.display.stalls_figure import stalls_figure
from climb.display.steps_figure import steps_figure, warp_steps
from climb.display.style import alt_text, save, svg
from climb.display.sweep_figure import sweep_figure
from climb.display.themes import save_twins
from climb.display.two_gpus_figure import two_gpus_figure

#: The folder with the pictures of the README and the front page.
PICTURES = Path(__file__).resolve().parents[2] / "book" / "_static"

__all__ = [
    "access_figure",
    "alt_text",
    "compared",
    "error_figure",
    "fragments_figure",
    "ladder_figure",
    "lanes_figure",
    "launch_figure",
    "messages_figure",
    "overview_figure",
    "ring_figure",
    "roofline_figure",
    "save",
    "spans_figure",
    "stalls_figure",
    "steps_figure",
    "sweep_figure",
    "timeline_figure",
    "two_gpus_figure",
    "warp_steps",
]


def compared(gpu: str = DEFAULT_GPU) -> tuple[Record, ...]:
    """Return the records of the ladders that have more than one rung and a peer, a vendor's library.

    A ladder that this GPU has not measured yet is left out; the report lists it as pending.
    """
    ladders = [ladder for ladder in map(load_ladder, ladder_names()) if len(ladder.names) > 1 and ladder.peers]
    return tuple(record for ladder in ladders if (record := find_record(ladder.name, gpu)) is not None)


def draw_readme_pictures(folder: Path) -> list[Path]:
    """Draw the transpose ladder, the overview and the social picture from the committed records into ``folder``.

    Returns the files. Ladder and overview have a twin for dark pages, ``NAME-dark.svg``. The palette is written beside
    them as ``palette.css``.
    """
    colours = folder / "palette.css"
    colours.write_text(palette_css(), encoding="utf-8", newline="\n")
    transpose = load_record("transpose")
    ladder = save_twins(svg(ladder_figure(transpose)), folder / "ladder-transpose.svg")
    overview = save_twins(svg(overview_figure(compared())), folder / "overview.svg")
    return [*ladder, *overview, draw_social_picture(transpose, folder / "social.png"), colours]
