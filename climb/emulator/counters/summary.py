"""From the raw counts of a launch to its counters, line by line."""

from __future__ import annotations

from ..ptx.model import Location
from ..simt.code import TranslatedKernel
from ..simt.launch_counts import LaunchCounts
from .counters import Counters
from .lines import AccessCounters, BranchCounters


def summarize(
    kernel: TranslatedKernel, grid: tuple[int, int, int], block: tuple[int, int, int], counts: LaunchCounts
) -> Counters:
    """The counters of a launch that has ended."""
    warps = threads = branches = divergent = 0
    by_line: dict[tuple[str, int], list[int]] = {}
    for one, executed, branched in zip(kernel.code.blocks, counts.executed, counts.branches, strict=True):
        instructions = len(one.instructions) + (one.branch is not None)
        warps += instructions * executed[0]
        threads += instructions * executed[1]
        if one.guard is not None and not one.predicated:
            branches += branched[0]
            divergent += branched[1]
            where = one.branch.location
            sums = by_line.setdefault((where.file, where.line), [0, 0])
            sums[0] += branched[0]
            sums[1] += branched[1]
    branch_lines = tuple(
        BranchCounters(file, line, kernel.line_text(Location(file, line)), *sums)
        for (file, line), sums in sorted(by_line.items())
    )
    return Counters(
        kernel.name,
        grid,
        block,
        _access_lines(kernel, counts),
        branch_lines,
        warps,
        threads,
        branches,
        divergent,
        counts.barriers,
        files=kernel.sources,
        notes=tuple(counts.notes),
    )


def _access_lines(kernel: TranslatedKernel, counts: LaunchCounts) -> tuple[AccessCounters, ...]:
    """One entry for each source line, kind of access and width, in source order."""
    groups: dict[tuple[str, int, str, int], list[int]] = {}
    for (space, index), values in counts.sites.items():
        site = kernel.code.sites[index]
        width = 1 if space == "tma" else site.width
        key = (site.location.file, site.location.line, f"{space} {site.action}", width)
        sums = groups.setdefault(key, [0, 0, 0, 0, 0])
        for position, value in enumerate(values):
            sums[position] += value
    lines = []
    for (file, line, kind, width), (requests, lanes, achieved, ideal, same_address) in sorted(groups.items()):
        in_shared_memory = kind.startswith("shared")
        lines.append(
            AccessCounters(
                file,
                line,
                kernel.line_text(Location(file, line)),
                kind,
                width,
                requests,
                lanes,
                *((0, 0, achieved, ideal) if in_shared_memory else (achieved, ideal, 0, 0)),
                same_address,
            )
        )
    return tuple(lines)
