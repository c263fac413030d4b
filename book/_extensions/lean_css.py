"""Leave out of a style sheet what no page of the book uses; the theme's sheets are made for every site there is."""

from __future__ import annotations

import re
from collections.abc import Iterator

#: At-rules that hold rules, which are looked at one by one; other at-rules stay as they are.
_GROUPS = ("@media", "@supports", "@layer", "@container")
_NAME = re.compile(r"[.#](-?[A-Za-z_](?:[\w-]|\\.)*)")
_TEXT = re.compile(r"""("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|/\*.*?\*/""", re.DOTALL)
#: What begins or ends a rule or a text, and pairs of a backslash and a character, which do neither.
_MARK = re.compile(r"""\\.|["'{};]""", re.DOTALL)
_ADDRESS = re.compile(r"""(?:url\(\s*|(?<=@import )(?="|'))(["']?)(?!data:|#|https?:|/)([^'")]+)\1\s*\)?""")


def shrink(css: str, used: set[str]) -> str:
    """Return the rules of a style sheet that can apply.

    `used` holds the classes and ids of the pages, and every word of the scripts, which may set others. A selector goes
    if it needs a class or id that is not among them; alternatives in :is(), :not() and the like are not looked into.
    """
    plain = _TEXT.sub(lambda found: found.group(1) or "", css)
    return "".join(_kept(plain, used))


def moved(css: str, folder: str) -> str:
    """Return a style sheet whose relative addresses count from the parent of `folder`, where it was before."""

    def address(found: re.Match[str]) -> str:
        parts = [part for part in folder.split("/") if part]
        for part in found.group(2).split("/"):
            if part == ".." and parts:
                parts.pop()
            elif part != ".":
                parts.append(part)
        return f'url("{"/".join(parts)}")'

    return _ADDRESS.sub(address, css)


def _kept(css: str, used: set[str]) -> Iterator[str]:
    for head, body in _blocks(css):
        if body is None:
            yield head
        elif head.startswith(_GROUPS):
            inner = "".join(_kept(body, used))
            if inner:
                yield f"{head}{{{inner}}}"
        elif head.startswith("@font-face") and "awesome" in body.lower():
            continue
        elif head.startswith("@"):
            yield f"{head}{{{body}}}"
        else:
            selectors = [one for one in split_selectors(head) if _possible(one, used)]
            if selectors:
                yield ",".join(selectors) + "{" + re.sub(r"\s+", " ", body).strip() + "}"


def _possible(selector: str, used: set[str]) -> bool:
    flat, depth = [], 0
    for letter in re.sub(r"\[[^\]]*\]", "", selector):
        depth += (letter == "(") - (letter == ")")
        flat.append(letter if depth == 0 else " ")
    return all(re.sub(r"\\(.)", r"\1", name) in used for name in _NAME.findall("".join(flat)))


def split_selectors(head: str) -> list[str]:
    """Return the selectors of a rule: split at commas, but not at those in brackets or quotes."""
    parts, depth, quote, start = [], 0, "", 0
    for at, letter in enumerate(head):
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "\"'":
            quote = letter
        elif letter == "," and depth == 0:
            parts.append(head[start:at])
            start = at + 1
        else:
            depth += (letter in "([") - (letter in ")]")
    return [re.sub(r"\s+", " ", part).strip() for part in [*parts, head[start:]]]


def _blocks(css: str) -> Iterator[tuple[str, str | None]]:
    """Yield each rule as its head and body; a statement without a body (@import, @charset) has None."""
    start, depth, opened, quote = 0, 0, 0, ""
    for found in _MARK.finditer(css):
        letter, at = found[0], found.start()
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "\"'":
            quote = letter
        elif letter == "{":
            depth += 1
            opened = at if depth == 1 else opened
        elif letter == "}":
            depth -= 1
            if depth == 0:
                yield css[start:opened].strip(), css[opened + 1 : at]
                start = at + 1
        elif letter == ";" and depth == 0:
            yield css[start : at + 1].strip(), None
            start = at + 1
