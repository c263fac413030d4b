"""Raw counts of a launch while it runs."""

from __future__ import annotations


class LaunchCounts:
    """Counts of a launch while it runs, for a kernel of `blocks` basic blocks.

    `sites`: by (space, index of the site), [requests, lanes, achieved, ideal, lanes at a shared address]. `executed`
    and `branches`: by basic block, [warps, lanes] and [warps, divergent warps]. `products`: matrix products by the
    index of their site. `printed`: what printf has printed, as (block, event, thread, text). `notes`: what is no fault,
    but worth knowing; `warnings`: those that Python warns of.
    """

    def __init__(self, blocks: int) -> None:
        self.sites: dict[tuple[str, int], list[int]] = {}
        self.executed = [[0, 0] for _ in range(blocks)]
        self.branches = [[0, 0] for _ in range(blocks)]
        self.products: dict[int, int] = {}
        self.barriers = 0
        self.printed: list[tuple[int, int, int, str]] = []
        self.notes: list[str] = []
        self.warnings: list[str] = []
        self.print_events = self.unprinted = 0

    def warn(self, what: str) -> None:
        """Note something that CUDA allows and that is probably not meant; once for each text."""
        if what not in self.warnings:
            self.warnings.append(what)
            self.notes.append(what)

    def __getitem__(self, key: tuple[str, int]) -> list[int]:
        found = self.sites.get(key)
        if found is None:
            found = self.sites[key] = [0, 0, 0, 0, 0]
        return found
