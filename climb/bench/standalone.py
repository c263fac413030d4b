"""The cells of a chapter that run outside the book: tagged ``standalone``, they need only ``import cupy as cp``.

All standalone cells of a chapter, in order, are one script. A cell is identified by a hash of its code, with CUDA
strings reduced to their tokens. Comments and layout of Python or CUDA may change without changing the hash.
"""

from __future__ import annotations

import ast
import builtins
import functools
import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from climb import paths
from climb.bench import identity

TAG = "standalone"
BOOK = paths.ROOT / "book"
#: The name of the rule; it goes into every hash, so that hashes by another rule never match.
_RULE = "cell-1"


@dataclass(frozen=True)
class Cell:
    """One standalone cell: its place among the notebook's cells, its code, and what it printed when it was committed.

    ``chain`` holds the hashes of the standalone cells whose names it uses, in order, and its own hash last.
    """

    number: int
    source: str
    printed: str
    chain: tuple[str, ...]

    @property
    def timed(self) -> bool:
        """Return whether the cell measures a time."""
        return "get_elapsed_time" in self.source


def chapters(book: Path = BOOK) -> tuple[str, ...]:
    """Return the chapters that have a standalone cell, in alphabetical order."""
    return tuple(path.stem for path in sorted(book.glob("*.ipynb")) if standalone_cells(path))


def standalone_cells(notebook: Path) -> tuple[Cell, ...]:
    """Return the standalone cells of a notebook, in order. Raises SyntaxError for one that is not plain Python."""
    return _cells(notebook.read_bytes())


@functools.lru_cache(maxsize=32)
def _cells(notebook: bytes) -> tuple[Cell, ...]:
    """Return the standalone cells of a notebook with these contents. A report needs those of all chapters several
    times."""
    cells = json.loads(notebook)["cells"]
    tagged = [(n, cell) for n, cell in enumerate(cells) if TAG in cell["metadata"].get("tags", ())]
    sources = ["".join(cell["source"]) for _, cell in tagged]
    printed = ["".join("".join(o.get("text", "")) for o in cell.get("outputs", ())) for _, cell in tagged]
    found = zip(tagged, sources, printed, chains(sources), strict=True)
    return tuple(Cell(n, source, text, chain) for (n, _), source, text, chain in found)


def chains(sources: Sequence[str]) -> list[tuple[str, ...]]:
    """Return, for each cell, the hashes of the earlier cells that it needs, directly or through another, and its
    own."""
    digests = [cell_sha256(source) for source in sources]
    needs: list[set[int]] = []
    for position, source in enumerate(sources):
        used = used_names(source)
        direct = {n for n in range(position) if used & bound_names(sources[n])}
        needs.append(direct.union(*(needs[n] for n in direct)))
    return [(*(digests[n] for n in sorted(need)), digest) for need, digest in zip(needs, digests, strict=True)]


def cell_sha256(source: str) -> str:
    """Return the hash of a cell's code. Raises SyntaxError if it is not plain Python."""
    what = {"rule": _RULE, "code": _plain(ast.parse(source))}
    return hashlib.sha256(json.dumps(what).encode()).hexdigest()


def bound_names(source: str) -> set[str]:
    """Return the names that a cell gives a value, in any of its scopes."""
    return set(_bound(ast.parse(source)))


def used_names(source: str) -> set[str]:
    """Return the names that a cell reads in a statement before one of its own statements binds them, except
    builtins."""
    bound = set(vars(builtins))
    used: set[str] = set()
    for statement in ast.parse(source).body:
        read = {n.id for n in ast.walk(statement) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
        used |= read - bound
        bound.update(_bound(statement))
    return used


def _bound(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            yield node.name
        elif isinstance(node, ast.arg):
            yield node.arg


def _plain(node: Any) -> Any:
    """Return a syntax tree as JSON, without positions and empty fields, which differ between versions of Python."""
    if isinstance(node, ast.Constant):
        text = node.value
        if isinstance(text, str) and "__global__" in text:
            return ["CUDA", identity.tokens(text)]
        return ["Constant", type(text).__name__, repr(text)]
    if isinstance(node, ast.AST):
        fields = {name: _plain(value) for name, value in ast.iter_fields(node) if value is not None and value != []}
        if isinstance(node, ast.JoinedStr) and "values" in fields:  # Python 3.12 adds an empty text to some
            fields["values"] = [one for one in fields["values"] if one != ["Constant", "str", "''"]]
        return [type(node).__name__, fields]
    return [_plain(item) for item in node] if isinstance(node, list) else node
