"""The form of a chapter, as rules: each takes a notebook and returns the problems that it finds."""

from __future__ import annotations

import ast
import functools
import itertools
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import nbformat
import yaml

from climb.bench import standalone
from climb.cli.scaffold.first_cell import Address, first_cell, read_address

from . import prose

Notebook = nbformat.NotebookNode
Rule = Callable[[Notebook], list[str]]

#: The beginning of every chapter's first code cell, with the address that _config.yml has: `make address` writes it.
FIRST_CELL = first_cell(read_address(Path(__file__).resolve().parents[2] / "_config.yml"))
KERNELSPEC = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}
#: The tags that a cell may have, and the reason for each.
TAGS: dict[str, str] = {
    "nbval-ignore-output": "the one cell that names the device, whose output differs between a GPU and the emulator",
    "raises-exception": "an exhibit's error is the point; nbval compares its name and message",
    "hide-input": "code that a reader may open, since the text is about its result",
    "remove-input": "the card, a figure or a number, where the call adds nothing to the result",
    "remove-output": "numbers that the text quotes: printed in the notebook, pasted into prose in the book",
    "remove-cell": "numbers that the text quotes, where the code that computes them is of no interest either",
    "hide-cell": "the solution of an exercise, folded with its output",
    "hide-output": "a long listing, folded",
    "standalone": "a kernel as a string, launched and timed; a test runs it outside the book, after import cupy as cp",
}
FIGURE_KEYS = {"image": {"alt", "width", "classes"}, "figure": {"name", "caption"}}
#: The most lines of a code cell, not counting a kernel's source in a string.
LINES = 14
#: The most columns of a line of CUDA, in a file or in a string: what a page of the book shows beside its margins.
CUDA_COLUMNS = 88
#: Folders of the machine that executed the notebook, which no output may contain.
MACHINE = re.compile(r"(?<![\w./])/(?:home|root|tmp|work|Users|private|var|opt)/\w")

#: Control characters, raw or as `repr` writes them: a browser refuses an SVG that contains one.
#: Colours of a terminal; one may end in a letter just before a path.
COLOUR = re.compile(r"\x1b\[[0-9;]*m")
CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1a\x1c-\x1f]|\\x00")


def read(path: Path) -> Notebook:
    """A notebook as it stands in its file, which many tests read and none may change."""
    return _read(path, path.stat().st_mtime_ns)


@functools.lru_cache(maxsize=64)
def _read(path: Path, changed: int) -> Notebook:
    """The notebook in a file; ``changed`` is the time of its last change."""
    return nbformat.read(path, as_version=nbformat.NO_CONVERT)


def read_sources(path: Path) -> Notebook:
    """The cells of a notebook without their outputs: what is asked while tests are collected, of every chapter by every
    worker, where it counts that this takes a twentieth of the time of :func:`read`."""
    cells = msgspec.json.decode(path.read_bytes(), type=_Sources).cells
    return nbformat.from_dict({"cells": [{"cell_type": one.cell_type, "source": "".join(one.source)} for one in cells]})


class _Cell(msgspec.Struct):
    cell_type: str
    source: str | list[str]


class _Sources(msgspec.Struct):
    cells: list[_Cell]


def toc_files(toc: Path) -> list[str]:
    """The files that a `_toc.yml` lists, in order, as written there."""

    def walk(node: Any) -> Iterator[str]:
        if isinstance(node, dict):
            yield from (node[key] for key in ("root", "file") if key in node)
            for value in node.values():
                yield from walk(value)
        elif isinstance(node, list):
            for value in node:
                yield from walk(value)

    return list(walk(yaml.safe_load(toc.read_text(encoding="utf-8"))))


def toc_problems(root: Path) -> list[str]:
    """Files of book/ that the table of contents lacks, files that book/ lacks, and files listed twice."""
    listed = toc_files(root / "_toc.yml")
    there = {path.relative_to(root).with_suffix("").as_posix()
             for suffix in ("ipynb", "md") for path in (root / "book").rglob(f"*.{suffix}")
             if ".ipynb_checkpoints" not in path.parts}  # fmt: skip
    return (
        [f"{name} is in _toc.yml but not in book/" for name in listed if name not in there]
        + [f"{name} is not in _toc.yml" for name in sorted(there - set(listed))]
        + [f"{name} is in _toc.yml twice" for name in sorted({n for n in listed if listed.count(n) > 1})]
    )


def format_problems(nb: Notebook) -> list[str]:
    """The notebook is valid, of version 4.5, and has only the metadata that `make run` leaves."""
    try:
        nbformat.validate(nb)
    except nbformat.ValidationError as error:
        return [f"not a valid notebook: {str(error).splitlines()[0]}"]
    found = [] if (nb.nbformat, nb.nbformat_minor) == (4, 5) else [f"format {nb.nbformat}.{nb.nbformat_minor}, not 4.5"]
    if dict(nb.metadata) != {"kernelspec": KERNELSPEC}:
        found.append(f"the notebook's metadata is {dict(nb.metadata)}, not the kernelspec alone; `make run` cleans it")
    for number, cell in enumerate(nb.cells):
        if extra := set(cell.metadata) - {"tags", "mystnb"}:
            found.append(f"cell {number}: metadata {sorted(extra)}; `make run` removes it")
        for key, value in cell.metadata.get("mystnb", {}).items():
            if key not in FIGURE_KEYS or not set(value) <= FIGURE_KEYS[key]:
                found.append(f"cell {number}: mystnb {key} {value}; known are {FIGURE_KEYS}")
    return found


def execution_problems(nb: Notebook) -> list[str]:
    """Executed once, in order, from a fresh kernel; nothing on stderr, nothing of the machine in an output."""
    code = _code(nb)
    counts = [cell.execution_count for _, cell in code]
    found = [] if counts == list(range(1, len(code) + 1)) else [f"executed as {counts}, not 1..{len(code)}: `make run`"]
    for number, cell in code:
        if not cell.source.strip():
            found.append(f"cell {number} is empty")
        for output in cell.outputs:
            if output.output_type == "stream" and output.name == "stderr":
                found.append(f"cell {number} prints on stderr: {output.text[:60]!r}")
            if match := MACHINE.search(COLOUR.sub(" ", "\n".join([_text_of(output), *output.get("traceback", ())]))):
                found.append(f"cell {number}: its output names a folder of one machine, {match[0]}...")
            if match := CONTROL.search(str(dict(output.get("data", {}))) + _text_of(output)):
                found.append(f"cell {number}: its output holds the control character {match[0]!r}")
    return found


def tag_problems(nb: Notebook) -> list[str]:
    """Every tag has a reason, and only the cell that names the device has an unchecked output."""
    found = []
    for number, cell in enumerate(nb.cells):
        tags = cell.metadata.get("tags", [])
        found += [f"cell {number}: tag {tag} has no reason in TAGS" for tag in tags if tag not in TAGS]
        if "nbval-ignore-output" in tags and "announce(" not in cell.source:
            found.append(f"cell {number}: nbval-ignore-output, but it does not name the device (announce)")
        if re.search(r"#\s*(NBVAL|PYTEST_VALIDATE)_\w+", cell.source):
            found.append(f"cell {number}: an nbval comment; use a tag, which the page does not show")
        raised = any(output.output_type == "error" for output in cell.get("outputs", []))
        if raised != ("raises-exception" in tags):
            found.append(f"cell {number}: raises-exception is for cells that raise, and for all of them")
    return found


def first_cell_problems(nb: Notebook) -> list[str]:
    """The first code cell puts climb/ on the path, and prints where the chapter runs."""
    code = _code(nb)
    if not code:
        return []
    _, first = code[0]
    found = []
    if not first.source.startswith(FIRST_CELL):
        found.append(f"the first code cell must begin with {FIRST_CELL!r}; `make address` writes it")
    if "announce(" not in first.source:
        found.append("the first code cell must call announce()")
    return found


def length_problems(nb: Notebook) -> list[str]:
    """Code cells are short, and each one that is shown has a sentence before it."""
    found = []
    in_clone = first_cell(Address())
    for number, cell in _code(nb):
        source = cell.source.replace(FIRST_CELL, in_clone, 1)  # what installs the book is not the author's
        if (lines := _lines(source)) > LINES:
            found.append(f"cell {number} has {lines} lines; the most is {LINES}, plumbing belongs into climb")
        shown = not {"remove-input", "hide-input", "hide-cell", "remove-cell"} & set(cell.metadata.get("tags", []))
        if shown and (number == 0 or nb.cells[number - 1].cell_type != "markdown"):
            found.append(f"cell {number} has no sentence before it")
    return found


def cuda_problems(nb: Notebook) -> list[str]:
    """Lines of CUDA in strings that do not fit a page of the book."""
    return [
        f"cell {number}: {len(line)} columns of CUDA: {line}"
        for number, cell in _code(nb)
        for node in _strings(cell.source)
        if "__global__" in node.value or "__device__" in node.value
        for line in node.value.splitlines()
        if len(line) > CUDA_COLUMNS
    ]


def figure_problems(nb: Notebook) -> list[str]:
    """A cell has at most one figure, with a name, a caption and alt text, and the text refers to it."""
    found = []
    text = "\n".join(cell.source for cell in nb.cells if cell.cell_type == "markdown")
    for number, cell in _code(nb):
        images = [o for o in cell.outputs if any(kind.startswith("image/") for kind in o.get("data", {}))]
        mystnb = cell.metadata.get("mystnb", {})
        alt, figure = mystnb.get("image", {}).get("alt", ""), mystnb.get("figure", {})
        if len(images) > 1:
            found.append(f"cell {number} has {len(images)} figures; one a cell")
        if not images:
            found += [f"cell {number} describes a figure that it does not draw"] if mystnb else []
        else:
            if len(alt.split()) < 5:
                found.append(f"cell {number}: alt text that says what the figure says (has {alt!r})")
            if not figure.get("caption") or not figure.get("name", "").startswith("fig-"):
                found.append(f"cell {number}: a caption, and a name that begins with fig- (has {dict(figure)})")
            elif not re.search(rf"(?<![\w-]){re.escape(figure['name'])}(?![\w-])", text):
                found.append(f"cell {number}: the text does not speak of {figure['name']}")
        for output in cell.outputs:
            page = output.get("data", {}).get("text/html", "")
            if re.search(r"<img(?![^>]*\balt=\"[^\"]+\")", page):
                found.append(f"cell {number}: an <img> without alt text")
            if re.search(r"<svg(?![^>]*\b(?:aria-label|aria-hidden)=)", page):
                found.append(f"cell {number}: an <svg> without aria-label")
    return found


def prose_problems(nb: Notebook) -> list[str]:
    """No measured number is typed by hand, in text, captions or alt text; no value stands inside of `code`, and no
    file's name outside of it."""
    found = []
    for number, cell in enumerate(nb.cells):
        mystnb = cell.metadata.get("mystnb", {})
        said = [cell.source] if cell.cell_type == "markdown" else []
        said += [mystnb.get("figure", {}).get("caption", ""), mystnb.get("image", {}).get("alt", "")]
        found += [f"cell {number}: typed by hand: {hit}" for text in said for hit in prose.typed_numbers(text)]
        quoted = (hit for text in said for hit in re.findall(r"`\{glue:\w*\}`\w+``", text))
        found += [f"cell {number}: shown as it is written, not as its value: {hit}" for hit in quoted]
        hosts = (hit for text in said for hit in re.findall(r"(?<![\w`(/.-])\w+\.md\b(?!`)", text))
        found += [f"cell {number}: {hit} would become a link to a host of that name" for hit in hosts]
    return found


def said_problems(nb: Notebook) -> list[str]:
    """The output of `say` and `number` is hidden in the book, where the numbers stand in the text, as plain text."""
    shown = [
        f"cell {number} says numbers for the text, which the book would show: tag it remove-cell, or split it"
        for number, cell in _code(nb)
        if re.search(r"(?m)^(?:say|number)\(", cell.source)
        and not {"remove-output", "remove-cell"} & set(cell.metadata.get("tags", []))
    ]
    marked = [
        f"cell {number}: the text would show the backtick of {output.metadata.scrapbook.name}"
        for number, cell in _code(nb)
        for output in cell.outputs
        if "scrapbook" in output.get("metadata", {}) and "`" in "".join(map(str, output.data.values()))
    ]
    return shown + marked


def exercise_problems(nb: Notebook) -> list[str]:
    """Every exercise has a label and a folded solution."""
    text = "\n".join(cell.source for cell in nb.cells if cell.cell_type == "markdown")
    exercises = prose.directives(text, "exercise", "exercise-start")
    solutions = {d.argument: d for d in prose.directives(text, "solution", "solution-start")}
    found = [f"an exercise without a label: {d.text[:50]!r}" for d in exercises if not d.options.get("label")]
    labels = [d.options["label"] for d in exercises if d.options.get("label")]
    for label in labels:
        if label not in solutions:
            found.append(f"exercise {label} has no solution")
        elif "dropdown" not in solutions[label].options.get("class", ""):
            found.append(f"the solution of {label} is not folded (:class: dropdown)")
    return found + [f"a solution of no exercise: {name}" for name in solutions if name not in labels]


def excerpt_problems(nb: Notebook) -> list[str]:
    """The faults of excerpts of files: brackets must match, and the last line may not be blank or a pragma.

    A chapter gives line numbers, which become wrong when the file changes.
    """
    found = []
    for number, cell in _code(nb):
        for output in cell.outputs:
            data = output.get("data", {})
            html = data.get("text/html", "")
            if "rl-source" not in html or "rl-diff" in html:  # a difference holds the whole new file, and no excerpt
                continue
            rows = [re.sub(r"^ *\d+(?:  |$)", "", row) for row in data["text/plain"].split("\n")]
            code = [re.sub(r"//.*", "", re.sub(r'"(?:\\.|[^"\\])*"', '""', row)).strip() for row in rows]
            depths = list(itertools.accumulate((c in "([{") - (c in ")]}") for c in "".join(code)))
            if depths and (min(depths) < 0 or depths[-1]):
                found.append(f"cell {number} shows an excerpt whose brackets do not close, or did not open")
            if not rows[-1].strip() or code[-1].startswith("#pragma"):
                found.append(f"cell {number} shows an excerpt that ends with {rows[-1].strip()!r}")
    return found


def standalone_problems(nb: Notebook) -> list[str]:
    """Standalone cells are shown, and need only ``cp``, builtins, and each other."""
    found = []
    known = {"cp"}
    for number, cell in _code(nb):
        tags = set(cell.metadata.get("tags", []))
        if "standalone" not in tags:
            continue
        if hidden := tags - {"standalone"}:
            found.append(f"cell {number}: a standalone cell is shown and raises nothing, but it is {sorted(hidden)}")
        if re.search(r"(?m)^\s*(import|from|[%!])\b", re.sub(r'(?s)""".*?"""', "", cell.source)):
            found.append(f"cell {number}: a standalone cell imports nothing and has no magic command")
        known |= standalone.bound_names(cell.source)
        if foreign := standalone.used_names(cell.source) - known:
            found.append(f"cell {number} is standalone, but needs {', '.join(sorted(foreign))} from elsewhere")
    return found


def standalone_lacks(nb: Notebook) -> list[str]:
    """The parts that a chapter's standalone cells lack: a kernel, its launch through CuPy, a timing by events."""
    source = "\n".join(cell.source for _, cell in _code(nb) if "standalone" in cell.metadata.get("tags", []))
    wanted = {
        "a kernel in a string": r"__global__",
        "cp.RawKernel or cp.RawModule": r"\bcp\.Raw(Kernel|Module)\(",
        "a timing by cp.cuda.Event": r"\bcp\.cuda\.Event\((?s:.*)\bcp\.cuda\.get_elapsed_time\(",
    }
    return [f"no standalone cell has {what}" for what, pattern in wanted.items() if not re.search(pattern, source)]


RULES: tuple[Rule, ...] = (
    format_problems, execution_problems, tag_problems, first_cell_problems,
    length_problems, cuda_problems, figure_problems, prose_problems, said_problems, exercise_problems,
    excerpt_problems, standalone_problems,
)  # fmt: skip


def _code(nb: Notebook) -> list[tuple[int, Notebook]]:
    return [(number, cell) for number, cell in enumerate(nb.cells) if cell.cell_type == "code"]


def _text_of(output: Notebook) -> str:
    """All text of an output, without images; of an error only the message."""
    kinds = [text for kind, text in output.get("data", {}).items() if kind.startswith("text/")]
    return "\n".join([output.get("text", ""), output.get("evalue", ""), *map(str, kinds)])


def _lines(source: str) -> int:
    """The number of lines of a cell that are not blank and not in a string that holds a kernel."""
    kernel: set[int] = set()
    for node in _strings(source):
        if "__global__" in node.value:
            kernel.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return sum(bool(line.strip()) and n not in kernel for n, line in enumerate(source.splitlines(), 1))


def _strings(source: str) -> Iterator[ast.Constant]:
    """The strings of a cell; none where it is no Python."""
    try:
        tree = ast.parse(re.sub(r"(?m)^\s*[%!].*$", "pass", source))
    except SyntaxError:
        return
    yield from (node for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str))
