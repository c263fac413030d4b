"""Raw counts of a launch while it runs."""

from __future__ import annotations


class LaunchCounts:
    """Counts of a launch while it runs, for a kernel of `blocks` basic blocks.

    `sites`: by (space, index of the site), [requests, lanes, achieved, ideal, lanes at a shared address]. `executed`
    and `branches`: by basic block, [warps, lanes] and [warps, divergent warps]. `products`: matrix products by the
    index of their site. `printed`: the output of printf, as (block, event, thread, text). `notes`: findings that are
    not faults, but worth knowing; `warnings`: the notes that Python warns of.
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
        """Note something that CUDA allows and that is probably a mistake; once for each text."""
        if what not in self.warnings:
            self.warnings.append(what)
            self.notes.append(what)

    def add(self, other: LaunchCounts) -> None:
        """Add a worker's counts. It has printed nothing."""
        for key, values in other.sites.items():
            into = self[key]
            for position, value in enumerate(values):
                into[position] += value
        for mine, theirs in ((self.executed, other.executed), (self.branches, other.branches)):
            for into, values in zip(mine, theirs, strict=True):
                into[0] += values[0]
                into[1] += values[1]
        for index, number in other.products.items():
            self.products[index] = self.products.get(index, 0) + number
        self.barriers += other.barriers
        for what in other.warnings:
            self.warn(what)

    def __getitem__(self, key: tuple[str, int]) -> list[int]:
        found = self.sites.get(key)
        if found is None:
            found = self.sites[key] = [0, 0, 0, 0, 0]
        return found
