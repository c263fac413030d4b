"""The texts that started this book, claim by claim, with our verdicts: `book/sources.toml` and the tables made from it.

The page of sources (``book/_extensions/claims.py``) shows every claim. A chapter shows its own with ``claims_table``
and cites a source's number with ``reported``, so that page and chapters cannot differ.
"""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path
from typing import Annotated, Literal, get_args

import msgspec

from climb import paths
from climb.bench.records import RecordError
from climb.bench.records.store import explained
from climb.display.cell_output import CellOutput, table

SOURCES = paths.ROOT / "book" / "sources.toml"

Verdict = Literal["right", "wrong", "depends", "untested"]
Text = Annotated[str, msgspec.Meta(min_length=1)]
#: The value of each unit in SI units; FLOPs and bytes count as one.
UNITS = {
    "s": 1.0, "ms": 1e-3, "µs": 1e-6, "ns": 1e-9, "%": 0.01, "x": 1.0, "": 1.0,
    "FLOP": 1.0, "MFLOP": 1e6, "GFLOP": 1e9, "GFLOP/s": 1e9, "TFLOP/s": 1e12, "FLOP/B": 1.0,
    "B": 1.0, "MB": 1e6, "GB": 1e9, "MB/s": 1e6, "GB/s": 1e9,
}  # fmt: skip
_QUANTITY = re.compile(r"(?P<number>\d+(?:\.\d+)?) ?(?P<unit>[^\d\s]*)")


class Claim(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One statement of a source.

    ``place`` is the place in the source, ``claim`` its statement in our words. ``verdict`` is ours, ``why`` one
    sentence for it. ``shown`` names the place that shows it: ``chapter#heading`` or ``chapter#fig-name`` as a link has
    it, or ``tests/file.py::test_name``. ``numbers`` are the claim's numbers by name, as "34 µs", for ``reported``.
    """

    place: Text
    claim: Text
    verdict: Verdict
    why: Text
    shown: Annotated[tuple[Text, ...], msgspec.Meta(min_length=1)]
    numbers: dict[str, Text] = {}


class Source(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A text that started the book.

    ``name`` is how chapters call it. ``cite`` is its key in ``references.bib``, or "" if the text has no entry.
    ``places`` gives the number of claims that each of its places makes, in the order of the text.
    """

    key: Text
    name: Text
    author: str
    title: Text
    url: str
    date: str
    gpu: str
    cite: str
    places: dict[str, int]
    claim: tuple[Claim, ...]


class Sources(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All of ``sources.toml``."""

    source: tuple[Source, ...]

    def __getitem__(self, key: str) -> Source:
        """The source with this key. Raises KeyError."""
        for source in self.source:
            if source.key == key:
                return source
        raise KeyError(f"no source '{key}'; {SOURCES.name} has {', '.join(s.key for s in self.source)}")


def read_sources(path: Path = SOURCES) -> Sources:
    """Read and check all sources. Raises RecordError with the wrong field, and FileNotFoundError."""
    try:
        return msgspec.toml.decode(path.read_bytes(), type=Sources)
    except msgspec.MsgspecError as error:
        raise RecordError(f"{path}: {explained(error)}") from None


_sources = functools.cache(read_sources)


def quantity(text: str) -> float:
    """Convert a number with its unit to SI units: ``quantity("34 µs")`` is 3.4e-5. Raises ValueError for an unknown
    unit."""
    found = _QUANTITY.fullmatch(text)
    if found is None or found["unit"] not in UNITS:
        raise ValueError(f"'{text}' is no quantity; expected a number and one of {', '.join(filter(None, UNITS))}")
    return float(f"{float(found['number']) * UNITS[found['unit']]:.12g}")


def reported(key: str, number: str) -> float:
    """Return a number that a source reports, in SI units: ``reported("desai2024conv1d", "his kernel")``.

    Raises KeyError for an unknown source or number.
    """
    known = {name: text for claim in _sources()[key].claim for name, text in claim.numbers.items()}
    if number not in known:
        raise KeyError(f"{key} has no number '{number}'; it has {', '.join(known)}")
    return quantity(known[number])


def claims(key: str, chapter: str = "", place: str = "") -> Iterator[Claim]:
    """Return the claims of a source in its order: those shown in ``chapter``, made at ``place``, if these are given."""
    for claim in _sources()[key].claim:
        here = not chapter or any(target.split("#")[0] == chapter for target in claim.shown)
        if here and (not place or claim.place == place):
            yield claim


def claims_table(key: str, chapter: str = "", place: str = "") -> CellOutput:
    """Show a source's claims with our verdicts, only those of ``chapter`` and ``place`` if they are given.

    Raises ValueError if there is none, which would leave an empty table in a chapter.
    """
    found = list(claims(key, chapter, place))
    if not found:
        raise ValueError(f"{SOURCES.name} has no claim of {key} for chapter '{chapter}', place '{place}'")
    columns = ("verdict", f"{_sources()[key].name}, and why we think so")
    rows = [[claim.verdict, f"{_plain(claim.claim)} {_plain(claim.why)}"] for claim in found]
    heads = "".join(f'<th scope="col" class="rl-text">{escape(name)}</th>' for name in columns)
    cells = "\n".join(
        f'<tr><td class="rl-text">{claim.verdict}</td><td class="rl-text rl-long">'
        f"<strong>{escape(_plain(claim.claim))}</strong><br>{escape(_plain(claim.why))}</td></tr>"
        for claim in found
    )
    body = f"<thead><tr>{heads}</tr></thead><tbody>\n{cells}\n</tbody>"
    return CellOutput(f'<table class="rl-counters rl-table rl-claims">{body}</table>', table(rows, columns).text)


def page_text(sources: Sources, titles: dict[str, str]) -> str:
    """Return the body of the page of sources, in MyST Markdown.

    ``titles`` has the text of each link to a heading or figure by its target, ``chapter#anchor``. Raises KeyError for a
    target that it lacks.
    """
    every = [claim for source in sources.source for claim in source.claim]
    head = f"Our verdicts on the {len(every)} claims of {len(sources.source)} texts: {_counts(every)}."
    return "\n\n".join([head, *(_source_text(source, titles) for source in sources.source)])


def _counts(judged: Sequence[Claim]) -> str:
    """Count the claims with each verdict, as text: "right 21, wrong 16, depends 15"."""
    counts = Counter(claim.verdict for claim in judged)
    return ", ".join(f"{verdict} {counts[verdict]}" for verdict in get_args(Verdict) if counts[verdict])


def _source_text(source: Source, titles: dict[str, str]) -> str:
    said = [part for part in (source.author, source.date, f"measured on {source.gpu}" if source.gpu else "") if part]
    title = f"[{source.title}]({source.url})" if source.url else source.title
    cited = f" {{cite}}`{source.cite}`" if source.cite else ""
    judged = f"Our verdicts on its {len(source.claim)} claims: {_counts(source.claim)}."
    head = f"## {source.name}\n\n*{title}*. {', '.join(said)}{cited}. {judged}"
    rows = ["````{list-table}", ":header-rows: 1", ":widths: 12 88", ":class: claims", "", "* - verdict"]
    rows += ["  - the claim; why, and where it is shown"]
    for claim in source.claim:
        shown = "; ".join(_link(target, titles) for target in claim.shown)
        rows += [
            f"* - **{claim.verdict}**",
            f"  - *{claim.place}:* {claim.claim}",
            "",
            f"    {claim.why} Shown in {shown}.",
        ]
    return "\n".join([head, "", *rows, "````"])


def _link(target: str, titles: dict[str, str]) -> str:
    if target.startswith("tests/"):
        file, _, test = target.partition("::")
        return f"`{file}`, `{test}`"
    chapter, _, anchor = target.partition("#")
    if anchor.startswith("fig-"):
        return f"{chapter}, {{numref}}`{anchor}`"
    return f"[{chapter}, {titles[target]}]({chapter}.ipynb#{anchor})"


def _plain(text: str) -> str:
    """Return a sentence of the data file without its Markdown, for a table."""
    return text.replace("`", "").replace("$", "").replace(r"\cdot", "·")
