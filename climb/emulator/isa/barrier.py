"""Barriers of a block or a warp, votes at a barrier, and memory fences.

`named.name_barriers` puts a prefix before the opcode of a barrier that is not for all threads of the block.
"""

from __future__ import annotations

from .. import ptx
from ..ptx.barriers import PREFIX
from .emitter import Emitter
from .registry import Rule, register, special

_FORMS = {"name": ("bar", "barrier", "bar.cta", "barrier.cta"), "aligned": ("", ".aligned")}


def _wait(emitter: Emitter, instruction: ptx.Instruction) -> None:
    """Write nothing: the scheduler does the waiting."""


register("{name}.sync{aligned}", rule=Rule(_wait, writes=0, gate="barrier"), **_FORMS)
register(
    PREFIX + "{name}.{action}{aligned}", rule=Rule(_wait, writes=0, gate="named"), action=("sync", "arrive"), **_FORMS
)
register("bar.warp.sync", rule=Rule(None, writes=0, gate="warp"))


def _vote(emitter: Emitter, instruction: ptx.Instruction, how: str, t: str, **_: str) -> None:
    target, *_, flag = instruction.operands
    flag = emitter.read(flag, "pred")
    code = f"block_vote(G, '{how}', {flag})"
    if instruction.opcode.startswith(PREFIX):
        code = f"named_vote(G, '{how}', {emitter.read(instruction.operands[1], 'u32')}, {flag})"
    emitter.write(target, t, code)


for _how, _t in ((("popc",), "u32"), (("and", "or"), "pred")):
    _opcode = "{name}.red.{how}{aligned}.{t}"
    special(_opcode, results=(_t,), gate="barrier", how=_how, t=(_t,), **_FORMS)(_vote)
    special(PREFIX + _opcode, results=(_t,), gate="named", how=_how, t=(_t,), **_FORMS)(_vote)


def _fence(emitter: Emitter, instruction: ptx.Instruction, scope: str, **_: str) -> None:
    """Tell the search for races. Values need no fence, because every access takes effect at once."""
    emitter.line(f"memory_fence(G, {scope!r})")


@special("fence.proxy.async{space}", writes=0, space=("", ".global", ".shared::cta", ".shared::cluster"))
def _proxy_fence(emitter: Emitter, instruction: ptx.Instruction, **_: str) -> None:
    """Tell the checks of asynchronous reads."""
    emitter.line("proxy_fence(G)")


@special("fence.mbarrier_init.release.cluster", writes=0)
def _initialisation_fence(emitter: Emitter, instruction: ptx.Instruction) -> None:
    """Publish the initialisation of mbarriers."""
    emitter.line("mbarrier_publish(G)")


@special("fence.proxy.alias", writes=0)
@special("fence.proxy.tensormap::generic.{order}.{scope}", writes=0, order=("acquire", "release"),
         scope=("cta", "cluster", "gpu", "sys"))  # fmt: skip
def _other_proxies(emitter: Emitter, instruction: ptx.Instruction, **_: str) -> None:
    """Write nothing: a tensor map takes effect at once."""


special("membar.{scope}", writes=0, scope=("gl", "cta", "sys"))(_fence)
special(
    "fence.{order}.{scope}", "fence.{scope}.{order}", writes=0,
    order=("sc", "acq_rel", "acquire", "release"), scope=("cta", "gpu", "sys", "cluster"),
)(_fence)  # fmt: skip
