"""Find the ladders over several GPUs: every ``kernels/<chapter>/<name>/__init__.py`` that makes a SharedLadder."""

from __future__ import annotations

import importlib
from functools import cache

from climb import paths
from climb.bench.registry import UnknownLadder
from climb.distributed.ladder import SharedLadder

#: The variable of such a module that holds its ladder; the ladders of one GPU are called ``ladder``.
NAME = "shared_ladder"


@cache
def shared_ladder_names() -> tuple[str, ...]:
    """Return their names, in alphabetical order, without importing them."""
    found = paths.KERNELS.glob("*/*/__init__.py")
    return tuple(sorted(f.parent.name for f in found if f"\n{NAME} = " in f.read_text(encoding="utf-8")))


def load_shared_ladder(name: str) -> SharedLadder:
    """Return the ladder of that name. Raises UnknownLadder."""
    if name not in shared_ladder_names():
        known = ", ".join(shared_ladder_names())
        raise UnknownLadder(f"no ladder '{name}' over several GPUs; there are {known}")
    paths.make_kernels_importable()
    (init,) = paths.KERNELS.glob(f"*/{name}/__init__.py")
    return getattr(importlib.import_module(f"kernels.{init.parts[-3]}.{name}"), NAME)
