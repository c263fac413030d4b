"""Mistakes in Python, made on the syntax tree and written into the text at the node's place.

Annotations, decorators, docstrings, messages (arguments of ``raise`` and of f-strings), ``strict=`` and code under ``if
TYPE_CHECKING`` or ``if __name__ == "__main__"`` are left alone. So is code that cannot change a result, by rules
without exceptions: methods of a ``Protocol``, which are never called, and ``__repr__``; how long to wait (``timeout=``)
and how much to remember (``maxsize=``); ``flush=`` of lines for stderr, which is written line by line; the -1 in
``reshape(-1)``, for which NumPy takes any negative number; and the number of splits of a text if only its outermost
part is used.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from climb.validation.mutation.mutants import Mutant

_COMPARES = {
    ast.Lt: ("<", "<="), ast.LtE: ("<=", "<"), ast.Gt: (">", ">="), ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="), ast.NotEq: ("!=", "=="), ast.In: ("in", "not in"), ast.Is: ("is", "is not"),
}  # fmt: skip
_BINARY = {
    ast.Add: ("+", "-"), ast.Sub: ("-", "+"), ast.Mult: ("*", "+"), ast.FloorDiv: ("//", "*"), ast.Div: ("/", "*"),
    ast.Mod: ("%", "//"), ast.BitAnd: ("&", "|"), ast.BitOr: ("|", "&"), ast.LShift: ("<<", ">>"),
    ast.RShift: (">>", "<<"),
}  # fmt: skip
#: Keywords whose values are not mutated: ``strict`` of zip guards against mistakes, and removing a guard is not a
#: mistake.
_KEYWORDS = ("strict", "timeout", "maxsize")
#: The index of the part that is the same, however often a text is split from this side.
_OUTERMOST = {"split": "0", "rsplit": "-1"}


class _Finder(ast.NodeVisitor):
    """Collects (operator, start, end, new) of every mistake."""

    def __init__(self, text: str) -> None:
        self.text = text
        encoded = text.splitlines(keepends=True)
        self._starts = [0]
        for line in encoded:
            self._starts.append(self._starts[-1] + len(line))
        self._lines = encoded
        self.found: list[tuple[str, int, int, str]] = []

    def _at(self, line: int, column: int) -> int:
        """Return the character offset of a position of the tree, whose columns count bytes."""
        return self._starts[line - 1] + len(self._lines[line - 1].encode()[:column].decode())

    def _span(self, node: ast.AST) -> tuple[int, int]:
        return self._at(node.lineno, node.col_offset), self._at(node.end_lineno, node.end_col_offset)

    def _add(self, operator: str, node: ast.AST, new: str) -> None:
        self.found.append((operator, *self._span(node), new))

    def _between(self, operator: str, left: ast.AST, right: ast.AST, old: str, new: str) -> None:
        """Replace the operator between two operands."""
        start, end = self._span(left)[1], self._span(right)[0]
        at = self.text.find(old, start, end)
        if at >= 0:
            self.found.append((operator, at, at + len(old), new))

    # What is left alone

    def visit_Raise(self, node: ast.Raise) -> None:
        """Skip messages: their words are not mistakes."""

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """Skip f-strings: the values in them are not mistakes either."""

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)

    def visit_arguments(self, node: ast.arguments) -> None:
        for default in (*node.defaults, *(d for d in node.kw_defaults if d is not None)):
            self.visit(default)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        if node.name != "__repr__":
            self.visit(node.args)
            for each in node.body:
                self.visit(each)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        if not any(ast.unparse(base).split("[", 1)[0].endswith("Protocol") for base in node.bases):
            for each in node.body:
                self.visit(each)

    def visit_If(self, node: ast.If) -> None:
        if ast.unparse(node.test) in ("TYPE_CHECKING", "__name__ == '__main__'"):
            return
        start, end = self._span(node.test)
        self.found.append(("guards", start, end, f"not ({self.text[start:end]})"))
        self.generic_visit(node)

    def visit_Expr(self, node: ast.Expr) -> None:
        if isinstance(node.value, ast.Constant):
            return  # a docstring
        if isinstance(node.value, ast.Call):
            self._add("calls", node, "pass")
        self.generic_visit(node)

    def visit_keyword(self, node: ast.keyword) -> None:
        if node.arg not in _KEYWORDS:
            self.visit(node.value)

    def visit_Call(self, node: ast.Call) -> None:
        name = node.func.attr if isinstance(node.func, ast.Attribute) else ast.unparse(node.func)
        to_stderr = any(one.arg == "file" and ast.unparse(one.value) == "sys.stderr" for one in node.keywords)
        self.visit(node.func)
        for argument in node.args:
            if not (name == "reshape" and ast.unparse(argument) == "-1"):
                self.visit(argument)
        for keyword in node.keywords:
            if not (name == "print" and to_stderr and keyword.arg == "flush"):
                self.visit(keyword)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        parts = node.value
        if (
            isinstance(parts, ast.Call)
            and isinstance(parts.func, ast.Attribute)
            and _OUTERMOST.get(parts.func.attr) == ast.unparse(node.slice)
        ):
            self.visit(parts.func)
        else:
            self.visit(parts)
        self.visit(node.slice)

    # Mistakes

    def visit_Compare(self, node: ast.Compare) -> None:
        operands = [node.left, *node.comparators]
        for op, left, right in zip(node.ops, operands, operands[1:], strict=False):
            if type(op) in _COMPARES:
                self._between("bounds", left, right, *_COMPARES[type(op)])
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        textual = isinstance(node.left, ast.Constant | ast.JoinedStr) and isinstance(
            getattr(node.left, "value", ""), str
        )
        if type(node.op) in _BINARY and not textual:
            self._between("indices", node.left, node.right, *_BINARY[type(node.op)])
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        old, new = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
        for left, right in zip(node.values, node.values[1:], strict=False):
            self._between("guards", left, right, old, new)
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        if isinstance(node.op, ast.Not):
            start, end = self._span(node.operand)
            self._add("guards", node, f"({self.text[start:end]})")
        self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        if type(node.op) in (ast.Add, ast.Sub, ast.BitOr, ast.BitAnd, ast.Mult):
            old = {ast.Add: "+=", ast.Sub: "-=", ast.BitOr: "|=", ast.BitAnd: "&=", ast.Mult: "*="}[type(node.op)]
            self._between("accumulates", node.target, node.value, old, "=")
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, bool):
            self._add("constants", node, str(not node.value))
        elif isinstance(node.value, int):
            self._add("constants", node, str(node.value + 1))

    def visit_Continue(self, node: ast.Continue) -> None:
        self._add("guards", node, "break")

    def visit_Break(self, node: ast.Break) -> None:
        self._add("guards", node, "continue")


def mutants(file: str, text: str) -> Iterator[Mutant]:
    """Return all mutants of a Python source. Only when one is drawn is it checked to be a different, valid program:
    compiling all would take minutes."""
    finder = _Finder(text)
    finder.visit(ast.parse(text))
    for operator, start, end, new in finder.found:
        yield Mutant(file, operator, start, end, new, text)
