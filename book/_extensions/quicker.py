"""Spare the build what it would do again and again: Sphinx reads a whole chapter for each reference to a figure in it,
pybtex looks through all installed packages for each citation, and Python searches for garbage among the nodes of all
chapters, which live to the end."""

from __future__ import annotations

import functools
import gc
import importlib.metadata
from typing import Any

from docutils import nodes
from pybtex import plugin
from sphinx.application import Sphinx
from sphinx.domains.std import StandardDomain
from sphinx.environment import BuildEnvironment


class _Readings:
    """The environment, with doctrees that are read once and may not be changed."""

    def __init__(self, env: BuildEnvironment) -> None:
        self._env = env
        self.get_doctree = functools.cache(env.get_doctree)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._env, name)


class Domain(StandardDomain):
    """Sphinx's own domain; a numbered reference reads the doctree of its target, to number it, and not more."""

    def _resolve_numref_xref(self, env: BuildEnvironment, *others: Any) -> nodes.Element | None:
        if self._readings is None:
            self._readings = _Readings(env)
        return super()._resolve_numref_xref(self._readings, *others)  # type: ignore[arg-type]

    _readings: _Readings | None = None


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_domain(Domain, override=True)
    gc.set_threshold(100_000, 50, 100)
    plugin.entry_points = functools.cache(importlib.metadata.entry_points)
    return {"parallel_read_safe": True, "parallel_write_safe": False}
