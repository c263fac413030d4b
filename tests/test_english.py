"""The English of docstrings and comments: none opens with a bare clause, no phrase is one of ours.

A docstring, or a comment of a CUDA source, opens with an imperative ("Return whether ...") or a noun phrase ("The lanes
that ...").
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
#: Folders with Python files, and fewer files than each has: a folder that moved is noticed.
FOLDERS = {"climb": 500, "kernels": 150, "tests": 330, "book": 10}
#: The same for CUDA sources.
CUDA_FOLDERS = {"climb": 15, "kernels": 400}
#: Ladders of CUDA sources whose comments are still to be rewritten; each has an offence, or leaves this list.
TO_BE_REWRITTEN: tuple[str, ...] = ()
OPENING = re.compile(r"(?:What|Whether|How|Which|Why|As|Where|Who|Whose)\b")
#: Phrases that a native engineer would not write, as one regular expression, for text in lower case.
PHRASES = re.compile(
    r"\b(?:to be had|became of|becomes of|came of|of whom|whoever|the own|an own|so many|shall"
    r"|(?:is|are) whole|what is whole|(?:has|have|is|are)(?: it)? no more(?! than)|but for (?:what|whom)"
    r"|of which (?:only|nothing|the|each|a|at|there))\b"
)
#: The comments of a CUDA source, and the string literals, which may hold the same characters.
CUDA_TEXT = re.compile(r"//[^\n]*|/\*.*?\*/|\"(?:\\\\.|[^\"\\\\\n])*\"", re.DOTALL)
#: The module docstrings of commands: `climb COMMAND --help` prints them.
HELP_TEXTS = ROOT / "climb" / "cli"
#: The module that the tests of this file make up.
NEW = ROOT / "climb" / "bench" / "new.py"


def docstrings(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """The line and the text of every docstring, and of every string below an attribute."""
    blocks: list[ast.AST] = [tree]
    while blocks:  # statements alone: expressions, which ast.walk visits too, are most of a tree
        block = blocks.pop()
        for field in ("body", "orelse", "handlers", "finalbody", "cases"):
            for statement in getattr(block, field, ()):
                match statement:
                    case ast.Expr(value=ast.Constant(value=str(text))):
                        yield statement.lineno, text
                    case ast.Expr() | ast.Assign() | ast.Return():
                        pass
                    case _:
                        blocks.append(statement)


def comments(source: str) -> Iterator[tuple[int, str]]:
    """The line and the text of every comment; the lines of one block are joined."""
    begun, last, column, text = 0, -1, -1, ""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type != tokenize.COMMENT:
            continue
        line, at = token.start
        if line == last + 1 and at == column:
            text += " " + token.string.lstrip("#: ")
        else:
            if text:
                yield begun, text
            begun, column, text = line, at, token.string.lstrip("#: ")
        last = line
    if text:
        yield begun, text


def cuda_comments(source: str) -> Iterator[tuple[int, str]]:
    """The line and the text of every comment of a CUDA source; lines of comments alone are joined while they follow."""
    begun, last, text = 0, -1, ""
    for found in CUDA_TEXT.finditer(source):
        if found[0][0] == '"':
            continue
        line = source.count("\n", 0, found.start()) + 1
        alone = not source[source.rfind("\n", 0, found.start()) + 1 : found.start()].strip()
        words = re.sub(r"^[/*\s]+|[*/\s]+$", "", found[0])
        if alone and line == last + 1:
            text += " " + words
        else:
            if text:
                yield begun, text
            begun, text = line, words
        last = line if alone else -1
    if text:
        yield begun, text


def cuda_offences(path: Path, source: str) -> list[str]:
    """The breaches of the rules in a CUDA source, each with its file and line."""
    place = path.relative_to(ROOT) if path.is_relative_to(ROOT) else path
    found = []
    for line, text in cuda_comments(source):
        if opening := OPENING.match(text):
            found.append(f"{place}:{line}: opens with {opening[0]!r}: {text}")
        if phrase := PHRASES.search(" ".join(text.lower().split())):
            found.append(f"{place}:{line}: {phrase[0]!r}")
    return found


def to_be_rewritten(path: Path) -> str | None:
    return next((folder for folder in TO_BE_REWRITTEN if path.is_relative_to(ROOT / folder)), None)


def is_help_text(path: Path, line: int) -> bool:
    return path.parent == HELP_TEXTS and line == 1


def offences(path: Path, source: str) -> list[str]:
    """The breaches of the rules in a module, each with its file and line."""
    place = path.relative_to(ROOT) if path.is_relative_to(ROOT) else path
    found = []
    documents = [one for one in docstrings(ast.parse(source)) if not is_help_text(path, one[0])]
    for line, text in documents:
        if opening := OPENING.match(text.lstrip()):
            found.append(f"{place}:{line}: opens with {opening[0]!r}: {text.strip().splitlines()[0]}")
    # Tokenising takes most of the time: only modules with a phrase somewhere, if in code, need it.
    anywhere = PHRASES.search(re.sub(r"[\s#:]+", " ", source.lower()))
    for line, text in [*documents, *(comments(source) if anywhere else ())]:
        if phrase := PHRASES.search(" ".join(text.lower().split())):
            found.append(f"{place}:{line}: {phrase[0]!r}")
    return found


@pytest.mark.parametrize(("folder", "least"), FOLDERS.items())
def test_docstrings_and_comments_are_plain_english(folder: str, least: int) -> None:
    paths = sorted((ROOT / folder).rglob("*.py"))
    assert len(paths) > least
    found = [line for path in paths for line in offences(path, path.read_text(encoding="utf-8"))]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(("folder", "least"), CUDA_FOLDERS.items())
def test_comments_of_cuda_sources_are_plain_english(folder: str, least: int) -> None:
    paths = sorted(path for path in (ROOT / folder).rglob("*.cu*") if path.suffix in (".cu", ".cuh"))
    assert len(paths) > least
    offences_of = {path: cuda_offences(path, path.read_text(encoding="utf-8")) for path in paths}
    found = [line for path, lines in offences_of.items() if not to_be_rewritten(path) for line in lines]
    assert not found, "\n".join(found)
    left = {ladder for path, lines in offences_of.items() if lines and (ladder := to_be_rewritten(path))}
    assert left == {ladder for ladder in TO_BE_REWRITTEN if ladder.startswith(folder)}, (
        "these may leave TO_BE_REWRITTEN"
    )


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ('def f(a: int) -> bool:\n    """Whether a is odd."""\n', "climb/bench/new.py:2: opens with 'Whether'"),
        ('"""What the record needs."""\n', "climb/bench/new.py:1: opens with 'What'"),
        ("class A:\n    b: int\n    'How often it ran.'\n", "climb/bench/new.py:3: opens with 'How'"),
        ('def f() -> None:\n    """Keep what became\n    of a target."""\n', "climb/bench/new.py:2: 'became of'"),
        ("a = 1\n# a rung that the ladder has\n# no more\n", "climb/bench/new.py:2: 'has no more'"),
        ("a = 1  # whoever reads it\n", "climb/bench/new.py:1: 'whoever'"),
    ],
)
def test_offence_is_reported_with_file_and_line(source: str, says: str) -> None:
    (found,) = offences(NEW, source)
    assert found.startswith(says)


def test_plain_english_and_other_strings_pass() -> None:
    source = (
        '"""Return whether a record is fresh: begun no more than 3 hours ago."""\n'
        'MESSAGE = "What became of it"\n\n\n'
        "def f() -> str:\n"
        '    """Asymptotic bounds of f."""\n'
        '    return "so many"\n'
    )
    assert offences(NEW, source) == []
    assert offences(HELP_TEXTS / "emulate.py", '"""Whether a help text opens so is not asked here."""\n') == []


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("int a;\n\n// What the rungs share.\n", "climb/bench/new.cu:3: opens with 'What'"),
        ("/* Whether a is odd. */\nint a;\n", "climb/bench/new.cu:1: opens with 'Whether'"),
        ("int a;  // Where it lies.\n", "climb/bench/new.cu:1: opens with 'Where'"),
        ("// The slot, which the producer has\n// no more.\nint a;\n", "climb/bench/new.cu:1: 'has no more'"),
        ('f("//");  // whoever reads it\n', "climb/bench/new.cu:1: 'whoever'"),
    ],
)
def test_offence_in_a_cuda_source_is_reported_with_file_and_line(source: str, says: str) -> None:
    (found,) = cuda_offences(NEW.with_suffix(".cu"), source)
    assert found.startswith(says)


def test_plain_cuda_comments_and_strings_pass() -> None:
    source = (
        "// The lanes of a warp, as many as have work.\n"
        "// What follows here continues the sentence before it.\n"
        'static_assert(a, "whoever // What is this?");  // asymptotic\n'
    )
    assert cuda_offences(NEW.with_suffix(".cu"), source) == []
