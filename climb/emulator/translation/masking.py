"""Find the blocks that can run for lanes that a mask marks, and the branches that may divide lanes so; see
`simt.masks`."""

from __future__ import annotations

import re

from ..ptx.control_flow import Block, post_dominators

#: The uses of the group that generated code may contain: all other uses depend on which lanes are present.
_USES = re.compile(r"\bG\b(?!\.registers\b|\.batch\.parameter\b)")
_LOADS = re.compile(r"\bload_(global|const)\(G,")


def mark(blocks: list[Block], sources: list[str]) -> None:
    """Mark the blocks of a function, whose bodies in generated code are `sources`."""
    for block, source in zip(blocks, sources, strict=True):
        block.maskable = not block.gate and not _USES.search(_LOADS.sub("", source))
    joins = post_dominators(blocks)
    for block in blocks:
        if block.guard is not None and _maskable_up_to(joins[block.index], block, blocks):
            block.join = joins[block.index]


def _maskable_up_to(join: int, branch: Block, blocks: list[Block]) -> bool:
    """Return whether all blocks that can run between a branch and the block at which its paths meet are maskable, come
    before it, and are in no loop."""
    seen: set[int] = set()
    stack = [(branch.index, each) for each in branch.successors]
    while stack:
        before, node = stack.pop()
        if node == join:
            continue
        if not before < node < join or not blocks[node].maskable:
            return False
        if node not in seen:
            seen.add(node)
            stack.extend((node, each) for each in blocks[node].successors)
    return True
