"""Turn the raw counts of a launch into its counters, line by line."""

from __future__ import annotations

import re

from ..ptx.model import Location
from ..simt.code import TranslatedKernel
from ..simt.launch_counts import LaunchCounts
from .counters import Counters
from .lines import AccessCounters, BranchCounters, ExecutionCounters, ProductCounters


def summarize(
    kernel: TranslatedKernel, grid: tuple[int, int, int], block: tuple[int, int, int], counts: LaunchCounts
) -> Counters:
    """Return the counters of a launch that has ended."""
    warps = threads = branches = divergent = 0
    by_line: dict[tuple[str, int], list[int]] = {}
    by_execution: dict[tuple[str, int], list[int]] = {}
    for one, executed, branched in zip(kernel.code.blocks, counts.executed, counts.branches, strict=True):
        instructions = sum(one.lines.values())
        warps += instructions * executed[0]
        threads += instructions * executed[1]
        if executed[0]:
            for line, number in one.lines.items():
                sums = by_execution.setdefault(line, [0, 0])
                sums[0] += number * executed[0]
                sums[1] += number * executed[1]
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
        product_lines=_product_lines(kernel, counts),
        notes=tuple(counts.notes),
        execution_lines=tuple(
            ExecutionCounters(file, line, *sums) for (file, line), sums in sorted(by_execution.items())
        ),
    )


_SIZES = re.compile(r"m(\d+)n(\d+)k(\d+)")
_UNNAMED = frozenset({"sync", "aligned", "mma_async", "row", "col"})  # parts of an opcode that a count does not show


def _product_lines(kernel: TranslatedKernel, counts: LaunchCounts) -> tuple[ProductCounters, ...]:
    """Make one entry for each source line and kind of matrix product, in source order."""
    sums: dict[tuple[str, int, str], int] = {}
    for index, number in counts.products.items():
        site = kernel.code.sites[index]
        name = (
            ".".join(part for part in site.opcode if part not in _UNNAMED)
            .replace("wmma.mma", "wmma")
            .replace("::ordered_metadata", "")
        )
        key = (site.location.file, site.location.line, name)
        sums[key] = sums.get(key, 0) + number
    lines = []
    for (file, line, name), number in sorted(sums.items()):
        m, n, k = map(int, _SIZES.search(name).groups())
        warps = 4 if name.startswith("wgmma") else 1  # the warps that issue one product together
        products = 4 if name.startswith("mma.m8n8k4.") and ".f64" not in name else 1  # one product by eight lanes each
        left_out = 2 if ".sp" in name else 1  # a sparse product does half of the multiplications
        flops = 2 * m * n * k * number // warps * products // left_out
        lines.append(ProductCounters(file, line, kernel.line_text(Location(file, line)), name, number, flops))
    return tuple(lines)


def _access_lines(kernel: TranslatedKernel, counts: LaunchCounts) -> tuple[AccessCounters, ...]:
    """Make one entry for each source line, kind of access and width, in source order."""
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
        in_shared_memory = kind.startswith(("shared", "matrix"))
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
