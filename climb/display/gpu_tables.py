"""Tables of several GPUs: their shares of their own limits, and predictions for GPUs without records."""

from __future__ import annotations

from typing import Any

from climb.bench import records
from climb.bench.data_sheets import SHEETS, DataSheet
from climb.bench.predictions import Prediction, predictions
from climb.bench.record_folders import folders
from climb.bench.records import ceilings
from climb.bench.registry import ladder_names, load_ladder
from climb.bench.report import rows_of
from climb.bench.units import percent_text, time_text
from climb.display.cell_output import CellOutput, table


def gpu_shares_table() -> CellOutput:
    """Show a row for each ladder that some GPU has a record of, with the best rung and its share of the limit, by GPU.

    A share is of the GPU's own limit, at the first headline size. A GPU that has not measured a ladder is "pending".
    """
    found = {folder.name: {name: _share(name, folder) for name in ladder_names()} for folder in folders()}
    rows = []
    for name in ladder_names():
        cells = [of[name] for of in found.values()]
        if any(cells):
            rows.append([name, *(cell or "pending" for cell in cells)])
    return table(
        rows, ["ladder", *found], caption="The best rung of each ladder, and its share of that GPU's own limit"
    )


def gpu_ceilings_table() -> CellOutput:
    """Show a row for each ceiling, with its newest value on each GPU, or "pending" if the GPU has not measured it."""
    found = {folder.name: ceilings.load_sessions(folder) for folder in folders()}
    known = {name: sessions.values_for(None) for name, sessions in found.items() if sessions}
    rows = [
        [meaning, *(known[gpu].text(name) if name in known.get(gpu, ()) else "pending" for gpu in found)]
        for name, meaning in ceilings.MEANING.items()
        if any(name in values for values in known.values())
    ]
    return table(rows, ["ceiling", *found], caption="What each GPU was measured to reach")


def _share(ladder: str, folder: Any) -> str:
    row = rows_of(load_ladder(ladder), records.find_record(ladder, folder=folder))[0]
    if row.best is None:
        return ""
    share = row.of_own if row.of_own is not None else row.of_limit
    return row.best.name + (f", {percent_text(share)}" if share is not None else "")


def unrecorded() -> tuple[DataSheet, ...]:
    """Return the GPUs with a data sheet but no records."""
    known = {folder.name for folder in folders()}
    return tuple(sheet for sheet in SHEETS if sheet.folder not in known)


def sheets_table() -> CellOutput:
    """Show the numbers of the data sheets, with their sources."""
    rows = [
        [one.name, f"{one.bandwidth_gb_s:g} GB/s", f"{one.fp32_tflop_s:g} TFLOP/s", str(one.sms), f"{one.l2_mb:g} MB",
         one.source]
        for one in SHEETS
    ]  # fmt: skip
    return table(rows, ["GPU", "memory", "FP32", "SMs", "L2", "source"], caption="What the vendor states")


def predictions_table() -> CellOutput:
    """Show predicted times on every GPU without records, a row for each ladder, all from the book's GPU."""
    sheets = unrecorded()
    by_gpu = [{one.ladder: one for one in predictions(sheet)} for sheet in sheets]
    names = [name for name in ladder_names() if any(name in of for of in by_gpu)]
    rows = []
    for name in names:
        rungs = list(dict.fromkeys(of[name].rung for of in by_gpu if name in of))
        rows.append([name, rungs[0], *(_predicted(of.get(name), rungs[0]) for of in by_gpu)])
    caption = f"Predicted, not measured: times from the records of {records.BOOK_GPU} and the data sheets"
    return table(rows, ["ladder", "rung", *(sheet.name for sheet in sheets)], caption=caption)


def _predicted(one: Prediction | None, rung: str) -> str:
    """Format the time, with the rung if it differs from the row's, and the limit if it is not memory."""
    if one is None:
        return ""
    notes = ([one.rung] if one.rung != rung else []) + ([one.limited_by] if one.limited_by != "memory" else [])
    return time_text(one.seconds) + (f" ({', '.join(notes)})" if notes else "")


def prediction_errors() -> dict[str, list[Prediction]]:
    """Return, for each recorded GPU but the book's, the predictions that can be compared with its record, by data
    sheet."""
    known = {folder.name for folder in folders()} - {records.BOOK_GPU}
    sheets = [sheet for sheet in SHEETS if sheet.folder in known]
    return {one.name: [p for p in predictions(one) if p.error is not None] for one in sheets}


def errors_table() -> CellOutput:
    """Show predicted beside measured times of the GPUs that have both; a single row says so if no GPU has."""
    rows = [
        [
            gpu,
            one.ladder,
            time_text(one.seconds),
            time_text(one.measured_s or 0.0),
            f"{round(100 * (one.error or 0)):+d} %",
        ]
        for gpu, several in prediction_errors().items()
        for one in several
    ]
    columns = ["GPU", "ladder", "predicted", "measured", "prediction is off by"]
    return table(rows or [["pending", "", "", "", ""]], columns, caption="Predictions beside measured times")
