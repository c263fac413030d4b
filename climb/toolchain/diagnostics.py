"""Diagnostics read from the log of NVRTC and ptxas, each with the source line that it is about."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

# a.cu(12): error: message | a.cu(12): warning #177-D: message | a.cu(12): catastrophic error: message
_FRONT_END = re.compile(
    r"^(?P<file>\S[^\n]*?)\((?P<line>\d+)\): "
    r"(?P<severity>(?:catastrophic |fatal |internal )?error|warning|remark)"
    r"(?: #(?P<number>[\w-]+))?: (?P<message>.*)$"
)
# ptxas application ptx input, line 28; error   : message | ptxas error   : message | nvrtc: error: message
_BACK_END = re.compile(
    r"^(?P<tool>ptxas|nvrtc|nvvm|libnvvm)"
    r"(?: [^\n;:]*?, line (?P<line>\d+);| [^\n:;]*?(?=fatal|error|warning|info)|:)\s*"
    r"(?P<severity>fatal|error|warning|info)\s*: (?P<message>.*)$"
)
_NOISE = re.compile(r"^(\d+ (catastrophic )?errors? detected in|Compilation terminated|Remark: The warnings can be)")


@dataclass(frozen=True)
class Diagnostic:
    """One message of the compiler.

    `file` is the name that the compiler was given, "PTX" for a message of ptxas about a line of its input, or ""
    for a message about no file. `line` and `column` count from 1 and are 0 if unknown; `text` is the source line.
    `notes` are the compiler's further lines, such as the template instantiation that caused the message.
    """

    severity: str
    message: str
    file: str = ""
    line: int = 0
    column: int = 0
    text: str = ""
    notes: tuple[str, ...] = ()

    @property
    def is_error(self) -> bool:
        """Return whether the message is an error, not a warning or a remark."""
        return "error" in self.severity or self.severity == "fatal"

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}: " if self.line else f"{self.file}: " if self.file else ""
        shown = [f"{place}{self.severity}: {self.message}"]
        if self.text:
            number = str(self.line)
            shown.append(f"{number:>6} | {self.text}")
            if self.column:
                indent = "".join("\t" if c == "\t" else " " for c in self.text[: self.column - 1])
                shown.append(f"{'':>6} | {indent}^")
        shown += [f"{'':>6}   {note}" for note in self.notes]
        return "\n".join(shown)


def parse_log(log: str, files: Mapping[str, str], *, strip: Mapping[str, str] | None = None) -> tuple[Diagnostic, ...]:
    """Parse the diagnostics in `log`.

    `files` maps file names to their texts, for the source lines. `strip` maps prefixes of file names in the log to
    the prefixes that are shown instead.
    """
    found: list[Diagnostic] = []
    block: list[str] = []
    for line in [*log.replace("\0", "").splitlines(), ""]:
        if _FRONT_END.match(line) or _BACK_END.match(line) or not line.strip():
            if block:
                found += _diagnostic(block, files, strip or {})
            block = []
        if line.strip():
            block.append(line)
    return tuple(found)


BUILT_IN = "__nv_nvrtc_builtin_header.h"


def shorten(path: str, strip: Mapping[str, str]) -> str:
    """Return `path` with the longest of its prefixes in `strip` replaced.

    NVRTC names its built-in header as a file of the working directory; here it counts as one of CUDA's headers.
    """
    if path.endswith(f"/{BUILT_IN}"):
        return f"cuda/{BUILT_IN}"
    for prefix in sorted(strip, key=len, reverse=True):
        if path.startswith(prefix):
            return strip[prefix] + path[len(prefix) :]
    return path


def _diagnostic(block: list[str], files: Mapping[str, str], strip: Mapping[str, str]) -> list[Diagnostic]:
    head, rest = block[0], block[1:]
    if front := _FRONT_END.match(head):
        name, line, severity = shorten(front["file"], strip), int(front["line"]), front["severity"]
        if severity == "catastrophic error":
            severity = "error"
        lines = files.get(name, "").splitlines()
        text, column, notes = "", 0, []
        for i, extra in enumerate(rest):
            if extra.strip() == "^" and i:
                column = extra.index("^") + 1 - 2
                text = notes.pop()[2:] if notes else ""
            elif not _NOISE.match(extra):
                notes.append(extra)
        if 0 < line <= len(lines):
            shown = lines[line - 1]
            # The column is only valid if the log shows the line exactly as it is in the file.
            text, column = shown, column if text.rstrip() == shown.rstrip() else 0
        return [
            Diagnostic(
                severity,
                front["message"],
                name,
                line,
                max(column, 0),
                text,
                tuple(note.strip() for note in notes),
            )
        ]
    if back := _BACK_END.match(head):
        line = int(back["line"] or 0)
        lines = files.get("PTX", "").splitlines() if line else []
        text = lines[line - 1] if 0 < line <= len(lines) else ""
        name = "PTX" if line else ""
        return [
            Diagnostic(
                back["severity"],
                f"{back['tool']}: {back['message']}",
                name,
                line,
                0,
                text,
                tuple(note.strip() for note in rest if not _NOISE.match(note)),
            )
        ]
    if _NOISE.match(head):
        return []
    return [Diagnostic("note", "\n".join(block))]
