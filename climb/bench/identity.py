"""The identity of measured code: a hash of what is compiled and how it is launched, and of nothing else.

A measurement stays valid when a file moves, when a comment is rewritten, or when a kernel or a rung gets another name.
It is stale as soon as a token of code changes. So the identity of a rung is made from

- the tokens of its source with its own headers put in place: without comments, without the white space between tokens,
  without ``#pragma once`` and without the messages of ``static_assert``, none of which reaches the GPU;
- the names of its kernels replaced by their numbers, in the order in which the source defines them;
- the compiler's options, and for each launch its kernel, grid, block, shared memory and arguments.

:func:`tokens` and :func:`canonical` are that rule; ``tests/bench/test_identity.py`` holds them to it.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

#: The name of the rule; it goes into every hash, so that hashes by another rule never look fresh.
RULE = "tokens-1"

_LOCAL_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"]+)"', re.MULTILINE)
_TOKEN = re.compile(
    r"""
    (?P<comment> //(?:\\\n|[^\n])* | /\*.*?\*/ )
  | (?P<raw> (?:u8|[uUL])?R"(?P<fence>[^()\\\s]{0,16})\(.*?\)(?P=fence)" )
  | (?P<text> (?:u8|[uUL])?"(?:\\.|[^"\\\n])*" | (?:u8|[uUL])?'(?:\\.|[^'\\\n])*' )
  | (?P<number> \.?\d(?:[eEpP][+-]|'?\w|\.)* )
  | (?P<name> [A-Za-z_]\w* )
  | (?P<newline> \n )
  | (?P<space> (?:[^\S\n]|\\\n)+ )
  | (?P<sign> <<=|>>=|<=>|\.\.\.|->\*|::|->|\.\*|\+\+|--|<<|>>|<=|>=|==|!=|&&|\|\||\#\#|[-+*/%&|^]=|. )
    """,
    re.VERBOSE | re.DOTALL,
)
_END_OF_DIRECTIVE = "\n"


def expand_includes(path: Path) -> str:
    """Return the text of a source with each ``#include "..."`` replaced by that file's text (once each), newlines as
    ``\n``.

    Used for identities and for showing; compilers get the file and an include directory. Raises FileNotFoundError.
    """
    seen: set[str] = set()

    def read(file: str) -> str:
        seen.add(file)
        with open(file, encoding="utf-8") as opened:
            text = opened.read()

        def replace(match: re.Match[str]) -> str:
            inner = os.path.normpath(os.path.join(os.path.dirname(file), match[1]))
            return "" if inner in seen else read(inner)

        return _LOCAL_INCLUDE.sub(replace, text)

    return read(os.path.abspath(path))


def tokens(source: str) -> tuple[str, ...]:
    """Return the tokens of CUDA C++ that the compiler acts on, in order.

    Comments, white space, ``#pragma once`` and messages of ``static_assert`` are left out. The end of a preprocessor
    directive is a token, because it ends where its line does.
    """
    found: list[str] = []
    directive = False
    for match in _TOKEN.finditer(source):
        kind, text = match.lastgroup, match[0]
        if kind == "fence":
            kind = "raw"
        if kind == "newline" and directive:
            found.append(_END_OF_DIRECTIVE)
            directive = False
        elif kind not in ("comment", "newline", "space"):
            # A directive starts with the first # of a line; a second one inside it is an operator.
            directive = directive or text == "#"
            found.append(text)
    if directive:
        found.append(_END_OF_DIRECTIVE)
    return tuple(_without_messages(_without_pragma_once(found)))


def canonical(source: str, expressions: Sequence[str]) -> tuple[list[str], list[list[str]]]:
    """Return the tokens of a source and of kernel name expressions (``transpose<32, 8>``), with kernels named by
    number."""
    code, numbers = _canonical_source(source)
    return list(code), [_numbered(_expression_tokens(expression), numbers) for expression in expressions]


@functools.lru_cache(maxsize=512)
def _canonical_source(source: str) -> tuple[tuple[str, ...], Mapping[str, str]]:
    """Return the tokens of a source with kernels named by number, and the kernels' numbers by name."""
    code = tokens(source)
    numbers = {name: f"kernel {number}" for number, name in enumerate(kernels_of(code))}
    return tuple(_numbered(code, numbers)), numbers


def _numbered(some: Iterable[str], numbers: Mapping[str, str]) -> list[str]:
    return [numbers.get(token, token) for token in some]


#: Names that may occur with parentheses between ``__global__`` and the name of a kernel.
_ATTRIBUTES = {"__launch_bounds__", "__cluster_dims__"}


def kernels_of(code: Sequence[str]) -> tuple[str, ...]:
    """Return the names of the ``__global__`` functions among tokens, each once, in the order of their first
    appearance."""
    found: dict[str, None] = {}
    for start, token in enumerate(code):
        if token != "__global__":
            continue
        at = start + 1
        while at + 1 < len(code) and not (code[at + 1] == "(" and code[at] not in _ATTRIBUTES):
            at = _after_parentheses(code, at + 1) if code[at + 1] == "(" else at + 1
        if at < len(code):
            found[code[at]] = None
    return tuple(found)


def sha256(
    source: str,
    options: Sequence[str],
    launches: Sequence[Mapping[str, Any]],
    workspace: Mapping[str, Sequence[Any]],
) -> str:
    """Return the hash of what is measured: ``launches`` as ``Launch.as_json`` gives them, ``workspace`` as shapes,
    dtypes."""
    _, kernels = canonical(source, [launch["kernel"] for launch in launches])
    what = {
        "launches": [{**launch, "kernel": kernel} for launch, kernel in zip(launches, kernels, strict=True)],
        "options": list(options),
        "rule": RULE,
        "workspace": workspace,
    }
    # What is hashed is one JSON object, whose first member is the code. A source is launched at many sizes.
    found = _begun_with_code(source).copy()
    found.update(json.dumps(what, sort_keys=True)[1:].encode())
    return found.hexdigest()


@functools.lru_cache(maxsize=512)
def _begun_with_code(source: str) -> hashlib._Hash:
    """Return a hash of the beginning of a JSON object, up to and with its member "code"."""
    return hashlib.sha256(f'{{"code": {json.dumps(canonical(source, ())[0])}, '.encode())


def code_sha256(source: str) -> str:
    """Return the hash of a source by itself, however it is launched."""
    return hashlib.sha256(json.dumps({"rule": RULE, "code": canonical(source, ())[0]}).encode()).hexdigest()


#: Each size of a rung has its own kernel name expressions: they would evict the sources from a common cache.
_expression_tokens = functools.lru_cache(maxsize=4096)(tokens)


def _without_pragma_once(found: list[str]) -> list[str]:
    kept: list[str] = []
    for token in found:
        kept.append(token)
        if kept[-4:] == ["#", "pragma", "once", _END_OF_DIRECTIVE]:
            del kept[-4:]
    return kept


def _without_messages(found: list[str]) -> list[str]:
    """Drop the string that ends a ``static_assert``, and the comma before it."""
    kept: list[str] = []
    at = 0
    while at < len(found):
        kept.append(found[at])
        at += 1
        if kept[-1] == "static_assert" and at < len(found) and found[at] == "(":
            end = _after_parentheses(found, at)
            inside = found[at : end - 1]
            while len(inside) > 1 and inside[-1].endswith('"'):
                inside.pop()
            if inside[-1] == ",":
                inside.pop()
            kept += [*inside, *found[end - 1 : end]]
            at = end
    return kept


def _after_parentheses(code: Sequence[str], opening: int) -> int:
    """Return the index behind the parenthesis that closes the one at ``opening``."""
    depth = 0
    for at in range(opening, len(code)):
        depth += (code[at] == "(") - (code[at] == ")")
        if depth == 0:
            return at + 1
    return len(code)
