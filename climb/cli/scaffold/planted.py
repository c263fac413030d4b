"""The tests of a chapter's rungs, ``tests/kernels/<chapter>/test_rungs.py``: sizes to draw from, planted faults."""

from __future__ import annotations

import ast
from pathlib import Path

from climb import paths
from climb.bench.ladder import Ladder
from climb.cli.scaffold import python_source
from climb.cli.scaffold.changes import shown, tidy


def tests_of(chapter: str) -> Path:
    """Return the module that tests the rungs of a chapter's ladders."""
    return paths.ROOT / "tests" / "kernels" / chapter / "test_rungs.py"


def copy_faults(ladder: Ladder, before: str, name: str, source: str) -> str | None:
    """Plant in the rung ``name`` a fault of the rung ``before``, of which it is a copy.

    Returns None, or the line to add by hand if no fault of ``before`` fits ``source``.
    """
    path = tests_of(ladder.folder.parent.name)
    if not path.exists():
        return by_hand(ladder.name, name)
    text = path.read_text(encoding="utf-8")
    listed = python_source.assigned(ast.parse(text), "PLANTED")
    faults = [one for one in getattr(listed, "elts", []) if _is_of(one, ladder.name, before, source)]
    if not faults:
        return by_hand(ladder.name, name)
    start, end = python_source.span(text, faults[-1])
    in_name = python_source.span(text, faults[-1].elts[1])
    fault = python_source.replace(text[start:end], {(in_name[0] - start, in_name[1] - start): f'"{name}"'})
    if len(fault) > 115 and "\n" not in fault:
        fault = fault.replace(f'"{name}", ', f'"{name}",\n     ', 1)
    path.write_text(python_source.insert_after(text, faults[-1], fault), encoding="utf-8")
    tidy([path])
    print(f"changed  {shown(path)}")
    return None


def by_hand(ladder: str, rung: str) -> str:
    """Return the line that an author adds to ``PLANTED`` and completes."""
    return f'("{ladder}", "{rung}", "the text", "the text with a mistake", WrongResult),'


def add_ladder(text: str, name: str, sizes: str, fault: str) -> str | None:
    """Return the module's text with another ladder, or None if ``SIZES`` or ``PLANTED`` is not a display with
    entries."""
    tree = ast.parse(text)
    drawn, listed = python_source.assigned(tree, "SIZES"), python_source.assigned(tree, "PLANTED")
    if not (isinstance(drawn, ast.Dict) and drawn.values and isinstance(listed, ast.List)):
        return None
    if listed.elts:
        text = python_source.insert_after(text, listed.elts[-1], fault)
    else:
        text = python_source.replace(text, {python_source.span(text, listed): f"[\n    {fault},\n]"})
    key, value = drawn.keys[-1], drawn.values[-1]
    if key is None or drawn.lineno > listed.lineno:
        return None
    # An entry of a dictionary goes behind its value; its indentation is the key's.
    end = python_source.span(text, value)[1]
    comma = text.find(",", end) + 1 if text[end:].lstrip().startswith(",") else end
    separator = "" if comma > end else ","
    return f'{text[:comma]}{separator}\n{" " * key.col_offset}"{name}": {sizes},{text[comma:]}'


def _is_of(fault: ast.expr, ladder: str, rung: str, source: str) -> bool:
    """Return whether a planted fault belongs to this rung, and its original text occurs once in ``source``."""
    if not (isinstance(fault, ast.Tuple) and len(fault.elts) == 5):
        return False
    given = [one.value if isinstance(one, ast.Constant) else None for one in fault.elts[:3]]
    return given[:2] == [ladder, rung] and isinstance(given[2], str) and source.count(given[2]) == 1
