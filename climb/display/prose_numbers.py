"""Numbers for prose: a chapter publishes its computed values, and its text pastes them in."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np

from climb.bench.units import significant

#: MyST-NB's mark of an output that is not shown but pasted into prose.
_RECORD = "application/papermill.record/"


def say(**values: Any) -> None:
    """Publish values for prose: ``say(speedup="2.1")`` makes ``{glue:text}`speedup` `` read 2.1.

    Text and whole numbers stay as they are, and a float is rounded to three significant digits; for another format,
    give text or use :func:`number`. The values are also printed, so that they can be read in a notebook; tag the cell
    ``remove-cell`` or ``remove-output`` to keep them out of the page. Raises TypeError for a value that is neither a
    number nor text, ValueError for a number that is not finite and for text that prose cannot hold.

    >>> say(ratio=timings("transpose").ratio("padded", "tiled"), sectors=32)                # doctest: +SKIP
    """
    texts = {name: _spelled(name, value) for name, value in values.items()}
    print("\n".join(f"{name} = {text}" for name, text in texts.items()))
    for name, text in texts.items():
        _publish(name, text)


def number(name: str, value: float, format: str = ".3g") -> None:
    """Publish one number under ``name`` in a format of Python's format strings; see :func:`say`. Raises ValueError.

    >>> number("speedup", 2.1347, ".2f")                                                    # doctest: +SKIP
    """
    if not re.fullmatch(r"[A-Za-z][\w-]*", name):
        raise ValueError(f"'{name}' cannot be pasted into prose: use letters, digits, - and _, a letter first")
    if not math.isfinite(value):
        raise ValueError(f"{name} is {value}; expected a finite number")
    say(**{name: f"{value:{format}}"})


def _spelled(name: str, value: Any) -> str:
    if isinstance(value, str):
        if not value.strip() or value[0] in "'\"" or "\n" in value:
            raise ValueError(f"{name} is {value!r}: prose takes one line of text that does not start with a quote")
        if re.fullmatch(r"\d+(,\d+)+", value):
            raise ValueError(f"{name} is {value!r}: MyST-NB reads a tuple; separate thousands by a space")
        return value
    if isinstance(value, (int, np.integer)) and not isinstance(value, bool):
        return str(int(value))
    if not isinstance(value, (float, np.floating)):
        raise TypeError(f"{name} is a {type(value).__name__}; expected a number or text")
    if not math.isfinite(value):
        raise ValueError(f"{name} is {value}; expected a finite number")
    return significant(float(value))


def _publish(name: str, text: str) -> None:
    try:
        from IPython import get_ipython
        from IPython.display import display
    except ImportError:
        return
    if get_ipython() is None:
        return
    metadata = {"scrapbook": {"name": name, "mime_prefix": _RECORD}}
    display({f"{_RECORD}text/plain": kept_together(text)}, raw=True, metadata=metadata)


def kept_together(text: str) -> str:
    """Join a number and its unit with a no-break space, so that prose keeps them on one line."""
    return re.sub(r"(?<=\d) (?=\S+$)", "\u00a0", text)
