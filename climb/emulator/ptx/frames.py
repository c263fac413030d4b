"""Turn calls of shared bodies into branches, and let recursive functions save their registers.

A call passes the arguments in the callee's registers, sets the number of the place to return to, and branches to the
body; `frame.return` branches back by that number. All lanes that are in a body share its code but not its values: each
has its own frames. Before a call that may lead back to the caller, `frame.push` saves the registers that the caller
still needs; `frame.pop` restores them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from . import model as ptx
from .control_flow import Roles, Rule, build
from .inlining import entry_label, return_register

CALL, RETURN = "call.outlined", "frame.return"
Body = list[ptx.Instruction | ptx.Label]


def use_frames(function: ptx.Function, rule: Callable[[ptx.Instruction], Rule], roles: Roles) -> ptx.Function:
    """Return the function without calls of shared bodies; the same object if it has none.

    `rule` and `roles` are as for `control_flow.build`.
    """
    if not any(isinstance(item, ptx.Instruction) and item.opcode == CALL for item in function.body):
        return function
    out = replace(function, registers=dict(function.registers), body=[])
    sites: dict[str, list[ptx.Label]] = {}
    for segment in _segments(function.body):
        saved = _saved(function, segment, rule, roles)
        for index, item in enumerate(segment):
            if isinstance(item, ptx.Instruction) and item.opcode == CALL:
                out.body.extend(_call(item, saved.get(index, ()), sites))
            else:
                out.body.append(item)
    body, out.body = out.body, []
    for item in body:
        if isinstance(item, ptx.Instruction) and item.opcode == RETURN:
            out.body.extend(_return(item, sites, out.registers))
        else:
            out.body.append(item)
    return out


def _segments(body: Body) -> list[Body]:
    """Return the kernel's own code, and each shared body."""
    out: list[Body] = [[]]
    for item in body:
        if isinstance(item, ptx.Label) and item.name.startswith(entry_label("")):
            out.append([])
        out[-1].append(item)
    return out


def _saved(
    function: ptx.Function, segment: Body, rule: Callable[[ptx.Instruction], Rule], roles: Roles
) -> dict[int, tuple[ptx.Register, ...]]:
    """Return the registers to save at each call, by its index, that may lead back to this segment."""
    recursive = [
        (index, item)
        for index, item in enumerate(segment)
        if isinstance(item, ptx.Instruction) and item.opcode == CALL and item.operands[-1].value
    ]
    if not recursive or not isinstance(segment[0], ptx.Label) or segment[-1].opcode != RETURN:
        return {}
    body: Body = []
    for index, item in enumerate(segment):
        body.append(item)
        if isinstance(item, ptx.Instruction) and item.opcode == CALL:
            body.append(ptx.Label(f" after {index}"))  # ends the basic block
    blocks = build(replace(function, body=body), rule, roles)
    out = {}
    for index, item in recursive:
        block = next(b for b in blocks if any(one is item for one in b.instructions))
        live = blocks[block.next].live if block.next >= 0 else frozenset()
        written = {register.name for register in item.operands[0].items}
        names = sorted(name for name in live - written if name in function.registers)
        out[index] = tuple(ptx.Register(name) for name in names)
    return out


def _call(item: ptx.Instruction, saved: tuple[ptx.Register, ...], sites: dict[str, list[ptx.Label]]) -> Body:
    results, arguments, name, results_there, arguments_there, _ = item.operands
    places = sites.setdefault(name.name, [])
    back = ptx.Label(f"{len(places)} from {name.name}")
    number = ptx.Immediate(len(places))
    places.append(back)
    out: Body = []
    if item.operands[-1].value:
        out.append(replace(item, opcode="frame.push", operands=(ptx.Vector(saved),)))
    out += _moves(item, arguments_there.items, arguments.items)
    out.append(replace(item, opcode="mov.b32", operands=(return_register(name.name), number)))
    out.append(replace(item, opcode="bra", operands=(ptx.Symbol(entry_label(name.name)),)))
    out.append(back)
    out += _moves(item, results.items, results_there.items)
    if item.operands[-1].value:
        out.append(replace(item, opcode="frame.pop", operands=(ptx.Vector(saved),)))
    return out


def _moves(item: ptx.Instruction, targets: tuple, sources: tuple) -> Body:
    pairs = (
        (ptx.Register(target.name), ptx.Register(source.name)) for target, source in zip(targets, sources, strict=True)
    )
    return [replace(item, opcode="frame.move", operands=pair) for pair in pairs]


def _return(item: ptx.Instruction, sites: dict[str, list[ptx.Label]], registers: dict[str, str]) -> Body:
    """Compare the number with that of each place to return to; the last one needs no comparison."""
    register = item.operands[0]
    places = next(found for name, found in sites.items() if return_register(name) == register)
    out: Body = []
    for number, place in enumerate(places[:-1]):
        flag = ptx.Register(f"%to {number} of {register.name[1:]}")
        registers[flag.name] = "pred"
        out.append(replace(item, opcode="setp.eq.u32", operands=(flag, register, ptx.Immediate(number))))
        out.append(replace(item, opcode="bra", operands=(ptx.Symbol(place.name),), guard=(flag, False)))
    out.append(replace(item, opcode="bra", operands=(ptx.Symbol(places[-1].name),)))
    return out
