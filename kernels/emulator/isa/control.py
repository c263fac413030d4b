"""Control flow. The scheduler does the work; the rules say where a block ends and where lanes wait."""

from __future__ import annotations

from .. import ptx
from . import Rule, register

for _name in ("bra", "bra.uni"):
    register(Rule(_name, None, writes=0, terminator="branch"))
for _name in ("ret", "ret.uni", "exit"):
    register(Rule(_name, None, writes=0, terminator="exit"))


def _barrier(emitter, instruction: ptx.Instruction) -> None:
    """Barriers of all threads only; the scheduler does the waiting."""
    if len(instruction.operands) != 1:
        emitter.refuse("barriers for some of the threads are not supported")


for _name in ("bar.sync", "barrier.sync", "barrier.sync.aligned"):
    register(Rule(_name, _barrier, writes=0, gate="barrier"))


def _fence(emitter, instruction) -> None:
    """Memory fences order what is already in order here; only the search for races wants to know of them."""
    emitter.line("memory_fence(G)")


for _name in (
    "membar.gl",
    "membar.cta",
    "membar.sys",
    "fence.sc.gpu",
    "fence.acq_rel.gpu",
    "fence.sc.cta",
    "fence.acq_rel.cta",
):
    register(Rule(_name, _fence, writes=0))
