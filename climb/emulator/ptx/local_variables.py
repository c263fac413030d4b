"""Tell the local variables of a function apart, if the compiler's debug information says where they are.

The compiler makes one variable, the depot, of all local variables of a function: an overrun from one array into the
next looks like any other access to it. With `-G`, the debug information (DWARF 2, "Location Descriptions") has the name
of each variable and its offset in the depot; then each becomes a separate variable. Optimised code, with `-lineinfo`,
has no such information. Members of a structure stay together in either case: the code computes their addresses from
that of the structure, as it does for an element of an array.
"""

from __future__ import annotations

import re
from dataclasses import replace

from . import model as ptx

_BYTES = re.compile(r"\.b8\s+([\d,\s]+)")
_PLACE = re.compile(r"\.b64\s+(__local_depot\d+)\s+((?:\.b8\s+[\d, ]+\s+)+)")
_PLUS = 35  # DW_OP_plus_uconst
_FRAME = ("%SP", "%SPL")  # the registers that hold the depot's address: a generic one, and one in local memory
Named = dict[str, dict[int, str]]


def described(text: str) -> Named:
    """Return the names of local variables by depot and offset, from the debug information in PTX text."""
    out: Named = {}
    for match in _PLACE.finditer(text):
        numbers = [int(each) for part in _BYTES.findall(match.group(2)) for each in part.replace(",", " ").split()]
        if numbers[:1] != [_PLUS]:
            continue
        offset, shift, at = 0, 0, 1
        while True:  # an unsigned LEB128 number
            offset |= (numbers[at] & 0x7F) << shift
            shift, at = shift + 7, at + 1
            if numbers[at - 1] < 0x80:
                break
        end = numbers.index(0, at) if 0 in numbers[at:] else len(numbers)
        name = bytes(numbers[at:end]).decode("utf-8", "replace")
        out.setdefault(match.group(1), {})[offset] = name
    return out


def separate(function: ptx.Function, named: Named) -> None:
    """Split the depot of a function into its variables, if they are known and every use of it is understood."""
    depot = next((each for each in function.variables if each.name in named), None)
    if depot is None or not function.body:
        return
    starts = sorted({0, *named[depot.name]})
    ends = [*starts[1:], depot.nbytes]
    parts = [
        replace(depot, name=f"{named[depot.name].get(start, 'unnamed')}@{start}", nbytes=end - start)
        for start, end in zip(starts, ends, strict=True)
    ]

    def place(offset: int) -> ptx.Symbol | None:
        at = next((n for n, end in enumerate(ends) if starts[n] <= offset < end), None)
        return None if at is None else ptx.Symbol(parts[at].name, offset - starts[at])

    body: list[ptx.Instruction | ptx.Label] = []
    for item in function.body:
        if isinstance(item, ptx.Label) or not any(_frame(operand) for operand in item.operands):
            body.append(item)
            continue
        if item.operands[0] in (ptx.Register("%SP"), ptx.Register("%SPL")):  # the depot's address itself
            body.append(item)
            continue
        target, source, *rest = item.operands
        if item.opcode != "add.u64" or not _frame(source) or not isinstance(rest[0], ptx.Immediate):
            return
        symbol = place(rest[0].value)
        if symbol is None:
            return
        body.append(replace(item, opcode="mov.u64", operands=(target, symbol)))
        if source.name == "%SP":
            body.append(replace(item, opcode="cvta.local.u64", operands=(target, target)))
    function.body = body
    function.variables = [each for each in function.variables if each is not depot]
    # The depot keeps an address, since the code computes it; nothing is stored there now.
    function.variables += [replace(depot, nbytes=min(depot.nbytes, 16)), *parts]


def _frame(operand: ptx.Operand) -> bool:
    """Return whether an operand is the depot's address, or an address relative to it."""
    base = operand.base if isinstance(operand, ptx.Address) else operand
    return isinstance(base, ptx.Register) and base.name in _FRAME
