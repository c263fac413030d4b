"""Warp and block operations. All but activemask are gates: they wait for the lanes that their mask names."""

from __future__ import annotations

from .. import ptx
from ..ptx.barriers import PREFIX
from . import Rule, register, special


@special("shfl.sync.{mode}.b32", choices={"mode": ("up", "down", "bfly", "idx")}, gate="warp", results=("b32",))
def _shuffle(emitter, instruction: ptx.Instruction) -> None:
    target, value, by, limit, mask = instruction.operands
    first = target.first if isinstance(target, ptx.Pair) else target
    kind = emitter.resolve("b32", first)
    mode = instruction.opcode.split(".")[2]
    site = emitter.place(instruction)
    arguments = f"{emitter.read(value, kind)}, {emitter.read(by, 'u32')}, {emitter.read(limit, 'u32')}"
    both = emitter.fresh(f"warp_shuffle(G, {site}, '{mode}', {arguments}, {emitter.read(mask, 'u32')})")
    emitter.write(first, kind, f"{both}[0]")
    if isinstance(target, ptx.Pair):
        emitter.write(target.second, "pred", f"{both}[1]")


@special("vote.sync.{how}.pred", choices={"how": ("all", "any", "uni")}, gate="warp", results=("pred",))
@special("vote.sync.ballot.b32", gate="warp", results=("u32",))
def _vote(emitter, instruction: ptx.Instruction) -> None:
    target, flag, mask = instruction.operands
    how = instruction.opcode.split(".")[2]
    code = f"warp_vote(G, '{how}', {emitter.read(flag, 'pred')}, {emitter.read(mask, 'u32')})"
    emitter.write(target, "u32" if how == "ballot" else "pred", code)


@special("match.any.sync.b{n}", choices={"n": ("32", "64")}, gate="warp", results=("u32",))
def _match_any(emitter, instruction: ptx.Instruction) -> None:
    target, value, mask = instruction.operands
    kind = "u" + instruction.opcode[-2:]
    emitter.write(target, "u32", f"warp_match_any(G, {emitter.read(value, kind)}, {emitter.read(mask, 'u32')})")


@special("match.all.sync.b{n}", choices={"n": ("32", "64")}, gate="warp", results=("u32",))
def _match_all(emitter, instruction: ptx.Instruction) -> None:
    target, value, mask = instruction.operands
    kind = "u" + instruction.opcode[-2:]
    both = emitter.fresh(f"warp_match_all(G, {emitter.read(value, kind)}, {emitter.read(mask, 'u32')})")
    first = target.first if isinstance(target, ptx.Pair) else target
    emitter.write(first, "u32", f"{both}[0]")
    if isinstance(target, ptx.Pair):
        emitter.write(target.second, "pred", f"{both}[1]")


def _reduce(emitter, instruction: ptx.Instruction) -> None:
    target, value, mask = instruction.operands
    _, _, how, kind = instruction.opcode.split(".")
    kind = "u32" if kind == "b32" else kind
    emitter.write(target, kind, f"warp_reduce(G, '{how}', {emitter.read(value, kind)}, {emitter.read(mask, 'u32')})")


special("redux.sync.{how}.{t}", choices={"how": ("add", "min", "max"), "t": ("u32", "s32")}, gate="warp")(_reduce)
special("redux.sync.{how}.b32", choices={"how": ("and", "or", "xor")}, gate="warp")(_reduce)


@special("elect.sync", gate="warp", results=("u32",))
def _elect(emitter, instruction: ptx.Instruction) -> None:
    target, mask = instruction.operands
    both = emitter.fresh(f"warp_elect(G, {emitter.read(mask, 'u32')})")
    if target.first != ptx.Register("_"):
        emitter.write(target.first, "u32", f"{both}[0]")
    emitter.write(target.second, "pred", f"{both}[1]")


@special("activemask.b32", results=("u32",))
def _active(emitter, instruction: ptx.Instruction) -> None:
    emitter.write(instruction.operands[0], "u32", "warp_active(G)")


register(Rule("bar.warp.sync", None, writes=0, gate="warp"))


def _block_vote(emitter, instruction: ptx.Instruction) -> None:
    target, *_, flag = instruction.operands
    how = next(part for part in instruction.opcode.split(".") if part in ("popc", "and", "or"))
    flag = emitter.read(flag, "pred")
    code = f"block_vote(G, '{how}', {flag})"
    if instruction.opcode.startswith(PREFIX):
        code = f"named_vote(G, '{how}', {emitter.read(instruction.operands[1], 'u32')}, {flag})"
    emitter.write(target, "u32" if how == "popc" else "pred", code)


for _name in ("bar", "barrier", "bar.cta", "barrier.cta"):
    for _aligned in ("", ".aligned"):
        for _how, _kind in (("popc", "u32"), ("and", "pred"), ("or", "pred")):
            _opcode = f"{_name}.red.{_how}{_aligned}.{_kind}"
            special(_opcode, gate="barrier", results=(_kind,))(_block_vote)
            special(PREFIX + _opcode, gate="named", results=(_kind,))(_block_vote)
