"""The errors that can come before a kernel runs: a missing tool, an unknown kernel, a source that does not compile."""

from __future__ import annotations

from collections.abc import Sequence

from climb.toolchain.diagnostics import Diagnostic


class ToolchainError(Exception):
    """A part of the toolchain is missing or failed; the message says how to install what is missing."""


class KernelNotFound(LookupError):
    """A module has no kernel of the requested name; the message lists its kernels."""


class CompileError(Exception):
    """The source does not compile. `diagnostics` are the compiler's messages, `hints` our advice about them."""

    def __init__(self, summary: str, diagnostics: Sequence[Diagnostic] = (), hints: Sequence[str] = ()) -> None:
        super().__init__(summary)
        self.summary = summary
        self.diagnostics = tuple(diagnostics)
        self.hints = tuple(hints)

    def __str__(self) -> str:
        return "\n".join([self.summary, *map(str, self.diagnostics), *self.hints])

    def _render_traceback_(self) -> list[str]:
        """Return the message alone for IPython to show, because the frames of this package do not explain it."""
        import traceback

        return traceback.format_exception_only(type(self), self)
