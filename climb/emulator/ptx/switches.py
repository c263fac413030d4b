"""Switch tables (brx.idx): replace each by the equivalent chain of comparisons, which is run and counted instead."""

from __future__ import annotations

from dataclasses import replace

from . import model as ptx


def unfold(function: ptx.Function) -> ptx.Function:
    """Return the function without brx.idx: one comparison and branch for each table entry except the last."""
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
