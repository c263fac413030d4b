"""The description of a peer in a record: library, version, algorithm, precision, and the kernels of one launch."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from climb.bench.claimed_precision import of_library
from climb.bench.problem import Peer, PeerUnavailable, Size

Description = dict[str, str]
#: The text for a peer that needs a missing package; ``make gpu`` installs all of them.
INSTALL = "make gpu"
#: A kernel's name may have thousands of characters of template arguments; what is left tells kernels apart.
LONGEST_NAME = 160


def describe(name: str, version: str, algorithm: str, precision: str) -> Description:
    """Make a description from its fields, in the order in which records hold them."""
    # PyTorch's version is a subclass of str, which msgspec refuses to write.
    return {"name": name, "version": str(version), "algorithm": algorithm, "precision": precision}


def dotted(number: int, *places: int) -> str:
    """Format a version that a library packs into a number: ``dotted(91900, 10000, 100, 1)`` is ``9.19.0``."""
    parts = []
    for place in places:
        parts.append(str(number // place))
        number %= place
    return ".".join(parts)


def prepared(peer: Peer, arrays: dict[str, Any], size: Size) -> Callable[[], None]:
    """Prepare a peer. A library that is not installed raises :class:`PeerUnavailable`, as an unsupported size does."""
    with _missing_library_named():
        return peer.prepare(arrays, size)


@contextlib.contextmanager
def _missing_library_named() -> Iterator[None]:
    """Turn the errors of a missing module or shared library into :class:`PeerUnavailable`."""
    try:
        yield
    except ImportError as error:
        what = f"the module {error.name}" if error.name else str(error)
        raise PeerUnavailable(f"{what} is not installed or cannot be loaded; {INSTALL} installs it") from error
    except RuntimeError as error:
        # Not imported here by its class: cuda.pathfinder may be missing too.
        if type(error).__name__ != "DynamicLibNotFoundError":
            raise
        library = (re.search(r"lib\w+\.so", str(error)) or ["a shared library"])[0]
        raise PeerUnavailable(f"{library} is not installed; {INSTALL} installs it") from error


def description(peer: Peer, launch: Callable[[], None], kernels: Sequence[str]) -> Description:
    """The description of a prepared peer: its own, then what was chosen at this size, then the kernels it launched.

    Raises :class:`PeerUnavailable` if the library that gives the version is missing, or if the kernels are not of the
    precision that the description names.
    """
    with _missing_library_named():
        found = {**peer.describe(), **getattr(launch, "chosen", {})}
    if kernels:
        found["kernels"] = "; ".join(shortened(name) for name in kernels)
    if reason := of_library(found):
        raise PeerUnavailable(reason)
    return found


def shortened(name: str) -> str:
    """Return a kernel's demangled name; if it is too long, without the insides of its template arguments and
    parameters."""
    name = name.removeprefix("void ")
    if len(name) <= LONGEST_NAME:
        return name
    kept, depth = [], 0
    for piece in re.split(r"(\(anonymous namespace\)|[<>()])", name):
        if piece in ("<", "("):
            depth += 1
            kept.append("<...>" if (piece, depth) == ("<", 1) else "")
        elif piece in (">", ")"):
            depth -= 1
        elif depth == 0:
            kept.append(piece)
    short = "".join(kept).strip()
    return short if len(short) <= LONGEST_NAME else short[: LONGEST_NAME - 3] + "..."
