"""Operations of a warp. All except activemask are gates: they wait for the lanes that their mask names."""

from __future__ import annotations

from .. import ptx
from .emitter import Emitter
from .registry import special


@special("shfl.sync.{mode}.b32", results=("b32",), gate="warp", mode=("up", "down", "bfly", "idx"))
def _shuffle(emitter: Emitter, instruction: ptx.Instruction, mode: str) -> None:
    target, value, by, limit, mask = instruction.operands
    first = target.first if isinstance(target, ptx.Pair) else target
    kind = emitter.resolve("b32", first)
    site = emitter.place(instruction)
    arguments = f"{emitter.read(value, kind)}, {emitter.read(by, 'u32')}, {emitter.read(limit, 'u32')}"
    both = emitter.fresh(f"warp_shuffle(G, {site}, '{mode}', {arguments}, {emitter.read(mask, 'u32')})")
    emitter.write(first, kind, f"{both}[0]")
    if isinstance(target, ptx.Pair):
        emitter.write(target.second, "pred", f"{both}[1]")


@special("vote.sync.{how}.pred", results=("pred",), gate="warp", how=("all", "any", "uni"))
@special("vote.sync.{how}.b32", results=("u32",), gate="warp", how=("ballot",))
def _vote(emitter: Emitter, instruction: ptx.Instruction, how: str) -> None:
    target, flag, mask = instruction.operands
    code = f"warp_vote(G, '{how}', {emitter.read(flag, 'pred')}, {emitter.read(mask, 'u32')})"
    emitter.write(target, "u32" if how == "ballot" else "pred", code)


@special("match.any.sync.b{n}", results=("u32",), gate="warp", n=("32", "64"))
def _match_any(emitter: Emitter, instruction: ptx.Instruction, n: str) -> None:
    target, value, mask = instruction.operands
    emitter.write(target, "u32", f"warp_match_any(G, {emitter.read(value, f'u{n}')}, {emitter.read(mask, 'u32')})")


@special("match.all.sync.b{n}", results=("u32",), gate="warp", n=("32", "64"))
def _match_all(emitter: Emitter, instruction: ptx.Instruction, n: str) -> None:
    target, value, mask = instruction.operands
    both = emitter.fresh(f"warp_match_all(G, {emitter.read(value, f'u{n}')}, {emitter.read(mask, 'u32')})")
    first = target.first if isinstance(target, ptx.Pair) else target
    emitter.write(first, "u32", f"{both}[0]")
    if isinstance(target, ptx.Pair):
        emitter.write(target.second, "pred", f"{both}[1]")


@special("redux.sync.{how}.{t}", gate="warp", how=("add", "min", "max"), t=("u32", "s32"))
@special("redux.sync.{how}.{t}", gate="warp", how=("and", "or", "xor"), t=("b32",))
def _reduce(emitter: Emitter, instruction: ptx.Instruction, how: str, t: str) -> None:
    target, value, mask = instruction.operands
    kind = "u32" if t == "b32" else t
    emitter.write(target, kind, f"warp_reduce(G, '{how}', {emitter.read(value, kind)}, {emitter.read(mask, 'u32')})")


@special("elect.sync", results=("u32",), gate="warp")
def _elect(emitter: Emitter, instruction: ptx.Instruction) -> None:
    target, mask = instruction.operands
    both = emitter.fresh(f"warp_elect(G, {emitter.read(mask, 'u32')})")
    if target.first != ptx.Register("_"):
        emitter.write(target.first, "u32", f"{both}[0]")
    emitter.write(target.second, "pred", f"{both}[1]")


@special("activemask.b32", results=("u32",))
def _active(emitter: Emitter, instruction: ptx.Instruction) -> None:
    emitter.write(instruction.operands[0], "u32", "warp_active(G)")
