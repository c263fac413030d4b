"""The claims of a chapter on another GPU than the book's: a false one is printed, instead of stopping the chapter.

A chapter asserts what its sentences say of the book's records. On the records of another GPU, such an assertion may be
false: that is a finding about the GPU, not a mistake in the chapter.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable

from climb.bench import records

_NAME = "__climb_claim__"


class ClaimsPrinted(ast.NodeTransformer):
    """Turns each ``assert`` of a cell into a call that prints the assertion if it is false, and continues."""

    def visit_Assert(self, node: ast.Assert) -> ast.AST:
        """``assert holds`` becomes ``__climb_claim__(lambda: holds, "holds")``."""
        holds = ast.Lambda(ast.arguments([], [], None, [], [], None, []), node.test)
        call = ast.Call(ast.Name(_NAME, ast.Load()), [holds, ast.Constant(ast.unparse(node.test))], [])
        return ast.fix_missing_locations(ast.copy_location(ast.Expr(call), node))


def show_claims_in_notebook() -> None:
    """Let this notebook, if it is one, print claims that do not hold on the reader's choice of GPU."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    if shell is None or any(isinstance(one, ClaimsPrinted) for one in shell.ast_transformers):
        return
    shell.user_ns[_NAME] = check_claim
    shell.ast_transformers.append(ClaimsPrinted())


def check_claim(holds: Callable[[], object], text: str) -> None:
    """Print a claim that does not hold, and the records of the book's GPU that it may use beside the chosen GPU's.

    ``holds`` is a function of no arguments. A claim about something that the records lack is printed, too.
    """
    try:
        true = holds()
    except LookupError as missing:
        print(f"Not known on {records.DEFAULT_GPU}, for want of {missing}: {text}")
        return
    if not true:
        mixed = f" (with {records.BOOK_GPU}'s records of {', '.join(records.STOOD_IN)})" if records.STOOD_IN else ""
        print(f"Not so on {records.DEFAULT_GPU}{mixed}: {text}")
