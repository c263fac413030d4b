"""Insertions into Python modules by the positions of their syntax tree: everything else keeps its text."""

from __future__ import annotations

import ast
from collections.abc import Iterator


def offset(text: str, line: int, column: int) -> int:
    """Return the index of a position of ``ast``: lines from 1, columns in bytes of UTF-8."""
    lines = text.splitlines(keepends=True)
    return sum(map(len, lines[: line - 1])) + len(lines[line - 1].encode()[:column].decode())


def span(text: str, node: ast.expr | ast.stmt) -> tuple[int, int]:
    """Return where a node's text starts and ends."""
    end_line, end_column = node.end_lineno or node.lineno, node.end_col_offset or node.col_offset
    return offset(text, node.lineno, node.col_offset), offset(text, end_line, end_column)


def replace(text: str, pieces: dict[tuple[int, int], str]) -> str:
    """Return the text with other pieces at spans that do not overlap."""
    for (start, end), piece in sorted(pieces.items(), reverse=True):
        text = text[:start] + piece + text[end:]
    return text


def insert_after(text: str, node: ast.expr, piece: str) -> str:
    """Return the text with another element behind ``node``, which is an element of a tuple or a list."""
    start, end = span(text, node)
    rest = text[end:]
    comma = len(rest) - len(rest.lstrip())
    if rest[comma : comma + 1] == ",":
        end += comma + 1
        before = text[text.rfind("\n", 0, start) + 1 : start]
        if before.strip():  # the tuple begins on the same line
            return f"{text[:end]} {piece},{text[end:]}"
        stop = text.find("\n", end)
        return f"{text[:stop]}\n{before}{piece},{text[stop:]}"
    return f"{text[:end]}, {piece}{rest}"


def assigned(tree: ast.Module, name: str) -> ast.expr | None:
    """Return the value that a module's top level assigns to ``name``."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == name for t in node.targets):
            return node.value
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.target.id == name:
            return node.value
    return None


def defined(tree: ast.Module) -> set[str]:
    """Return the names that a module's top level defines or imports."""
    found: set[str] = set()
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            found |= {(alias.asname or alias.name).split(".")[0] for alias in node.names}
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            found |= {name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)}
    return found


def with_imports(text: str, module: str, names: set[str]) -> str:
    """Return the text with ``from module import names``, merged into an existing line if there is one."""
    imports = [node for node in ast.parse(text).body if isinstance(node, ast.Import | ast.ImportFrom)]
    for node in imports:
        if isinstance(node, ast.ImportFrom) and node.module == module and not any(a.name == "*" for a in node.names):
            known = {f"{a.name} as {a.asname}" if a.asname else a.name for a in node.names}
            if names <= known:
                return text
            return replace(text, {span(text, node): _import(module, known | names)})
    end = span(text, imports[-1])[1] if imports else 0
    return f"{text[:end]}\n{_import(module, names)}{text[end:]}"


def strings(node: ast.AST) -> Iterator[ast.Constant]:
    """Yield the string literals within a node, except the parts of f-strings, which have no position of their own."""
    inside = {id(part) for one in ast.walk(node) if isinstance(one, ast.JoinedStr) for part in one.values}
    for one in ast.walk(node):
        if isinstance(one, ast.Constant) and isinstance(one.value, str) and id(one) not in inside:
            yield one


def quoted(value: str) -> str:
    """Return a string literal in double quotes."""
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def _import(module: str, names: set[str]) -> str:
    """Format an import on one line, or with one name per line if it would be too long."""
    line = f"from {module} import {', '.join(sorted(names))}"
    return line if len(line) <= 120 else f"from {module} import (\n    " + ",\n    ".join(sorted(names)) + ",\n)"
