"""Which module imports which, read from source, and whether ARCHITECTURE.md allows it."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

#: The floors, from below. A room may import itself and what is listed.
MAY_IMPORT: dict[str, frozenset[str]] = {
    "toolchain": frozenset(),
    "emulator": frozenset({"toolchain"}),
    "lab": frozenset({"emulator", "toolchain"}),
    "problem": frozenset({"lab"}),
    "exercises": frozenset({"lab", "problem"}),
}
#: What a room may take from outside the repository and the standard library; rooms not named here: anything.
LIBRARIES: dict[str, frozenset[str]] = {"emulator": frozenset({"numpy"})}
#: Imports whose name is made at run time: where, and why that is no way upwards that a reader would miss.
COMPUTED: dict[str, str] = {
    "climb/bench/registry.py": "finds the ladders by their folders, so that adding a problem changes nothing below it",
    "climb/bench/exercise.py": "its command prints the cells of the exercises that the command line names",
}
_NOT_ROOMS = ("tests", "book")
_IMPORTERS = ("import_module", "__import__", "find_spec", "run_module")
_UNKNOWN = "?"


@dataclass(frozen=True)
class Import:
    """One import: the module that is named (`?` where it is computed), and the line."""

    module: str
    line: int


def violations(root: Path) -> list[str]:
    """Every import under ``root``/kernels that its floor forbids, as `file:line: what and why`."""
    found: list[str] = []
    for path in sorted((root / "kernels").rglob("*.py")):
        name = path.relative_to(root).as_posix()
        for used in imports(path.read_text(encoding="utf-8"), name):
            if reason := _forbidden(name, used.module):
                found.append(f"{name}:{used.line}: {reason}")
    return found


def imports(source: str, name: str) -> Iterator[Import]:
    """The imports of a module, relative ones and those by `importlib` resolved. ``name``: its path from the root."""
    package = name.split("/")[:-1]
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (Import(alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = _absolute("." * node.level + (node.module or ""), package)
            yield from (Import(f"{base}.{alias.name}", node.lineno) for alias in node.names)
        elif isinstance(node, ast.Call) and _called(node) in _IMPORTERS:
            yield Import(_named(node, package), node.lineno)


def room(module: str) -> str | None:
    """The room of a dotted module, `problem:<name>` for a problem; None for what is not ours."""
    parts = module.split(".")
    if parts[0] in _NOT_ROOMS:
        return parts[0]
    if parts[0] != "kernels":
        return None
    if len(parts) == 1:
        return "kernels"
    return parts[1] if parts[1] in MAY_IMPORT else f"problem:{parts[1]}"


def _forbidden(name: str, module: str) -> str:
    """Why the file may not import the module; "" if it may."""
    if module == _UNKNOWN:
        return "" if name in COMPUTED else "imports a module whose name is computed; name it, or say why in COMPUTED"
    here, there = room(name.removesuffix(".py").replace("/", ".")), room(module)
    if name == "kernels/__init__.py":
        here = "kernels"
    floor = str(here).split(":")[0]
    if there is None:
        library = module.split(".")[0]
        known = LIBRARIES.get(floor)
        if known is None or library in known or library in sys.stdlib_module_names:
            return ""
        return f"{floor} imports {library}; it may import {', '.join(sorted(known))} and the standard library"
    if there == here or there == "kernels":
        return ""
    if there.split(":")[0] in MAY_IMPORT.get(floor, frozenset()):
        return ""
    allowed = ", ".join(sorted(MAY_IMPORT.get(floor, ()))) or "nothing of ours"
    return f"{here} imports {there} ({module}); it may import {allowed}"


def _called(node: ast.Call) -> str:
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


def _named(node: ast.Call, package: list[str]) -> str:
    """The module that a call of `import_module` and its like names."""
    given = node.args[0] if node.args else next((k.value for k in node.keywords if k.arg in ("name", "mod_name")), None)
    if _below_itself(given):
        return ".".join(package)
    if not (isinstance(given, ast.Constant) and isinstance(given.value, str)):
        return _UNKNOWN
    anchor = node.args[1] if len(node.args) > 1 else None
    if isinstance(anchor, ast.Constant) and isinstance(anchor.value, str):
        package = anchor.value.split(".")
    return _absolute(given.value, package)


def _below_itself(given: ast.expr | None) -> bool:
    """Whether this is `f"{__name__}.x"`: a module of the package that asks, or beside the module that asks."""
    first = given.values[0] if isinstance(given, ast.JoinedStr) and given.values else None
    name = first.value if isinstance(first, ast.FormattedValue) else None
    return isinstance(name, ast.Name) and name.id in ("__name__", "__package__")


def _absolute(module: str, package: list[str]) -> str:
    level = len(module) - len(module.lstrip("."))
    if not level:
        return module
    base = package[: len(package) - level + 1]
    return ".".join([*base, *filter(None, [module.lstrip(".")])])
