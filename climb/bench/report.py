"""The report: every ladder at its headline sizes, from the committed records, as a Markdown table.

``climb report`` prints it, writes it into README.md between two markers, and checks that README.md shows it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import msgspec

from climb.bench import records, roofline, versions
from climb.bench.ladder import Ladder
from climb.bench.problem import Size, short_size, size_label
from climb.bench.records import Pending, Point, Record, Stale
from climb.bench.records.ceilings import MEANING
from climb.bench.registry import ladder_names, load_ladder
from climb.bench.shown_peers import shown
from climb.bench.timings import Verdict, verdict
from climb.bench.units import percent_text, significant, time_text

README = Path(__file__).resolve().parents[2] / "README.md"
BEGIN, END = "<!-- report -->", "<!-- /report -->"
_SHORTCUT = (
    "\\* An algorithm that needs fewer operations than the definition, whose limit this is; the second share is of the "
    "limit of its own operations."
)
_PEERS = (
    "Of each library, its fastest form in the rungs' precision is shown, and one in another precision only where it is "
    "faster; records have all forms."
)
_UNDECIDED = (
    "*same* and *ambiguous* say that the times do not decide which is faster: each median lies between the other's "
    "quartiles, or the quartiles overlap. Where the noise of one of the two is above 5 %, ratio and time have two "
    "digits."
)
#: A note for libraries: the options of every rung include this, but a library's kernels need not use it; see
#: ``records.flushes_subnormals``.
FLUSHED = (
    "Rungs are compiled with `-ftz=true`, which CuPy adds: subnormal float32 numbers become zero. "
    "The libraries' kernels are as their vendors built them."
)
#: The columns of the table.
HEAD = (
    "ladder", "size", "best rung", "time, cold", "against", "of the limit", "limited by", "noise", "SM clock", "record",
)  # fmt: skip


@dataclass(frozen=True)
class Row:
    """One ladder at one headline size. ``against`` maps a peer to how many times faster the best rung is.

    ``of_limit`` is a share of the problem's limit, ``of_own`` of the limit of the rung's own work, if that is another.
    ``slowed`` gives the SM clock in MHz of each peer, and of the best rung, that ran below 95 % of the highest.
    ``state`` is that of the whole record: fresh, stale, or pending if there is none. ``pending`` names the rungs that
    the record has not measured yet; they have no part in the row's numbers. ``peers`` has the point of each peer.
    """

    ladder: str
    size: Size
    best: Point | None
    against: dict[str, float]
    of_limit: float | None
    state: str
    of_own: float | None = None
    limited_by: str = ""
    slowed: Mapping[str, int] = field(default_factory=dict)
    pending: tuple[str, ...] = ()
    peers: Mapping[str, Point] = field(default_factory=dict)

    def undecided(self, peer: str) -> Verdict | None:
        """Return how the times leave open whether the best rung or this peer is faster; None where they decide."""
        told = verdict(self.best, self.peers[peer]) if self.best else None
        return told if told in ("same", "ambiguous") else None


#: Beyond this noise, times and ratios have two digits.
_NOISY = 0.05


class _Made(msgspec.Struct):
    """The part of any file of records that the note on versions reads."""

    device: dict[str, Any] = {}
    nvrtc: str | None = None


#: What the folders beside the records of times hold, as the note on versions says it.
_BESIDE = {
    "hardware": "counts of",
    "profiles": "profiles of",
    "repeats": "repeats of",
    "search": "searches of",
    "spans": "spans of",
    "transfers": "transfers of",
    "emulator": "comparisons with the emulator:",
}


def rows_of(ladder: Ladder, record: Record | None) -> list[Row]:
    """Return the rows of a ladder, one for each headline size; without a record they say that it is pending."""
    state = "stale" if records.stale_points(record, ladder) else "pending" if record is None else "fresh"
    pending = records.pending_rungs(record, ladder) if record else ()
    return [replace(_row(ladder, record, size, state), pending=pending) for size in ladder.problem.headline]


def table(rows: Iterable[Row]) -> str:
    """Format the rows as a Markdown table, without a newline at its end."""
    lines = ["| " + " | ".join(HEAD) + " |", "|---|---|---|---:|---|---:|---|---:|---:|---|"]
    for row in rows:
        lines.append("| " + " | ".join(cells_of(row)) + " |")
    return "\n".join(lines)


def report(names: Sequence[str] | None = None, gpu: str = records.DEFAULT_GPU, folder: Path | None = None) -> str:
    """The whole report: a line that names the GPU and the dates, and the table."""
    rows: list[Row] = []
    found: list[Record] = []
    absent: list[str] = []
    for name in names if names is not None else ladder_names():
        ladder = load_ladder(name)
        record = records.find_record(ladder.name, folder=folder or records.RECORDS / gpu)
        rows += rows_of(ladder, record)
        found += [record] if record else []
        absent += absent_peers(record, ladder)
    notes = [_SHORTCUT] if any(row.of_own is not None for row in rows) else []
    notes += [_PEERS] if any(row.against for row in rows) else []
    notes += [_UNDECIDED] if any(row.undecided(peer) for row in rows for peer in row.peers) else []
    notes += [FLUSHED] if any(records.flushes_subnormals(record) for record in found) else []
    notes += [said] if (said := ceilings_note(folder or records.RECORDS / gpu)) else []
    notes += [said] if (said := differing_note(found, folder or records.RECORDS / gpu)) else []
    notes += ["Not measured, and why:\n\n" + "\n".join(f"- {line}" for line in absent)] if absent else []
    return "\n\n".join([_source(found), table(rows), *notes])


def ceilings_note(folder: Path) -> str:
    """Describe the ceilings behind the limits, with their date, and those not measured yet; "" without any."""
    measured = records.load_ceilings(folder)
    if measured is None:
        return ""
    values = measured.values
    texts = [f"{MEANING[name]} {values.text(name)}" for name in MEANING if name in values]
    note = f"Ceilings of {measured.date}: {'; '.join(texts)}."
    if values.pending:
        missing = ", ".join(MEANING[name] for name in values.pending)
        note += f" Not measured yet: {missing}; a limit that needs one of them may be too low."
    sessions = records.load_sessions(folder)
    if sessions is not None and len(sessions.sessions) > 1:
        note += " A record of an earlier session is held to the ceilings of its own."
    return note


def differing_note(found: Iterable[Record], folder: Path) -> str:
    """Name the records, those beside the times included, made with other versions than the locked ones; "" if none."""
    found = list(found)
    made = {"": {one.ladder: versions.of_record(one.device) | versions.of_libraries(one.points) for one in found}}
    for kind, what in _BESIDE.items():
        files = {path.stem: records.load(path, _Made) for path in sorted((folder / kind).glob("*.json"))}
        devices = {name: {"nvrtc": one.nvrtc} | one.device for name, one in files.items()}
        made[f"{what} "] = {name: versions.of_record(device) for name, device in devices.items()}
    where: dict[str, list[str]] = {}
    for what, each in made.items():
        names: dict[str, list[str]] = {}
        for name, differences in each.items():
            for package, how in differences.items():
                names.setdefault(f"{package} {how}", []).append(name)
        for how, several in names.items():
            where.setdefault(how, []).append(what + ", ".join(several))
    listed = "; ".join(f"{how}: {', '.join(several)}" for how, several in where.items())
    return f"Not as locked: {listed}." if where else ""


def absent_peers(record: Record | None, ladder: Ladder) -> list[str]:
    """List the peers of a ladder without a time in its record, each with the reason; empty without a record."""
    return [*skipped_peers(record), *unmeasured_peers(record, ladder)] if record else []


def skipped_peers(record: Record) -> list[str]:
    """List what could not be measured, one line for each name and reason, with the sizes if it ran at others."""
    measured = {point.name for point in record.points}
    sizes: dict[tuple[str, str], list[str]] = {}
    for one in record.skipped:
        sizes.setdefault((one.name, one.reason), []).append(size_label(one.size))
    return [
        f"{record.ladder}, {name}{' at ' + '; '.join(at) if name in measured else ''}: {_in_one_line(reason)}"
        for (name, reason), at in sizes.items()
    ]


def _in_one_line(reason: str) -> str:
    """Return the first line of a reason, as a library or compiler may have given it, without folders of its machine."""
    line = re.sub(r"(?<![\w.])/(?:[^\s/:()]+/)+", "", reason.strip().partition("\n")[0])
    return re.sub(
        r"ImportError: \S+ version `(lib\S+)' not found.*", r"it loads \1, which the lock does not bring", line
    )


def unmeasured_peers(record: Record, ladder: Ladder) -> list[str]:
    """Name the peers added to a ladder since its record was made, as one line, if there are any."""
    peers = records.pending_peers(record, ladder)
    return [f"{record.ladder}, {', '.join(peers)}: added after this record of {record.date}"] if peers else []


def find_stale(
    names: Sequence[str] | None = None, gpu: str = records.DEFAULT_GPU, folder: Path | None = None
) -> list[Stale]:
    """Find every stale point of the ladders' records."""
    ladders = [load_ladder(name) for name in (names if names is not None else ladder_names())]
    at = folder or records.RECORDS / gpu
    return [s for one in ladders for s in records.stale_points(records.find_record(one.name, folder=at), one)]


def find_pending(
    names: Sequence[str] | None = None, gpu: str = records.DEFAULT_GPU, folder: Path | None = None
) -> list[Pending]:
    """Find every rung of the ladders that no record has measured yet, and every new peer of a recorded ladder."""
    found = []
    for ladder in (load_ladder(name) for name in (names if names is not None else ladder_names())):
        record = records.find_record(ladder.name, folder=folder or records.RECORDS / gpu)
        peers = records.pending_peers(record, ladder) if record else ()
        found += [Pending(ladder.name, name, gpu) for name in (*records.pending_rungs(record, ladder), *peers)]
    return found


def read_readme() -> str:
    """Return the table that README.md shows. Raises ValueError unless each marker is there once, in order."""
    return readme_block(README.read_text(encoding="utf-8"))


def write_readme(block: str) -> None:
    """Put a table into README.md. Raises ValueError like :func:`read_readme`."""
    README.write_text(replace_block(README.read_text(encoding="utf-8"), block), encoding="utf-8")


def readme_block(text: str) -> str:
    """Return the text between the markers. Raises ValueError unless each marker is there once, in order."""
    if text.count(BEGIN) != 1 or text.count(END) != 1 or text.index(BEGIN) > text.index(END):
        raise ValueError(f"README.md needs the lines {BEGIN} and {END} once, in this order")
    return text.split(BEGIN)[1].split(END)[0].strip("\n")


def replace_block(text: str, block: str) -> str:
    """Return the text with a new block between the markers. Raises ValueError like :func:`readme_block`."""
    readme_block(text)
    before, rest = text.split(BEGIN)
    return f"{before}{BEGIN}\n{block}\n{END}{rest.split(END)[1]}"


def _row(ladder: Ladder, record: Record | None, size: Size, state: str) -> Row:
    if record is None:
        return Row(ladder.name, size, None, {}, None, state)
    measured = [p for bound in ladder if (p := record.find(bound.name, size, "cold"))]
    best = min(measured, key=lambda p: p.median_s, default=None)
    if best is None:
        return Row(ladder.name, size, None, {}, None, state)
    of_peers = (record.find(peer.name, size, "cold") for peer in ladder.peers)
    peers = {p.name: p for p in shown((p for p in of_peers if p), ladder.problem.precision)}
    against = {name: point.median_s / best.median_s for name, point in peers.items()}
    slowed = {p.name: p.sm_clock_mhz or 0 for p in (best, *peers.values()) if p and record.slowed(p)}
    row = Row(ladder.name, size, best, against, None, state, slowed=slowed, peers=peers)
    try:
        limit = roofline.limit(ladder.problem, size, record.ceilings)
    except roofline.MissingCeiling:
        return row
    rung = ladder[best.name].rung
    share, own = limit.share(best), roofline.limit(ladder.problem, size, record.ceilings, rung=rung).share(best)
    return replace(row, of_limit=share, of_own=None if own == share else own, limited_by=limit.limited_by)


def cells_of(row: Row) -> list[str]:
    """Return the cells of a row in Markdown, in the order of ``HEAD``."""
    size = short_size(row.size)
    state = row.state + (f", pending: {', '.join(row.pending)}" if row.pending else "")
    if state != "fresh":
        state += f": `{records.command(row.ladder)}`"
    if row.best is None:
        return [row.ladder, size, *[""] * (len(HEAD) - 3), state]
    against = ", ".join(
        f"{_times(ratio, _noisy(row.best) or _noisy(row.peers[name]))} x {name}{_remark(row, name)}"
        for name, ratio in row.against.items()
    )
    limit = "" if row.of_limit is None else percent_text(row.of_limit)
    if row.of_own is not None:
        limit += f" \\*, {percent_text(row.of_own)}"
    noise = f"{100 * row.best.noise:.2g} %"
    clock = f"{row.best.sm_clock_mhz} MHz" if row.best.sm_clock_mhz else ""
    clock += " (slowed)" if row.best.name in row.slowed else ""
    time = time_text(row.best.median_s, 2 if _noisy(row.best) else 3)
    return [row.ladder, size, row.best.name, time, against, limit, row.limited_by, noise, clock, state]


def _noisy(point: Point) -> bool:
    return point.noise > _NOISY


def _times(ratio: float, noisy: bool) -> str:
    """Format how many times as fast: two decimals below ten, three digits above; of ``noisy`` times, two digits."""
    if noisy:
        return significant(ratio, 2)
    return f"{ratio:.2f}" if ratio < 9.995 else significant(ratio)


def _remark(row: Row, peer: str) -> str:
    """Return the remark on a ratio: the clock of a peer that ran slower than the GPU can, and the verdict if the times
    do not decide which of the two is faster."""
    clock, told = row.slowed.get(peer), row.undecided(peer)
    said = ([f"at {clock} MHz"] if clock else []) + ([told] if told else [])
    return f" ({', '.join(said)})" if said else ""


def _source(found: Sequence[Record]) -> str:
    if not found:
        return "Nothing is recorded yet."
    dates = sorted({record.date for record in found})
    when = dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}"
    device = found[0].device
    return (
        f"Measured on an {found[0].gpu} (driver {device['driver']}, CUDA {device['cuda']}), {when}; cold L2, median. "
        '"1.25 x peer" means that the best rung is 1.25 times as fast as the peer.'
    )
