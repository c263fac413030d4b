"""Sentences that explain the counters of a line."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from climb.cli.emulation.lines import Line
from climb.emulator import AccessCounters


def meanings(line: Line) -> Iterator[str]:
    """Describe a line in sentences, as HTML."""
    if one := line.executed:
        lanes = 32 * one.lane_efficiency
        yield (
            f"<strong>Executed.</strong> Warps issued {_count(one.warp_instructions, 'PTX instruction')} for this "
            f"line, on average with {lanes:.3g} of 32 lanes active."
            + (" The other lanes waited: a condition or a loop left them out." if one.lane_efficiency < 0.9 else "")
        )
    for access in line.accesses:
        yield _access(access)
    for branch in line.branches:
        if branch.divergent_branches:
            yield (
                f"<strong>Branch.</strong> Warps came to it {_count(branch.branches, 'time')}; "
                f"{branch.divergent_branches:,} times their lanes went both ways, and the warp executed one side after "
                "the other. Conditions that are equal for all lanes of a warp do not diverge."
            )
        elif branch.branches:
            times = _count(branch.branches, "time")
            yield f"<strong>Branch.</strong> Warps came to it {times}; their lanes always agreed."
    for product in line.products:
        yield (
            f"<strong>Matrix product.</strong> {_count(product.instructions, 'instruction')} "
            f"<code>{escape(product.instruction)}</code>, {_count(product.flops, 'operation')}."
        )
    for mark in line.marks:
        yield f"<strong>Machine code.</strong> Hardware may count {escape(mark)}."


def _access(one: AccessCounters) -> str:
    start = f"<strong>{escape(one.kind.capitalize())}</strong>"
    if one.kind.startswith("tma"):
        return (
            f"{start}, {_count(one.requests, 'instruction')} of the copy engine: {_count(one.bytes, 'byte')} "
            f"in {_count(one.sectors, 'sector')}."
        )
    start += f", {_count(one.width, 'byte')} a lane: {_count(one.requests, 'request')}"
    if one.sectors:
        text = f"{start}, each of which moves {_each(one.sectors_per_request, 'sector')} of 32 bytes. "
        if one.sectors > one.ideal_sectors:
            text += (
                f"The bytes would fit into {one.ideal_sectors / one.requests:.3g}. Let neighbouring lanes access "
                "neighbouring elements, and begin at a multiple of 32 bytes."
            )
        else:
            text += "Fewer cannot hold the bytes."
    elif one.wavefronts:
        text = f"{start}, each of which takes {_each(one.wavefronts_per_request, 'wavefront')}. "
        if one.bank_conflicts:
            text += (
                f"Without bank conflicts it would take {one.ideal_wavefronts / one.requests:.3g}: lanes that access "
                "different words of one bank take turns. Pad the rows, or permute their columns."
            )
        else:
            text += "It has no bank conflicts."
    else:
        text = f"{start}."
    if one.same_address:
        text += (
            f" {_count(one.same_address, 'lane')} hit an address that another lane of the warp hits too: such atomics "
            "take turns. Add up within the warp first."
        )
    return text


def _count(number: int, unit: str) -> str:
    return f"{number:,} {unit}" + ("" if number == 1 else "s")


def _each(number: float, unit: str) -> str:
    """Format a mean, and say that it is one unless it is a whole number."""
    shown = f"{number:.3g}"
    return f"{shown} {unit}" + ("" if shown == "1" else "s") + ("" if number == round(number) else " on average")
