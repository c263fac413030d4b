"""The source line of each instruction, from the .loc directives of PTX."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from .model import Location

LOC = re.compile(r"\.loc\s+(\d+)\s+(\d+)\s+(\d+)(?:[^\n]*\binlined_at\s+(\d+)\s+(\d+)\s+(\d+))?[^\n]*")
_TOOLKIT = re.compile(r"cuda/")  # a function of these headers is charged to the line that calls it
_LIBRARY = re.compile(r"cuda/(?:cub|thrust)/")
_Position = tuple[str, str, str]  # file number, line, column


class SourceLines:
    """Reads the .loc directives of a function in order. `files` names the files by number."""

    def __init__(self, files: Mapping[int, str]) -> None:
        self._files = files
        self._lines: dict[_Position, list[Location]] = {}
        self._last = Location()

    def of(self, loc: re.Match) -> Location:
        """Return the line of a directive; for an inlined function of a CUDA header, the line outside the header that
        calls it.

        A function that is inlined several times has several such lines. If the compiler copies its code again, as it
        does to unroll a loop, it does not say which of these lines it means. The next one after the line before is then
        taken.
        """
        file, line, column, *outer = loc.groups()
        name = self._files.get(int(file), file)
        found = [Location(name, int(line))]
        if outer[0] is not None and _TOOLKIT.match(found[0].file):
            caller = Location(self._files.get(int(outer[0]), outer[0]), int(outer[1]))
            found = self._lines.get(tuple(outer), [caller])
        location = found[-1]
        if len(found) > 1:
            near = [one for one in found if one.file == self._last.file and one.line >= self._last.line]
            location = min(near, key=lambda one: one.line, default=location)
        known = self._lines.setdefault((file, line, column), [])
        if location not in known:
            known.append(location)
        self._last = location
        return replace(location, library=True) if _LIBRARY.match(name) else location
