"""Cells that the reader's GPU cannot run: left out with the reason, instead of stopping the chapter.

The book's GPU has compute capability 9.0. An older one lacks instructions or shared memory that some cells need, and a
newer one lacks what only that architecture has. If another GPU's records are shown, they may lack a rung that a cell
asks for. Such a cell prints what is missing. The names it would have defined are then unknown, so a cell that uses them
is left out as well, and says so.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Callable
from types import TracebackType
from typing import Any

from climb.bench import cuda, records
from climb.bench.problem import RungUnavailable

#: The compute capability of the book's GPU, as CuPy spells it.
BOOK_CAPABILITY = "90"
_NAME = "__climb_cell__"
#: AST nodes that open their own scope.
_SCOPES = (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
#: The message of ptxas about an instruction or modifier that a target lacks, and the errors that quote it.
_NOT_THERE = re.compile(r"(?:Feature|Instruction|Modifier) [^\n]*?(?:not supported on|requires) \.target (\w+)[^\n]*")
_COMPILERS = ("CompileException", "NVRTCError", "CompileError")


class CellsGuarded(ast.NodeTransformer):
    """Puts each cell into a guard that notes why it cannot run; an expression at its end is still shown."""

    def visit_Module(self, node: ast.Module) -> ast.AST:
        """``body; shown`` becomes ``with __climb_cell__(names): body`` and ``__climb_cell__.show(lambda: shown)``."""
        if not node.body:
            return node
        *first, last = node.body
        guard = ast.Name(_NAME, ast.Load())
        names = ast.Constant(tuple(sorted(_defined(node))))
        shown: list[ast.stmt] = []
        if isinstance(last, ast.Expr):
            call = ast.Lambda(ast.arguments([], [], None, [], [], None, []), last.value)
            shown = [ast.Expr(ast.Call(ast.Attribute(guard, "show", ast.Load()), [call], []))]
        else:
            first.append(last)
        opened = ast.With([ast.withitem(ast.Call(guard, [names], []))], first or [ast.Pass()])
        node.body = [ast.copy_location(opened, node.body[0]), *(ast.copy_location(one, last) for one in shown)]
        return ast.fix_missing_locations(node)


class Guard:
    """The guard of a notebook's cells: the names that the running cell would define, and the names that left-out cells
    did not define."""

    def __init__(self, namespace: dict[str, Any], say: Callable[[str], object] = print) -> None:
        self._namespace, self._say = namespace, say
        self._names: tuple[str, ...] = ()
        self._missing: set[str] = set()
        self._left_out = False

    def __call__(self, names: tuple[str, ...]) -> Guard:
        self._names, self._left_out = names, False
        return self

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        if error is None:
            self._missing -= set(self._names)
            return False
        return self._leave_out(error)

    def show(self, value: Callable[[], object]) -> object:
        """Return the value of the expression that ends a cell; None if the cell is left out."""
        if self._left_out:
            return None
        try:
            return value()
        except Exception as error:
            if self._leave_out(error):
                return None
            raise

    def _leave_out(self, error: BaseException) -> bool:
        """Return whether the error excludes the cell; if so, print the reason and delete the names the cell may have
        defined."""
        reason = why(error)
        if not reason and isinstance(error, NameError) and error.name in self._missing:
            reason = f"it uses {error.name} of a cell that was left out"
        if not reason:
            return False
        self._say(f"Left out on this GPU: {reason}")
        for name in self._names:
            self._namespace.pop(name, None)
        self._missing |= set(self._names)
        self._left_out = True
        return True


def why(error: BaseException) -> str:
    """Explain why this GPU cannot run the code that raised the error, or why its records do not hold what the code asks
    for; "" if the error has another cause. The book's own GPU has to have all that its chapters ask for."""
    if isinstance(error, RungUnavailable) or (isinstance(error, records.PendingRung) and _shows_another()):
        return str(error)
    if type(error).__name__ not in _COMPILERS:
        return ""
    found = sorted(_NOT_THERE.finditer(str(error)), key=lambda one: one[1])
    return f"{type(error).__name__}: {found[-1][0].strip()}" if found else ""


def guard_cells_in_notebook() -> None:
    """Guard the cells of this notebook, if it is one and its GPU is not of the book's compute capability, or if the
    records shown are of another GPU."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    if shell is None or any(isinstance(one, CellsGuarded) for one in shell.ast_transformers):
        return
    if cuda.cp.cuda.Device().compute_capability == BOOK_CAPABILITY and not _shows_another():
        return
    shell.user_ns[_NAME] = Guard(shell.user_ns)
    shell.ast_transformers.append(CellsGuarded())


def _shows_another() -> bool:
    """Return whether the records shown are of another GPU than the book's."""
    return records.DEFAULT_GPU != records.BOOK_GPU


def _defined(module: ast.Module) -> set[str]:
    """Return the names that a cell defines at its top level, except those that it imports."""
    found: set[str] = set()
    todo: list[ast.AST] = list(module.body)
    while todo:
        node = todo.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            found.add(node.name)
        elif isinstance(node, ast.Name):
            found |= {node.id} if isinstance(node.ctx, ast.Store) else set()
        elif not isinstance(node, _SCOPES):
            todo += ast.iter_child_nodes(node)
    return found
