"""Names of chapters, ladders, rungs and exercises: their rules, and the existing ones."""

from __future__ import annotations

import keyword
import re

from climb import paths
from climb.cli.errors import UsageError

_NAME = re.compile(r"[a-z][a-z0-9_]*")
#: Folders of ``kernels/<chapter>`` that are not ladders, and folders of ``kernels/`` that are not chapters.
RESERVED = {"exercises", "exhibits", "common"}
#: Characters of a name. Longer ones make lines of Python that do not fit, and in the end no file.
LONGEST = 40


def pair(text: str, expected: str) -> tuple[str, str]:
    """Split ``saxpy/evict_first`` into its two parts; ``expected`` (``LADDER/NAME``) is for the message. Raises
    UsageError."""
    first, slash, second = text.partition("/")
    if not (first and slash and second):
        raise UsageError(f"'{text}' is not {expected}")
    return first, check_name(second)


def check_name(name: str, example: str = "lower case letters, digits and _, as in float4_tail") -> str:
    """Return the name, which becomes a file's and a variable's. Raises UsageError; ``example`` shows a valid one."""
    if name in RESERVED:
        raise UsageError(f"'{name}' cannot be a name; kernels/ has folders of that name for something else")
    if keyword.iskeyword(name):
        raise UsageError(f"'{name}' cannot be a name; it is a word of Python")
    if not _NAME.fullmatch(name):
        raise UsageError(f"'{name}' cannot be a name; expected {example}")
    if len(name) > LONGEST:
        raise UsageError(f"'{name[:20]}...' cannot be a name; it has {len(name)} characters, at most {LONGEST} fit")
    return name


def check_chapter(name: str) -> str:
    """Return the folder of a new chapter, given as ``my-chapter`` or ``my_chapter``. Raises UsageError."""
    if not _NAME.fullmatch(name.replace("-", "_")):
        check_name(name, "lower case letters, digits and -, as in warp-specialisation")
    return check_name(name.replace("-", "_"))


def chapters() -> list[str]:
    """Return the names of the chapters' folders of kernels."""
    return sorted(init.parent.name for init in paths.KERNELS.glob("*/__init__.py") if init.parent.name not in RESERVED)


def find_chapter(name: str) -> str:
    """Return the folder of a chapter, given as ``bank-conflicts`` or ``bank_conflicts``. Raises UsageError."""
    folder = name.replace("-", "_")
    if folder not in chapters():
        raise UsageError(f"no chapter '{name}'; the chapters are {', '.join(chapters())}")
    return folder


def page(chapter: str) -> str:
    """Return the page of a chapter's folder: ``bank-conflicts`` for ``bank_conflicts``."""
    return chapter.replace("_", "-")
