"""Control flow. The scheduler does the work; the rules say where a block ends and where lanes wait."""

from __future__ import annotations

from .. import ptx
from ..ptx.barriers import PREFIX
from . import Rule, register

for _name in ("bra", "bra.uni"):
    register(Rule(_name, None, writes=0, terminator="branch"))
for _name in ("ret", "ret.uni", "exit"):
    register(Rule(_name, None, writes=0, terminator="exit"))


def _barrier(emitter, instruction: ptx.Instruction) -> None:
    """The scheduler does the waiting."""


for _name in ("bar", "barrier", "bar.cta", "barrier.cta"):
    for _aligned in ("", ".aligned"):
        register(Rule(f"{_name}.sync{_aligned}", _barrier, writes=0, gate="barrier"))
        for _what in ("sync", "arrive"):
            register(Rule(f"{PREFIX}{_name}.{_what}{_aligned}", _barrier, writes=0, gate="named"))


def _fence(emitter, instruction) -> None:
    """Memory fences order what is already in order here; only the search for races wants to know of them."""
    emitter.line("memory_fence(G)")


for _name in ("membar.gl", "membar.cta", "membar.sys"):
    register(Rule(_name, _fence, writes=0))
for _order in ("sc", "acq_rel", "acquire", "release"):
    for _scope in ("cta", "gpu", "sys", "cluster"):
        register(Rule(f"fence.{_order}.{_scope}", _fence, writes=0))
        register(Rule(f"fence.{_scope}.{_order}", _fence, writes=0))
