"""The order of an opcode's modifiers: ptxas takes almost any, so `ld.global.acquire.gpu` is `ld.acquire.gpu.global`.

What ptxas 12.9 does: an instruction's name may have several parts (`NAMES`), which come first and in order. The
modifiers after the name may have any order, except that those of one kind keep theirs, because they mean different
operands: types, state spaces, layouts of matrices and priorities of caching. `tests/emulator/test_spellings.py` asks
ptxas itself.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from dataclasses import replace

from .. import ptx
from .registry import Pattern, lookup, patterns_of

#: Names of more than one part, as regular expressions.
NAMES = tuple(
    re.compile(name + r"(?=\.|$)")
    for name in (
        r"(?:mul|mad|mul24|mad24)\.(?:lo|hi|wide)", r"madc\.(?:lo|hi)", r"shf\.[lr]", r"cvta\.to", r"cvt\.pack",
        r"div\.full", r"dp2a\.(?:lo|hi)", r"barrier\.cta", r"tex\.(?:base|level|grad)", r"bar\.warp\.sync",
        r"barrier\.cluster\.\w+",
        r"bar(?:\.cta)?\.(?:sync|arrive|red)", r"barrier\.(?:cta\.)?(?:arrive|red)", r"(?:fence|membar)\.proxy",
        r"cp\.async\.bulk\.(?:commit_group|wait_group(?:\.read)?)", r"cp\.async\.bulk\.prefetch\.tensor",
        r"cp\.async\.bulk(?:\.(?:tensor|prefetch))?", r"cp\.reduce\.async\.bulk(?:\.tensor)?",
        r"cp\.async\.(?:commit_group|wait_group|wait_all|mbarrier\.arrive)", r"cp\.async",
        r"mbarrier\.(?:arrive|arrive_drop)(?:\.expect_tx)?",
        r"mbarrier\.(?:test_wait|try_wait)(?:\.parity)?", r"mbarrier\.\w+",
        r"wmma\.(?:load|store)\.[abcd]", r"wmma\.mma", r"wgmma\.\w+", r"tensormap\.\w+", r"createpolicy\.\w+",
        r"setmaxnreg\.\w+", r"griddepcontrol\.\w+", r"prefetch\.tensormap", r"red\.async", r"st\.(?:async|bulk)",
        r"(?:sust|suld|sured)\.[bp]", r"discard\.global",
    )
)  # fmt: skip
_TYPE = re.compile(r"(?!b1024)[subf]\d+(?:x\d)?|bf16(?:x2)?|tf32(?:x2)?|e\d+m\d+(?:x\d)?|f16x2|pred")
_SPACE = re.compile(r"global|local|const|param(?:::\w+)?|shared(?:::\w+)?")
_KINDS = (
    _TYPE,
    _SPACE,
    re.compile("row|col"),
    re.compile(r"L2::\w+"),
    re.compile(r"L1::\w+"),
    re.compile("and|or|xor|popc"),
)


@functools.cache
def canonical(opcode: str) -> str:
    """Return an opcode with its modifiers in the emulator's order; `opcode` itself if it has none for them."""
    if lookup(opcode) is not None:
        return opcode
    plain = opcode.replace(".weak", "", 1) if opcode.startswith(("ld.", "st.")) else opcode  # weak is what they are
    name = _name(plain)
    left = tuple(plain[len(name) :].split(".")[1:])
    arranged = (text for pattern in patterns_of(plain) for text in _arranged(pattern, name, left))
    return next((text for text in arranged if _name(text) == name), opcode)


def _name(opcode: str) -> str:
    found = [match.group() for each in NAMES if (match := each.match(opcode))]
    return max(found, key=len, default=opcode.partition(".")[0])


def respell(function: ptx.Function) -> ptx.Function:
    """Return the function with the emulator's order of modifiers in each instruction."""
    body = [_respelled(item) if isinstance(item, ptx.Instruction) else item for item in function.body]
    return (
        function
        if all(new is old for new, old in zip(body, function.body, strict=True))
        else replace(function, body=body)
    )


def _respelled(instruction: ptx.Instruction) -> ptx.Instruction:
    opcode = canonical(instruction.opcode)
    if opcode == instruction.opcode:
        return instruction
    return replace(instruction, opcode=opcode, text=instruction.text.replace(instruction.opcode, opcode, 1))


def _arranged(pattern: Pattern, name: str, left: tuple[str, ...]) -> Iterator[str]:
    """Yield the opcodes of a pattern that consist of a name and of these modifiers."""

    def follow(pieces: tuple[str, ...], field: bool, pending: str, left: tuple, chosen: dict, done: str) -> Iterator:
        """Follow a spelling: `pending` begins the text that its `pieces` have to match; `left` are yet to be placed."""
        if not pieces:
            if not pending and not left:
                yield done
            return
        piece, *rest = pieces
        values = ((chosen[piece],) if piece in chosen else pattern.choices[piece]) if field else (piece,)
        for value in values:
            now = {**chosen, piece: value} if field else chosen
            for text, others in _matched(value, pending, left):
                yield from follow(tuple(rest), not field, text, others, now, done + value)

    for spelling in pattern.spellings:
        yield from follow(spelling, False, name, left, {}, "")


def _matched(value: str, pending: str, left: tuple[str, ...]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the remaining pending text and modifiers after a value has been matched."""
    if len(pending) >= len(value):
        if pending.startswith(value):
            yield pending[len(value) :], left
        return
    if not value.startswith(pending):
        return
    for index in _next(left):
        yield from _matched(value, f"{pending}.{left[index]}", left[:index] + left[index + 1 :])


def _next(left: tuple[str, ...]) -> Iterator[int]:
    """Yield the indices of modifiers that may come next: a modifier must follow the earlier ones of its own kind."""
    seen: set[object] = set()
    for index, one in enumerate(left):
        kind = next((each for each in _KINDS if each.fullmatch(one)), one)
        if kind not in seen:
            seen.add(kind)
            yield index
