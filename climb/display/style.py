"""The style of all figures: colours, sizes, and SVG that is byte-identical on every machine.

One colour has one meaning in the whole book, which ``palette.py`` states: blue is the best rung, or the rung under
discussion where a ladder ends at ``upto``; orange-brown is the vendor's library, green the limit, grey every other
rung, pink what the reader's own GPU was measured at. Lines of equal rank, which are none of these, take ``SERIES``.

Figures are made without pyplot, so they depend on no display, backend or global state. Text becomes paths of
matplotlib's own font, ids come from a fixed salt, and date and creator are left out: with the locked matplotlib the
file has the same bytes everywhere.
"""

from __future__ import annotations

import contextlib
import functools
import io
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ParamSpec

import matplotlib
from matplotlib import font_manager
from matplotlib.figure import Figure

from climb.display.palette import PALETTE

# Settings of the reader's session, which do not affect how a figure looks.
_SESSION = (
    "backend",
    "interactive",
    "toolbar",
    "timezone",
    "webagg",
    "tk",
    "savefig.directory",
    "figure.max_open",
)
_STYLE = {
    key: value
    for key, value in matplotlib.rc_params_from_file(Path(__file__).with_name("worklog.mplstyle")).items()
    if not key.startswith(_SESSION)
}

#: Metadata that would differ from run to run or from version to version.
SVG_METADATA: dict[str, None] = {"Date": None, "Creator": None}

# The palette's colours on a light page; its docstring gives the meaning of each.
BEST = PALETTE["best"].light
PEER = PALETTE["peer"].light
LIMIT = PALETTE["limit"].light
YOURS = PALETTE["yours"].light
MUTED = PALETTE["muted"].light
FAINT = PALETTE["faint"].light
TEXT = PALETTE["text"].light
QUIET = PALETTE["quiet"].light
WASTE = PALETTE["waste"].light
GRID = PALETTE["grid"].light
GROUND = PALETTE["ground"].light
#: Lane 0 to lane 31.
LANES: tuple[str, ...] = tuple(PALETTE[f"lane-{i}"].light for i in range(32))
#: Colours of series of equal rank, in order; the markers tell them apart without colour.
SERIES: tuple[str, ...] = tuple(PALETTE[name].light for name in ("violet", "olive", "text", "quiet", "lilac", "olive"))
#: Dashes of the same series: where two hues are similar, the dashes differ.
DASHES: tuple[Any, ...] = ("-", "-", "-", (0, (5, 2)), (0, (1.5, 1.5)), (0, (5, 2)))
MARKERS: tuple[str, ...] = ("o", "s", "^", "D", "v", "P")

#: The first words of the names of peers: libraries, and Triton.
_VENDORS = (
    "cuBLAS", "cuBLASLt", "cuDNN", "cuFFT", "cuSPARSE", "cuSPARSELt", "cuTENSOR", "CUB", "CUTLASS", "CuPy", "NPP",
    "PyTorch", "torch.compile", "Triton", "driver", "nn.Conv3d",
)  # fmt: skip
#: Words for work before a call to a library; "im2col" and "batched" alone are names of rungs.
_BEFORE = ("im2col + cu", "batched cu")


def is_peer(name: str) -> bool:
    """Return whether this is the name of a peer, a vendor's library, which is drawn in its own colour everywhere."""
    return name.split(" ")[0] in _VENDORS or name.startswith(_BEFORE)


#: Inches: text of 11 points stays above 9 pixels if a phone shows the figure 340 pixels wide.
WIDTH = 5.2

P = ParamSpec("P")


@functools.cache
def _own_fonts() -> list[font_manager.FontEntry]:
    """Return the fonts that come with matplotlib, read from its folder: its list of fonts is kept between processes,
    and reflects the machine at the time when it was made."""
    files = sorted((Path(matplotlib.get_data_path()) / "fonts" / "ttf").glob("DejaVu*.ttf"))
    return [font_manager.ttfFontProperty(font_manager.get_font(file)) for file in files]


@contextlib.contextmanager
def _book_style() -> Iterator[None]:
    """Use the book's settings, and only matplotlib's own fonts: the machine may have others of the same name, whose
    glyphs have other numbers. The reader's settings are restored afterwards."""
    manager = font_manager.fontManager
    found, manager.ttflist = manager.ttflist, _own_fonts()
    manager._findfont_cached.cache_clear()
    try:
        with matplotlib.rc_context(_STYLE):
            yield
    finally:
        manager.ttflist = found
        manager._findfont_cached.cache_clear()


def styled(draw: Callable[P, Figure]) -> Callable[P, Figure]:
    """Decorate a drawing function to run under the book's style, whatever the reader's settings."""

    @functools.wraps(draw)
    def drawn(*args: P.args, **kwargs: P.kwargs) -> Figure:
        with _book_style():
            return draw(*args, **kwargs)

    return drawn


def new_figure(width: float = WIDTH, height: float = 3.3) -> Figure:
    """Make an empty figure of ``width`` by ``height`` inches that needs no display."""
    return Figure(figsize=(width, height), layout="constrained")


def svg(figure: Figure) -> str:
    """Return the figure as SVG text, the same for the same data on every machine with the locked matplotlib."""
    with _book_style():
        buffer = io.BytesIO()
        figure.savefig(buffer, format="svg", metadata=SVG_METADATA)
    return buffer.getvalue().decode("utf-8")


def save(figure: Figure, path: str | Path) -> Path:
    """Write a figure: ``.svg`` with the same bytes every time, other formats as matplotlib does. Returns the path."""
    path = Path(path)
    if path.suffix == ".svg":
        path.write_text(svg(figure), encoding="utf-8", newline="\n")
    else:
        with _book_style():
            figure.savefig(path, dpi=150)
    return path


def set_alt(figure: Figure, text: str) -> Figure:
    """Attach alt text to a figure, which :func:`alt_text` returns. Returns the figure."""
    figure.set_label(text)
    return figure


def alt_text(figure: Figure) -> str:
    """Return the alt text of a figure: its content, in words. Empty for a figure from elsewhere."""
    return str(figure.get_label() or "")


def use_in_notebook() -> bool:
    """Show figures as SVG in this notebook. Returns False, and does nothing, outside IPython.

    Replaces every formatter of ``Figure`` by :func:`svg`, and sets the inline backend accordingly for figures that a
    reader draws with pyplot.
    """
    try:
        from IPython import get_ipython
    except ImportError:
        return False
    shell: Any = get_ipython()
    if shell is None:
        return False
    try:
        from matplotlib_inline.config import InlineBackend

        config = InlineBackend.instance(parent=shell)
        config.print_figure_kwargs = {"metadata": SVG_METADATA, "bbox_inches": None}
        config.figure_formats = {"svg"}
    except ImportError:
        pass
    for formatter in shell.display_formatter.formatters.values():
        formatter.pop(Figure, None)
    shell.display_formatter.formatters["image/svg+xml"].for_type(Figure, svg)
    return True
