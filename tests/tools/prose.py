"""Find measured numbers typed by hand, and MyST directives, in the book's text."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

_NUMBER = r"(?<![\w.])(?:\d[\d,. ]*\d|\d)"
_WORD = r"\b(?:two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|twenty|thirty|fifty|hundred|thousand)"
_UNIT = (
    r"(?:[unmµμ]s|s|sec(?:ond)?s?|milliseconds?|microseconds?|nanoseconds?"
    r"|[kMGTP]i?B/s|[kMGTP]?B/s|[kMGTP]?FLOPS|[kMGTP]?FLOP/s|[GT]OP/s|MHz|GHz)(?![\w/])"
)
_FASTER = r"(?:as (?:fast|slow)|faster|slower|quicker|the (?:speed|time|bandwidth|peak|limit|ceiling)|speed-?up)\b"
_PATTERNS = tuple(
    re.compile(pattern, re.IGNORECASE if flags else 0)
    for pattern, flags in (
        (rf"{_NUMBER}[  ~]*{_UNIT}", False),
        (rf"{_NUMBER}[  ~]*(?:\\?%(?![  ]*[\w(])|percent\b|per cent\b)", True),
        (rf"{_NUMBER}\s*\\?%\s+(?:of|faster|slower|more|less|better|worse|and|or|to|in|at|from|is)\b", True),
        (rf"{_NUMBER}[  ]*(?:times|x|×|-fold|\\times)[\s$]*{_FASTER}", True),
        (rf"{_WORD}[ -](?:times|fold)\s+{_FASTER}", True),
        (rf"\b(?:twice|half)\s+{_FASTER}", True),
        (rf"speed-?up of\s+(?:{_NUMBER}|{_WORD})", True),
    )
)


@dataclass(frozen=True)
class Directive:
    """A MyST directive: its argument, its options and its text."""

    argument: str
    options: dict[str, str] = field(default_factory=dict)
    text: str = ""


def typed_numbers(text: str) -> list[str]:
    """Find measured quantities in a text: times, rates, shares, ratios of speed. Returns each with a few words around.

    Counts (32 lanes, 16 bytes, 65 536 registers) are facts about machine and kernels, and are not reported.
    """
    spans: list[tuple[int, int]] = []
    for pattern in _PATTERNS:
        for match in pattern.finditer(text):
            if not any(start < match.end() and match.start() < end for start, end in spans):
                spans.append(match.span())
    return [" ".join(text[max(0, start - 20) : end + 20].split()) for start, end in sorted(spans)]


def directives(text: str, *names: str) -> list[Directive]:
    """The directives with these names, fenced by three or more backticks, tildes or colons."""
    found = []
    opening = rf"^(`{{3,}}|~{{3,}}|:{{3,}})\{{({'|'.join(names)})\}}[ \t]*(.*?)[ \t]*\n"
    fence = re.compile(rf"{opening}(.*?)^\1[ \t]*$", re.MULTILINE | re.DOTALL)
    for match in fence.finditer(text + "\n"):
        body = match[4].splitlines()
        options: dict[str, str] = {}
        while body and (option := re.match(r":([\w-]+):\s*(.*)", body[0])):
            options[option[1]] = option[2].strip()
            body.pop(0)
        found.append(Directive(match[3], options, "\n".join(body)))
    return found
