"""Highlight CUDA C++ in the Python strings of code cells, such as the ``code`` of a ``cp.RawModule``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from ipython_pygments_lexers import IPython3Lexer
from pygments.lexer import do_insertions
from pygments.lexers import get_lexer_by_name
from pygments.token import Error, String, _TokenType
from sphinx.application import Sphinx

Token = tuple[int, _TokenType, str]

#: What makes a string CUDA: a word or a launch that hardly stands in another language, or in a sentence.
_CUDA = re.compile(
    r"\b__(?:global|device|shared|host|constant)__\b|\b__(?:syncthreads|syncwarp|launch_bounds__|shfl\w*)\b"
    r"|\b(?:thread|block)(?:Idx|Dim)\.[xyz]\b|#include\s*[<\"]|#pragma unroll|<<<.*>>>"
)
_QUOTES = ('"""', "'''", '"', "'")


class PythonWithCuda(IPython3Lexer):
    """Python, with CUDA C++ in strings. Escapes and the fields of f-strings stay what they are in Python."""

    name = "Python with CUDA in strings"
    aliases = ("python", "ipython", "ipython3")

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"stripnl": False, **options})

    def get_tokens_unprocessed(self, text: str, stack: tuple[str, ...] = ("root",)) -> Iterator[Token]:
        """Yield index, kind and text of each token."""
        quote, inside = "", []
        for token in super().get_tokens_unprocessed(text, stack):
            _, kind, value = token
            if not quote:
                if kind in String and value in _QUOTES:
                    quote = value
                yield token
            elif kind in String and value == quote:
                yield from _with_cuda(inside)
                yield token
                quote, inside = "", []
            else:
                inside.append(token)
        yield from inside


def _with_cuda(tokens: list[Token]) -> Iterator[Token]:
    """The tokens between the quotes of one string; CUDA's own where it is CUDA."""
    text = "".join(value for _, kind, value in tokens if _is_text(kind))
    if not _CUDA.search(text):
        yield from tokens
        return
    # What is not CUDA is taken out, and put back where it was, so that the lexer sees whole lines.
    kept: list[tuple[int, list[Token]]] = []
    length = 0
    for token in tokens:
        if _is_text(token[1]):
            length += len(token[2])
        else:
            kept.append((length, [(0, token[1], token[2])]))
    lexer = get_lexer_by_name("cuda", stripnl=False, ensurenl=False)
    cuda = (
        (index, String if kind in Error else kind, value) for index, kind, value in lexer.get_tokens_unprocessed(text)
    )
    start = tokens[0][0]
    for index, kind, value in do_insertions(kept, cuda) if kept else cuda:
        yield start + index, kind, value


def _is_text(kind: _TokenType) -> bool:
    return kind in String and kind not in String.Escape and kind not in String.Interpol


def setup(app: Sphinx) -> dict[str, bool]:
    """Take the place of Sphinx's lexers for Python."""
    for alias in PythonWithCuda.aliases:
        app.add_lexer(alias, PythonWithCuda)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
