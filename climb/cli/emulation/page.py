"""The page of ``climb emulate --html``: the source with the cost of each line, and the fault at its line.

One file, without scripts and without anything from the network. A line with counters is a <details> element, so it
opens by click, by touch and by keyboard.
"""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from pathlib import Path

from climb.cli.emulation.costs import waste
from climb.cli.emulation.lines import Line, by_line, other_place
from climb.cli.emulation.meanings import meanings
from climb.display.palette import PALETTE
from climb.emulator import AccessCounters, Counters, EmulatorError
from climb.emulator.counters.lines import ExecutionCounters
from climb.emulator.errors import Where
from climb.toolchain.names import demangled

_COLOURS = ("best", "peer", "limit", "muted", "waste", "violet", "text", "quiet", "grid", "faint", "ground")
#: The ground and the edge of a fault: those of removed lines in a diff of the book.
_FAULT = {"light": ("#fdeceb", "#c0392b"), "dark": ("#3a1d1c", "#f08a80")}
_HEADS = (
    ("line", "the number of the line in its file"),
    ("source", "open a line to read what its numbers mean"),
    ("executed", "PTX instructions issued to warps"),
    ("lanes", "the share of a warp's 32 lanes that was active"),
    ("sectors (ideal)", "sectors of 32 bytes for each request to global or local memory, and the fewest possible"),
    ("shared (ideal)", "wavefronts for each request to shared memory, and the fewest possible"),
    ("conflicts", "wavefronts beyond the fewest possible"),
    ("diverged", "branches at which the lanes of a warp went both ways"),
)
#: The lines of an included file that are shown around each line with counters.
_AROUND = 3
_DEAREST = 5


def page(counters: Counters | None, fault: Exception | None, source: str, name: str) -> str:
    """Return the HTML of a launch of a kernel of `source`, the text of the file `name`.

    `counters` are those of the launch, or those up to the `fault`; None if nothing ran.
    """
    lines = by_line(counters, fault)
    texts = {name: source.splitlines()}
    for file in dict.fromkeys(file for file, _ in lines):
        texts.setdefault(file, list((counters.files if counters else {}).get(file, ())))
    kernel = demangled(counters.kernel) if counters else name
    order = [name, *sorted(file for file in texts if file != name)]
    body = [
        f"<h1><code>{escape(kernel)}</code></h1>",
        f'<p class="quiet">{_launch(counters, name)}</p>',
        _verdict(fault, lines, order),
        *(_totals(counters) if counters else ()),
        *_dearest(counters, order),
    ]
    for number, file in enumerate(order):
        body += _file(number, file, texts[file], {line: lines[f, line] for f, line in lines if f == file})
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(kernel)}: {escape(name)}</title>\n<style>\n{_style()}</style>\n</head>\n<body>\n<main>\n"
        + "\n".join(body)
        + "\n</main>\n</body>\n</html>\n"
    )


def _style() -> str:
    def colours(theme: str) -> str:
        ground, edge = _FAULT[theme]
        values = "".join(f" --rl-{name}: {getattr(PALETTE[name], theme)};" for name in _COLOURS)
        return f":root {{{values} --fault: {ground}; --fault-edge: {edge}; }}"

    sheet = Path(__file__).with_name("page.css").read_text(encoding="utf-8")
    return f"{colours('light')}\n@media (prefers-color-scheme: dark) {{ {colours('dark')} }}\n{sheet}"


def _launch(counters: Counters | None, name: str) -> str:
    if counters is None:
        return escape(name)
    grid, block = ("×".join(map(str, each)) for each in (counters.grid, counters.block))
    return f"{escape(name)}, grid {grid}, block {block}, counted by an emulator that runs the compiler's PTX"


def _verdict(fault: Exception | None, lines: dict[tuple[str, int], Line], order: list[str]) -> str:
    if fault is None:
        return '<div class="verdict"><p><strong>No fault found.</strong></p></div>'
    if not isinstance(fault, EmulatorError):
        text = "<br>".join(escape(line) for line in str(fault).splitlines())
        return f'<div class="verdict fault"><p><strong>It did not run.</strong></p><p><code>{text}</code></p></div>'
    where, other = fault.where, other_place(fault)
    out = [f"<p><strong>{escape(_sentence(fault.what))}</strong></p>"]
    out += [f"<p>At {_place(where, lines, order)}</p>"] if where.line else []
    out += [f"<p>The other place: {_place(other, lines, order)}</p>"] if other else []
    out += [f"<p>Look at {escape(fault.hint)}.</p>"] if fault.hint else []
    out.append('<p class="quiet">The kernel stopped there: the counters are those up to the fault.</p>')
    return f'<div class="verdict fault">{"".join(out)}</div>'


def _sentence(text: str) -> str:
    text = text[:1].upper() + text[1:]
    return text if text.endswith((".", "!", "?")) else f"{text}."


def _thread(where: Where) -> str:
    if where.block is None:
        return ""
    block, thread = (",".join(map(str, each)) for each in (where.block, where.thread))
    more = f", the first of {where.lanes} threads" if where.lanes > 1 else ""
    return f", block ({block}) thread ({thread}){more}"


def _place(where: Where, lines: dict[tuple[str, int], Line], order: list[str]) -> str:
    """Show file, line and thread, with a link to the line, and its text."""
    label = f"{escape(where.file)}:{where.line}"
    if (where.file, where.line) in lines:
        label = f'<a href="#{_anchor(order.index(where.file), where.line)}">{label}</a>'
    return f"{label}{_thread(where)}: <code>{escape(where.text)}</code>"


def _anchor(file: int, line: int) -> str:
    return f"L{line}" if not file else f"F{file}-L{line}"


def _totals(counters: Counters) -> list[str]:
    loads, stores = counters.total("global load"), counters.total("global store")
    conflicts = sum(one.bank_conflicts for one in counters.lines)
    items = (
        ("sectors loaded", f"{loads.sectors:,}"),
        ("sectors stored", f"{stores.sectors:,}"),
        ("bank conflicts", f"{conflicts:,}"),
        ("divergent branches", f"{counters.divergent_branches:,} of {counters.branches:,}"),
        ("lane efficiency", _share(counters.lane_efficiency)),
        ("warp instructions (PTX)", f"{counters.warp_instructions:,}"),
        ("barriers", f"{counters.barriers:,}"),
    )
    out = ['<dl class="totals">' + "".join(f"<div><dt>{k}</dt><dd>{v}</dd></div>" for k, v in items) + "</dl>"]
    return out + [f"<p>Note: {escape(note)}.</p>" for note in counters.notes]


def _share(value: float, digits: int = 1) -> str:
    return "-" if value != value else f"{100 * value:.{digits}f} %"


def _dearest(counters: Counters | None, order: list[str]) -> list[str]:
    """Show the lines that waste most sectors and wavefronts."""
    found = sorted((one for one in (counters.lines if counters else ()) if waste(one)), key=lambda one: -waste(one))
    if not found:
        return []
    items = []
    for one in found[:_DEAREST]:
        unit = "sectors more than needed" if one.sectors > one.ideal_sectors else "bank conflicts"
        items.append(
            f'<li><a href="#{_anchor(order.index(one.file), one.line)}">line {one.line}</a>: {waste(one):,} {unit}, '
            f"{escape(one.kind)} <code>{escape(one.text)}</code></li>"
        )
    return ["<h2>Where to look first</h2>", f'<ol class="dear">{"".join(items)}</ol>']


def _file(number: int, name: str, texts: list[str], lines: dict[int, Line]) -> Iterator[str]:
    """Show a file: the source of the kernel in full, an included one only near its lines with counters."""
    coloured = _coloured(texts)
    yield f"<h2><code>{escape(name)}</code></h2>"
    heads = "".join(f'<span title="{title}">{head}</span>' for head, title in _HEADS)
    yield f'<div class="lines"><div class="head" aria-hidden="true">{heads}</div>'
    last = 0
    for n in range(1, max(len(texts), *lines or [0]) + 1):
        if number and not any(abs(n - line) <= _AROUND for line in lines):
            continue
        if n != last + 1:
            yield '<div class="gap">⋯</div>'
        last = n
        yield _row(number, n, coloured[n - 1] if n <= len(coloured) else "", lines.get(n))
    yield "</div>"


def _coloured(texts: list[str]) -> list[str]:
    """Return the lines as HTML; in colour if Pygments is installed."""
    from climb.display.highlighting import html_lines

    try:
        return html_lines("\n".join(texts))
    except ModuleNotFoundError:
        return [escape(text, quote=False) for text in texts]


def _row(file: int, number: int, source: str, line: Line | None) -> str:
    start = f'<span class="no">{number}</span><span class="src">{source or " "}</span>'
    anchor = _anchor(file, number)
    if line is None:
        return f'<div class="row" id="{anchor}">{start}</div>'
    kind = f' class="at-{line.fault}"' if line.fault else ""
    opened = " open" if line.fault == "fault" else ""
    said = {"fault": "<p><strong>The fault is here.</strong></p>", "other": "<p>The other place of the fault.</p>"}
    told = said.get(line.fault, "") + "".join(f"<p>{one}</p>" for one in meanings(line))
    return (
        f'<details id="{anchor}"{kind}{opened}><summary class="row">{start}{_cells(line)}</summary>'
        f'<div class="more">{told}</div></details>'
    )


def _cells(line: Line) -> str:
    """Return the six numbers of a line."""
    far = [one for one in line.accesses if one.sectors]
    near = [one for one in line.accesses if one.wavefronts]
    conflicts = sum(one.bank_conflicts for one in near)
    branches, diverged = (sum(getattr(one, n) for one in line.branches) for n in ("branches", "divergent_branches"))
    executed = line.executed
    cells = (
        ("executed", f"{executed.warp_instructions:,}" if executed else "", False),
        ("lanes", _share(executed.lane_efficiency, 0) if executed else "", bool(executed) and _idle(executed)),
        ("sectors", *_rates(far, "sectors", "ideal_sectors")),
        ("shared", *_rates(near, "wavefronts", "ideal_wavefronts")),
        ("conflicts", f"{conflicts:,}" if near else "", conflicts > 0),
        ("diverged", f"{diverged:,} of {branches:,}" if branches else "", diverged > 0),
    )
    out = []
    for label, text, high in cells:
        inner = f"<i>{label} </i>" + (f'<span class="high">{text}</span>' if high else text) if text else ""
        out.append(f'<span class="n">{inner}</span>')
    return "".join(out)


def _idle(executed: ExecutionCounters) -> bool:
    return executed.lane_efficiency < 0.9


def _rates(accesses: list[AccessCounters], each: str, ideal: str) -> tuple[str, bool]:
    """Return the values per request and ideal, over all accesses of a line; and whether they exceed the ideal."""
    requests = sum(one.requests for one in accesses)
    if not requests:
        return "", False
    got, best = (sum(getattr(one, name) for one in accesses) for name in (each, ideal))
    return f"{got / requests:.3g} ({best / requests:.3g})", got > best
