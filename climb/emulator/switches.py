"""Switch tables (brx.idx), which are run, and counted, as the chain of comparisons that they stand for."""

from __future__ import annotations

from dataclasses import replace

from . import ptx


def unfold(function: ptx.Function) -> ptx.Function:
    """The function without brx.idx: a comparison and a branch for each entry of the table but the last."""
    found = [item for item in function.body if isinstance(item, ptx.Instruction) and item.opcode.startswith("brx.idx")]
    if not found:
        return function
    registers, body = dict(function.registers), []
    for item in function.body:
        if item not in found:
            body.append(item)
            continue
        index, table = item.operands
        targets = function.branch_targets[table.name]
        skip = f" past {len(body)}"
        if item.guard is not None:
            register, negated = item.guard
            body.append(replace(item, opcode="bra", operands=(ptx.Symbol(skip),), guard=(register, not negated)))
        for number, target in enumerate(targets[:-1]):
            flag = ptx.Register(f"%entry {len(body)}")
            registers[flag.name] = "pred"
            entry = ptx.Immediate(number)
            body.append(replace(item, opcode="setp.eq.u32", operands=(flag, index, entry), guard=None))
            body.append(replace(item, opcode="bra", operands=(ptx.Symbol(target),), guard=(flag, False)))
        body.append(replace(item, opcode="bra", operands=(ptx.Symbol(targets[-1]),), guard=None))
        body.append(ptx.Label(skip))
    return replace(function, registers=registers, body=body)
