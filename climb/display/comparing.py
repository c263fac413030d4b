"""Compare two sources for a reader: the changes of a rung, without its header, its new names and its line breaks.

The comments that open a rung say in words what a chapter says as well, so they are left out. A name that was replaced
throughout by another is reported as renamed, and then is not a difference. Neither is white space, since a longer name
moves the line breaks of a whole parameter list.
"""

from __future__ import annotations

import difflib
import functools
import itertools
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

#: Words, and every other character that is not white space.
_TOKEN = re.compile(r"\w+|[^\w\s]")
_NAME = re.compile(r"[A-Za-z_]\w*")
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
#: Words other than type names that may precede the name of a function, a variable or a constant where it is declared.
_NOT_A_TYPE = {"return", "else", "case", "goto", "new", "delete", "throw", "sizeof", "do", "in", "define", "ifdef"}
_HEADER = re.compile(r"// (?:Idea|From the rung before|Requires):")
#: Changed tokens of a line are marked if they make up at most this part of it.
_MOST = 0.6

Span = tuple[int, int]


@dataclass(frozen=True)
class Row:
    """A line of a difference. ``kind`` is "same", "add" or "del"; ``line`` counts from 0 in its own file.

    A line that is the same is a line of the new file. ``marked`` are the columns of the changed words, first and last
    plus one.
    """

    kind: str
    line: int
    marked: tuple[Span, ...] = ()


@dataclass(frozen=True)
class Comparison:
    """All rows from the end of the header to the end of the new file, and the new name of each renamed name."""

    rows: list[Row]
    renamed: dict[str, str]


def header_length(lines: Sequence[str]) -> int:
    """Count the comment lines that open a rung with Idea, From the rung before, Requires; 0 if it has none."""
    comments = list(itertools.takewhile(lambda line: line.startswith("//"), lines))
    return len(comments) if comments and _HEADER.match(comments[0]) else 0


def compare(old: Sequence[str], new: Sequence[str]) -> Comparison:
    """Compare two files, given as lines."""
    skip_old, skip_new = header_length(old), header_length(new)
    old_tokens = [_TOKEN.findall(line) for line in old[skip_old:]]
    new_tokens = [_TOKEN.findall(line) for line in new[skip_new:]]
    renamed = _renames(old_tokens, new_tokens, "\n".join(old[skip_old:]), "\n".join(new[skip_new:]))
    old_tokens = _with(renamed, old_tokens)
    rows: list[Row] = []
    for i1, i2, j1, j2 in _blocks(old_tokens, new_tokens):
        if _flat(old_tokens[i1:i2]) == _flat(new_tokens[j1:j2]):
            rows += [Row("same", skip_new + j) for j in range(j1, j2)]
            continue
        changed_old, changed_new = _changed(old_tokens[i1:i2], new_tokens[j1:j2])
        for kind, first, lines, changed in (
            ("del", skip_old + i1, old[skip_old + i1 : skip_old + i2], changed_old),
            ("add", skip_new + j1, new[skip_new + j1 : skip_new + j2], changed_new),
        ):
            rows += [
                Row(kind, first + n, _spans(line, of_line))
                for n, (line, of_line) in enumerate(zip(lines, changed, strict=True))
            ]
    return Comparison(rows, renamed)


def _blocks(old: Sequence[Sequence[str]], new: Sequence[Sequence[str]]) -> list[tuple[int, int, int, int]]:
    """Match ranges of lines of both sides. Neighbouring blocks that differ only in line breaks are joined."""
    matcher = difflib.SequenceMatcher(a=[tuple(t) for t in old], b=[tuple(t) for t in new], autojunk=False)
    opcodes = matcher.get_opcodes()
    blocks: list[tuple[int, int, int, int]] = []
    at = 0
    while at < len(opcodes):
        end = at + 1
        if opcodes[at][0] != "equal":
            for further in (5, 3):  # over two lines, or one, that look alike between moved line breaks
                last = opcodes[min(at + further, len(opcodes)) - 1]
                i1, j1, i2, j2 = opcodes[at][1], opcodes[at][3], last[2], last[4]
                if _flat(old[i1:i2]) == _flat(new[j1:j2]):
                    end = min(at + further, len(opcodes))
                    break
        blocks.append((opcodes[at][1], opcodes[end - 1][2], opcodes[at][3], opcodes[end - 1][4]))
        at = end
    return blocks


def _renames(
    old: Sequence[Sequence[str]], new: Sequence[Sequence[str]], old_text: str, new_text: str
) -> dict[str, str]:
    """Return the new name of each name that is declared in the old file, does not occur in the new one, and has a
    replacement there.

    A kernel may change its parameters with its name. Any other name must be declared on a line that is otherwise as it
    was: a parameter that became a constant is more than a new name.
    """
    old_names, new_names = _names(old_text), _names(new_text)
    gone, come = old_names - new_names, new_names - old_names
    gone_kernels, come_kernels = ([k for k in _kernels(t) if k in n] for t, n in ((old_text, gone), (new_text, come)))
    renamed = dict(zip(gone_kernels, come_kernels, strict=True)) if len(gone_kernels) == len(come_kernels) else {}
    votes: Counter[tuple[str, str]] = Counter()
    matcher = difflib.SequenceMatcher(a=[tuple(t) for t in old], b=[tuple(t) for t in new], autojunk=False)
    for tag, i1, i2, j1, j2 in matcher.get_opcodes():
        if tag == "replace":
            votes.update(_replaced(_flat(old[i1:i2]), _flat(new[j1:j2]), gone, come))
    new_lines = {tuple(line) for line in new}
    for (before, after), _ in sorted(votes.items(), key=lambda vote: (-vote[1], vote[0])):
        if before in renamed or after in renamed.values():
            continue
        declaring = [line for line in old if before in _declared(line)]
        if any(tuple(line) in new_lines for line in _with({**renamed, before: after}, declaring)):
            renamed[before] = after
    return renamed


def _replaced(
    old: Sequence[str], new: Sequence[str], gone: frozenset[str], come: frozenset[str]
) -> Iterable[tuple[str, str]]:
    """Return pairs of a name that disappeared and the name that replaced it."""
    matcher = difflib.SequenceMatcher(a=old, b=new, autojunk=False)
    for tag, i1, i2, j1, j2 in matcher.get_opcodes():
        if tag == "replace" and i2 - i1 == j2 - j1:
            yield from ((a, b) for a, b in zip(old[i1:i2], new[j1:j2], strict=True) if a in gone and b in come)


@functools.lru_cache(maxsize=64)
def _names(text: str) -> frozenset[str]:
    """Return the author's own names: neither C++ nor CUDA reserves them."""
    from pygments.lexers import get_lexer_by_name
    from pygments.token import Keyword, Name

    tokens = get_lexer_by_name("cuda").get_tokens(text)
    reserved = {piece for kind, piece in tokens if kind in Keyword or kind in Name.Builtin}
    found = set(_NAME.findall(_COMMENT.sub(" ", text)))
    return frozenset(name for name in found - reserved if not name.startswith("__"))


def _kernels(text: str) -> list[str]:
    """Return the names of the kernels in a source, in their order."""
    found: list[str] = []
    for start in re.finditer(r"\b__global__\b", text):
        depth, name = 0, ""
        for token in _TOKEN.findall(text[start.end() :]):
            if token == "(" and depth == 0 and not name.startswith("__"):
                found.append(name)
                break
            depth += (token == "(") - (token == ")")
            name = token if depth == 0 else name
    return found


def _declared(tokens: Sequence[str]) -> set[str]:
    """Return names that follow a type: functions, variables, constants, parameters."""
    found: set[str] = set()
    for at in range(1, len(tokens)):
        before = tokens[at - 1]
        if before in ("*", "&", ">") and at > 1:
            before = tokens[at - 2]
        if all(map(_NAME.fullmatch, (tokens[at], before))) and before not in _NOT_A_TYPE:
            found.add(tokens[at])
    return found


def _with(renamed: Mapping[str, str], lines: Sequence[Sequence[str]]) -> list[list[str]]:
    return [[renamed.get(token, token) for token in line] for line in lines]


def _flat(lines: Sequence[Sequence[str]]) -> list[str]:
    return [token for line in lines for token in line]


def _changed(old: Sequence[Sequence[str]], new: Sequence[Sequence[str]]) -> tuple[list[list[bool]], list[list[bool]]]:
    """Return, for each token of both sides, line by line, whether it is marked as changed."""
    matcher = difflib.SequenceMatcher(a=_flat(old), b=_flat(new), autojunk=False)
    flags = [True] * sum(map(len, old)), [True] * sum(map(len, new))
    for tag, i1, i2, j1, j2 in matcher.get_opcodes():
        # A bracket between two changes belongs to them: marks of single words are hard to read.
        if tag == "equal" and (i1 == 0 or i2 == len(flags[0]) or any(map(_NAME.match, matcher.a[i1:i2]))):
            flags[0][i1:i2] = [False] * (i2 - i1)
            flags[1][j1:j2] = [False] * (j2 - j1)
    return _by_line(flags[0], old), _by_line(flags[1], new)


def _by_line(flags: Sequence[bool], lines: Sequence[Sequence[str]]) -> list[list[bool]]:
    """Split flags into lines. A line that is mostly changed has no marks: its background shows the change."""
    rest = iter(flags)
    split = [list(itertools.islice(rest, len(line))) for line in lines]
    return [line if sum(line) <= _MOST * len(line) else [False] * len(line) for line in split]


def _spans(line: str, changed: Sequence[bool]) -> tuple[Span, ...]:
    """Return the columns of changed tokens; neighbours are joined."""
    spans: list[Span] = []
    joined = False
    for token, is_changed in zip(_TOKEN.finditer(line), changed, strict=True):
        if is_changed and joined:
            spans[-1] = (spans[-1][0], token.end())
        elif is_changed:
            spans.append(token.span())
        joined = is_changed
    return tuple(spans)
