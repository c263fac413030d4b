"""Mistakes in CUDA C++, made on tokens: a programmer's likely typing mistakes, not every change that a parser could
make.

Comments, strings, preprocessor lines, ``static_assert``, template headers, launch bounds and definitions of constants
(a tile of another size is a choice, not a mistake) are left alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from climb.validation.mutation.mutants import Mutant

_LEFT_ALONE = re.compile(
    r"""//[^\n]*|/\*.*?\*/            # comments
    |"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])'   # strings and characters
    |^[ \t]*\#(?:[^\n]*\\\n)*[^\n]*  # preprocessor lines
    |__shared__[^;{}]*;               # extents of arrays
    |static_assert\s*\(.*?\);        # what the compiler asks
    |template\s*<[^>]*>              # parameters and their defaults
    |__(?:launch_bounds|cluster_dims)__\s*\([^)]*\)
    |__align__\s*\([^)]*\)|alignas\s*\([^)]*\)
    |(?:static\s+)?constexpr\s+\w+\s+k\w+\s*=[^;]*;  # constants
    """,
    re.MULTILINE | re.DOTALL | re.VERBOSE,
)

#: Kind of mistake, pattern to find, and replacement of its group ``at``.
_OPERATORS: tuple[tuple[str, str, str | dict[str, str]], ...] = (
    ("bounds", r"(?<=\s)(?P<at><=|>=|<|>)(?=\s)", {"<": "<=", "<=": "<", ">": ">=", ">=": ">"}),
    ("guards", r"(?<=\s)(?P<at>==|!=)(?=\s)", {"==": "!=", "!=": "=="}),
    ("guards", r"(?<=\s)(?P<at>&&|\|\|)(?=\s)", {"&&": "||", "||": "&&"}),
    ("strides", r"(?<=\+= )(?P<at>[\w:.]+(?: \* [\w:.]+)*)(?=\))", "2 * {}"),
    ("strides", r"(?P<at>/= 2)(?=\))", "/= 4"),
    ("strides", r"(?P<at>\*= 2)(?=\))", "*= 4"),
    ("strides", r"; (?P<at>\+\+(?P<name>\w+))(?=\))", "{name} += 2"),
    ("barriers", r"(?P<at>__sync(?:threads|warp)\([^;()]*\);)", ";"),
    ("fences", r"(?P<at>__threadfence\w*\(\);)", ";"),
    ("fences", r"(?P<at>wait_for_\w+<[^;]*>\(\);)", ";"),
    ("indices", r"\[(?P<at>[^\[\]\n{}]+)\](?!\s*[={;]\s*\{)", "{} + 1"),
    ("indices", r"(?<=[\w)\]] )(?P<at>[+-])(?= [\w(])", {"+": "-", "-": "+"}),
    ("indices", r"(?<=[\w)\]] )(?P<at>[*/%])(?= [\w(])", {"*": "+", "/": "*", "%": "/"}),
    ("indices", r"(?P<at>(?:threadIdx|blockIdx)\.[xyz])", {
        "threadIdx.x": "threadIdx.y", "threadIdx.y": "threadIdx.x", "threadIdx.z": "threadIdx.x",
        "blockIdx.x": "blockIdx.y", "blockIdx.y": "blockIdx.x", "blockIdx.z": "blockIdx.x",
    }),
    ("constants", r"(?<![\w.<])(?P<at>\d+)(?![\w.>])", "({} + 1)"),
    ("accumulates", r"(?<=\s)(?P<at>\+=)(?=[^;()]*(?:\([^;]*\))*[^;)]*;)", "="),
    ("accumulates", r"(?<=\s)(?P<at>\+=)(?=[^;()]*(?:\([^;]*\))*[^;)]*;)", "-="),
)  # fmt: skip

_COMPILED = tuple((name, re.compile(pattern), new) for name, pattern, new in _OPERATORS)


def masked(text: str) -> str:
    """Return the text with the parts to leave alone as spaces, so that positions stay."""
    return _LEFT_ALONE.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)


def mutants(file: str, text: str) -> Iterator[Mutant]:
    """Return all mutants of a CUDA source, in no particular order."""
    visible = masked(text)
    for name, pattern, new in _COMPILED:
        for match in pattern.finditer(visible):
            found = match["at"]
            if not found.strip() or _declares(visible, match):
                continue
            made = new[found] if isinstance(new, dict) else new.format(found, **match.groupdict())
            yield Mutant(file, name, match.start("at"), match.end("at"), made, text)


_TYPE_BEFORE = re.compile(r"(?:\b(?:float4?|float2|int2?|unsigned|double|char|bool|P|T|uint4|float\w*)\b|[>*&])\s+\w+$")


def _declares(visible: str, match: re.Match[str]) -> bool:
    """Return whether the subscript is the extent of an array in its declaration: a larger array is no mistake."""
    if not match[0].startswith("["):
        return False
    line = visible[visible.rfind("\n", 0, match.start()) + 1 : match.start()]
    return bool(_TYPE_BEFORE.search(re.sub(r"\[[^\]]*\]", "", line)))
