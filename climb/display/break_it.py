"""Break it: a kernel with edits to choose from, and the effect of each on the emulator.

The output holds the source once, and for each edit the changed lines and the outcome. Without scripts, as in Jupyter,
the outcomes are listed one below the other, folded. On a page, ``book/_static/break.js`` combines them into one box:
the source with the chosen edit, the choices, the outcome. Everything runs on the emulator, even on a machine with a
GPU, so the output is the same everywhere.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np

from climb.bench.edits import Edit, Experiment, Outcome, attempt, of_rung, of_source
from climb.bench.ladder import BoundRung
from climb.bench.problem import Size
from climb.display import outcome_words
from climb.display.access_cost import describe, pick, picture_of
from climb.display.access_svg import access_svg
from climb.display.cell_output import CellOutput
from climb.display.highlighting import html_lines

#: A source of up to this many lines is shown whole; of a longer one, only the lines near the edits.
WHOLE = 48
_NEAR = 4
_UNEDITED = "as it is"


def break_it(
    what: BoundRung | str,
    size: Size | None = None,
    *,
    edits: Sequence[Edit],
    kernel: str = "",
    grid: Sequence[int] = (),
    block: Sequence[int] = (),
    args: Sequence[np.ndarray | np.generic] = (),
    expect: Mapping[str, np.ndarray] | None = None,
    tolerance: float = 1e-5,
    shared_mem: int = 0,
    options: Sequence[str] = (),
    picture: str | Mapping[str, Any] = "",
    lines: tuple[int, int] | None = None,
) -> CellOutput:
    """Try edits of a kernel on the emulator, and show the source and the outcome of each.

    ``what`` is a rung, at a ``size``, or CUDA text with ``kernel``, ``grid``, ``block`` and ``args`` (NumPy arrays and
    scalars in the kernel's order; ``poisoned(shape, dtype)`` makes one that nothing has written). ``expect`` holds the
    right outputs of CUDA text by the kernel's parameter names, compared within ``tolerance``. ``picture`` is the kind
    of access to draw, such as ``"shared load"``, or a mapping with the parameters of ``pick`` (``kind``, ``nth``,
    ``line``, ``of``) and which warp is traced (``block``, ``warp``, ``launch``). ``lines`` are the first and the last
    line of the source to show, by default all of a short source without the comment that opens it, and the edited
    parts of a long one. Choose small sizes: every outcome is a run with all checks.

    Raises ValueError for an edit whose text is not in the source exactly as often as it says, ArgumentError for a size
    that the rung does not take, TypeError for arguments that do not fit.

    >>> break_it(
    ...     transpose["tiled"], {"rows": 64, "cols": 64}, picture="shared load",
    ...     edits=[edit("remove the barrier", "__syncthreads();", ""), edit("32 x 4 threads", block=(32, 4))],
    ... )                                                                                   # doctest: +SKIP
    """
    if isinstance(what, str):
        if not kernel or not grid or not block:
            raise TypeError("CUDA text needs kernel=, grid=, block= and args=")
        start = of_source(what, kernel, grid, block, args, expect or {}, tolerance, shared_mem, options)
    elif size is None or kernel or args or grid or block:
        raise TypeError("a rung takes a size and nothing else; its ladder makes launch and arguments")
    else:
        start = of_rung(what, size)
    if not edits:
        raise ValueError("give at least one edit")
    changed = [(change.says, start.edited(change)) for change in edits]
    tried = [_try(says, one, start, picture) for says, one in ((_UNEDITED, start), *changed)]
    title = what.name if isinstance(what, BoundRung) else kernel
    return CellOutput(_html(start, tried, lines), _text(title, tried))


@dataclass(frozen=True)
class Hunk:
    """Neighbouring changed lines: ``old`` lines of the source from line ``at`` are replaced by ``new`` ones."""

    at: int
    old: tuple[str, ...]
    new: tuple[str, ...]
    new_at: int


@dataclass(frozen=True)
class Tried:
    """An edit with its outcome. ``launch`` is empty if the edit does not change the launch."""

    says: str
    experiment: Experiment
    outcome: Outcome
    hunks: tuple[Hunk, ...]
    launch: str
    same_data: bool


def _try(says: str, experiment: Experiment, start: Experiment, picture: str | Mapping[str, Any]) -> Tried:
    asked = {"kind": picture} if isinstance(picture, str) else dict(picture)
    traced = {key: asked.pop(key) for key in ("block", "warp", "launch") if key in asked}
    kind = asked.pop("kind")

    def picked(trace: Any) -> Any:
        try:
            return pick(trace, kind, **asked)
        except ValueError:
            if experiment is start:  # a picture that the kernel does not have is the author's mistake
                raise
            return None

    outcome = attempt(experiment, picked if kind else None, **traced)
    launch = experiment.launch_text
    old, new = (one.source.rstrip("\n").split("\n") for one in (start, experiment))
    codes = difflib.SequenceMatcher(a=old, b=new, autojunk=False).get_opcodes()
    hunks = tuple(Hunk(i + 1, tuple(old[i:j]), tuple(new[k:m]), k + 1) for tag, i, j, k, m in codes if tag != "equal")
    same = experiment.arrays is start.arrays
    return Tried(says, experiment, outcome, hunks, "" if launch == start.launch_text else launch, same)


def _text(title: str, tried: Sequence[Tried]) -> str:
    """Format the outcomes one below the other, in plain text."""
    first, parts = tried[0], []
    for one in tried:
        rows = [f"{title}, {one.says}"]
        for hunk in one.hunks:
            rows += [f"  {hunk.at + n:4} - {row}".rstrip() for n, row in enumerate(hunk.old)]
            rows += [f"  {hunk.new_at + n:4} + {row}".rstrip() for n, row in enumerate(hunk.new)]
        launch = one.launch or (one.experiment.launch_text if one is first else "")
        rows += [f"  {row}" for row in launch.split("\n") if launch]
        rows.append(f"  {_sentence(one, first)}.")
        rows += [f"    {row}".rstrip() for row in _message(one).split("\n") if _message(one)]
        counted = _changes(one, first)
        widths = [max((len(row[i]) for row in counted), default=0) for i in range(2)]
        rows += [f"    {name.ljust(widths[0])}  {old.rjust(widths[1])} -> {new}" for name, old, new in counted]
        if _picture(one, first):
            rows.append(f"    {describe(picture_of(one.outcome.access))}")
        parts.append("\n".join(rows))
    return "\n\n".join(parts)


def _html(start: Experiment, tried: Sequence[Tried], lines: tuple[int, int] | None) -> str:
    first = tried[0]
    code = _code(start.source, tried, lines)
    launch = f'<pre class="rl-break-launch">{_joined(html_lines(start.launch_text))}</pre>'
    folds = "".join(_fold(one, first) for one in tried)
    return f'<div class="rl-break"><pre class="rl-break-code highlight">{code}</pre>{launch}{folds}</div>'


def _joined(rows: Sequence[str]) -> str:
    return "\n".join(rows)


def _code(source: str, tried: Sequence[Tried], lines: tuple[int, int] | None) -> str:
    """Show the selected lines, each after its number; a line that begins with a dot stands for lines left out."""
    rows = html_lines(source)
    shown = _shown(source, tried, lines)
    width = len(str(max(shown)))
    out: list[str] = []
    before = min(shown) - 1
    for number in sorted(shown):
        if number != before + 1:
            out.append(f"<b>{'.' * width}</b>")
        out.append(f"<b>{number:{width}}</b>  {rows[number - 1]}".rstrip())
        before = number
    return _joined(out)


def _shown(source: str, tried: Sequence[Tried], lines: tuple[int, int] | None) -> set[int]:
    """Return the numbers of the lines to show."""
    rows = source.rstrip("\n").split("\n")
    count = len(rows)
    if lines is not None:
        if not 1 <= lines[0] <= lines[1] <= count:
            raise ValueError(f"lines {lines[0]} to {lines[1]} are not in the source, which has {count} lines")
        return set(range(lines[0], lines[1] + 1))
    top = next((n for n, row in enumerate(rows, 1) if row.strip() and not row.startswith("//")), 1)
    if count - top < WHOLE:
        return set(range(top, count + 1))
    centres = {n for one in tried for hunk in one.hunks for n in range(hunk.at, hunk.at + max(1, len(hunk.old)))}
    centres |= {one.outcome.line for one in tried if one.outcome.line and not one.hunks}
    near = {n for centre in centres or {top} for n in range(centre - _NEAR, centre + _NEAR + 1)}
    # A single line left out takes as much room as the mark for it.
    near |= {n for n in range(top, count) if n - 1 in near and n + 1 in near}
    return {n for n in near if top <= n <= count}


def _fold(one: Tried, first: Tried) -> str:
    """Show one edit, folded: its changed lines, then the outcome."""
    sentence = _sentence(one, first)
    head, _, rest = sentence.partition(": ") if ": " in sentence else sentence.partition(", ")
    mark = sentence[len(head) : len(sentence) - len(rest)] if rest else ""
    kind = f"rl-{one.outcome.kind}"
    line = f' data-line="{one.outcome.line}"' if one.outcome.line else ""
    parts = [f'<details class="rl-break-edit"{line}><summary>{escape(one.says)}</summary>']
    if one is not first:
        parts.append(f'<pre class="rl-break-change highlight">{_change(one)}</pre>')
    parts.append(f'<p class="{kind}"><strong>{escape(head)}</strong>{escape(mark + rest)}.</p>')
    if message := _message(one):
        parts.append(f"<pre>{escape(message)}</pre>")
    if rows := _changes(one, first):
        cells = "".join(f"<tr><td>{escape(n)}</td><td>{escape(o)}</td><td>{escape(w)}</td></tr>" for n, o, w in rows)
        heads = '<tr><th scope="col">count</th><th scope="col">before</th><th scope="col">after</th></tr>'
        parts.append(f'<table class="rl-counters"><thead>{heads}</thead><tbody>{cells}</tbody></table>')
    parts.append(_picture(one, first))
    return "".join(parts) + "</details>"


def _change(one: Tried) -> str:
    """Show deleted lines with their numbers, and inserted ones with the number of the line that they follow."""
    coloured = html_lines(one.experiment.source)
    rows = []
    for hunk in one.hunks:
        last = hunk.at + len(hunk.old) - 1
        rows += [f'<del data-n="{hunk.at + n}">- {escape(row)}</del>' for n, row in enumerate(hunk.old)]
        inserted = coloured[hunk.new_at - 1 : hunk.new_at - 1 + len(hunk.new)]
        rows += [f'<ins data-n="{last}">+ {row}</ins>' for row in inserted]
    rows += [f"<ins>+ {row}</ins>" for row in html_lines(one.launch) if one.launch]
    return _joined(rows)


def _sentence(one: Tried, first: Tried) -> str:
    return outcome_words.sentence(one.outcome, None if one is first else first.outcome, one.same_data)


def _message(one: Tried) -> str:
    """Show the compiler's or the emulator's message; the sentence already says which elements are wrong."""
    return one.outcome.message if one.outcome.kind in ("compile", "fault") else ""


def _changes(one: Tried, first: Tried) -> list[tuple[str, str, str]]:
    """Show the counts that the edit changes, if the kernel does its work with and without it."""
    before, after = first.outcome, one.outcome
    if one is first or not one.same_data or {before.kind, after.kind} - {"right", "ran"}:
        return []
    return outcome_words.changed(before.counters, after.counters) if before.counters and after.counters else []


def _picture(one: Tried, first: Tried) -> str:
    """Draw the access; empty if there is none, or if it is the same as without the edit."""
    if one.outcome.access is None:
        return ""
    drawn = access_svg(one.outcome.access)
    same = one is not first and first.outcome.access is not None and drawn == access_svg(first.outcome.access)
    return "" if same else drawn
