"""A kernel's parameters: sizes read from its PTX, names and types from its source."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Parameter:
    """One parameter of a kernel.

    `position` counts from 1. `ptx` is its PTX type ("u64", "f32", "b8"), `nbytes` its size. `name` is its name and
    `declared` its type in the source; both are "" if the declaration is too involved to read.
    """

    position: int
    ptx: str
    nbytes: int
    name: str = ""
    declared: str = ""

    @property
    def is_pointer(self) -> bool | None:
        """Return whether the parameter is a pointer; None if only its size is known."""
        if self.declared:
            return self.declared.endswith("*")
        return None if self.ptx in ("u64", "b64") else False

    @property
    def label(self) -> str:
        """The parameter in a message, such as "argument 2 ('y')"."""
        return f"argument {self.position} ('{self.name}')" if self.name else f"argument {self.position}"

    @property
    def takes(self) -> str:
        """Describe the values that the parameter takes, as half a sentence."""
        if self.declared:
            return f"the kernel takes {self.declared}"
        size = f"{self.nbytes} byte{'s' if self.nbytes > 1 else ''}"
        return f"the kernel takes {'a floating-point number of ' if self.ptx in ('f32', 'f64') else ''}{size}"


_ENTRY = re.compile(r"\.entry\s+([\w$]+)\s*(?:\((.*?)\))?", re.DOTALL)
_PARAM = re.compile(
    r"\.param\s+(?:\.align\s+\d+\s+)?\.(\w+)\s+(?:\.ptr\s+)?(?:\.\w+\s+)?(?:\.align\s+\d+\s+)?[\w$]+(?:\[(\d+)\])?"
)
_PTX_BYTES = re.compile(r"(\d+)$")


def read_parameters(ptx: str, kernel: str, source: str, expression: str) -> tuple[Parameter, ...]:
    """Read the parameters of a kernel, in order.

    `kernel` is its lowered name in `ptx`, `expression` its name in C++, with template arguments if it has any; names
    and types come from `source`. Raises LookupError if `ptx` has no such kernel.
    """
    for entry in _ENTRY.finditer(ptx):
        if entry[1] == kernel:
            break
    else:
        raise LookupError(f"the PTX has no kernel {kernel}")
    found = []
    for position, (kind, count) in enumerate(_PARAM.findall(entry[2] or ""), start=1):
        bits = _PTX_BYTES.search(kind)
        found.append(Parameter(position, kind, int(bits[1]) // 8 * int(count or 1) if bits else 0))
    declared = _declared(source, expression)
    if declared is None or len(declared) != len(found):
        return tuple(found)
    return tuple(
        Parameter(p.position, p.ptx, p.nbytes, name, kind) for p, (kind, name) in zip(found, declared, strict=True)
    )


def _declared(source: str, expression: str) -> list[tuple[str, str]] | None:
    """Return type and name of each parameter; None unless `source` declares exactly one kernel of that name,
    readably."""
    text = re.sub(r"//[^\n]*|/\*.*?\*/", " ", source, flags=re.DOTALL)
    text = re.sub(r"__launch_bounds__\s*\([^()]*(?:\([^()]*\)[^()]*)*\)", " ", text)
    base = re.sub(r"<.*", "", expression, flags=re.DOTALL).strip().split("::")[-1]
    lists = []
    for match in re.finditer(rf"__global__\s[^;{{}}()]*?\b{re.escape(base)}\s*\(", text):
        depth, end = 1, match.end()
        while depth and end < len(text):
            depth += {"(": 1, ")": -1}.get(text[end], 0)
            end += 1
        lists.append([_declaration(part) for part in _split(text[match.end() : end - 1])])
    distinct = [one for i, one in enumerate(lists) if one not in lists[:i]]
    if len(distinct) != 1 or any(part is None for part in distinct[0]):
        return None
    return distinct[0]  # type: ignore[return-value]


def _split(parameters: str) -> list[str]:
    """Split `parameters` at its top-level commas."""
    parts, depth, start = [], 0, 0
    for i, c in enumerate(parameters):
        depth += {"<": 1, "(": 1, "[": 1, "{": 1, ">": -1, ")": -1, "]": -1, "}": -1}.get(c, 0)
        if c == "," and depth == 0:
            parts.append(parameters[start:i])
            start = i + 1
    parts.append(parameters[start:])
    return [part for part in parts if part.strip()]


def _declaration(parameter: str) -> tuple[str, str] | None:
    """Return `parameter` as (type, name), the type without const, volatile and restrict; None if it is not a plain
    one."""
    text = re.sub(r"\b(?:const|volatile|__restrict__|__restrict|restrict|__grid_constant__|struct)\b", " ", parameter)
    match = re.fullmatch(r"\s*((?:unsigned|signed|long|short|int|char|double|[\w:]+)(?:\s+(?:long|int|char|short))*"
                         r"(?:\s*<[^*&]*>)?)((?:\s*\*)*)\s*(\w+)\s*((?:\[\w*\])*)\s*", text)  # fmt: skip
    if match is None:
        return None
    kind, stars, name, brackets = match.groups()
    pointers = stars.count("*") + bool(brackets)
    return " ".join(kind.split()) + "*" * pointers, name
