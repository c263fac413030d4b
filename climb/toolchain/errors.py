"""What can go wrong before a kernel runs: a missing tool, and a source that does not compile."""

from __future__ import annotations

import traceback
from collections.abc import Sequence

from climb.toolchain.diagnostics import Diagnostic


class ToolchainError(Exception):
    """A part of the toolchain is missing or failed; the message says which package brings it."""


class KernelNotFound(LookupError):
    """A module has no kernel of the name asked for; the message names those that it has."""


class CompileError(Exception):
    """The source does not compile. `diagnostics` are the compiler's messages, `hints` sentences of ours."""

    def __init__(self, summary: str, diagnostics: Sequence[Diagnostic] = (), hints: Sequence[str] = ()) -> None:
        super().__init__(summary)
        self.summary = summary
        self.diagnostics = tuple(diagnostics)
        self.hints = tuple(hints)

    def __str__(self) -> str:
        return "\n".join([self.summary, *map(str, self.diagnostics), *self.hints])

    def _render_traceback_(self) -> list[str]:
        """What IPython shows: the compiler's words alone; the frames of this package say nothing of them."""
        return traceback.format_exception_only(type(self), self)
