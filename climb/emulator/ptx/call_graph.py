"""The functions that a call can reach: by name, or through a pointer, which may target any function of its signature.

A function is recursive if a chain of calls leads from it back to it. Calls through pointers count with all their
possible targets, so a virtual function that calls another through the same table counts as recursive.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

from . import model as ptx

#: The bytes of each result and of each parameter.
Signature = tuple[tuple[int, ...], tuple[int, ...]]


def signature(returns: list[ptx.Variable], params: list[ptx.Variable]) -> Signature:
    """Return the signature of a function or a prototype."""
    return tuple(each.nbytes for each in returns), tuple(each.nbytes for each in params)


def callee(call: ptx.Instruction) -> ptx.Register | ptx.Symbol:
    """Return the target of a call: a register that holds a pointer, or the name of a function."""
    return next(operand for operand in call.operands if isinstance(operand, ptx.Register | ptx.Symbol))


def calls(function: ptx.Function) -> Iterator[ptx.Instruction]:
    """Return the calls in a function's body."""
    for item in function.body or ():
        if isinstance(item, ptx.Instruction) and item.opcode.split(".")[0] == "call":
            yield item


class CallGraph:
    """The calls of a module."""

    def __init__(self, program: ptx.Program) -> None:
        self.program = program
        self._reaches: dict[str, frozenset[str]] = {}

    @cached_property
    def addressed(self) -> tuple[str, ...]:
        """The functions with a body whose address the module takes, in the module's order."""
        program = self.program
        able = [name for name, one in program.functions.items() if one.body and not one.entry]
        if not able:
            return ()
        names = {name for variable in program.variables.values() for _, name, _, _ in variable.relocations}
        for function in program.functions.values():
            direct = {id(callee(call)) for call in calls(function)}
            for item in function.body or ():
                if isinstance(item, ptx.Instruction):
                    found = (o for o in item.operands if isinstance(o, ptx.Symbol) and id(o) not in direct)
                    names.update(one.name for one in found)
        return tuple(name for name in able if name in names)

    def targets(self, caller: ptx.Function, call: ptx.Instruction) -> tuple[str, ...]:
        """Return the functions with a body that a call in the body of `caller` may reach."""
        to = callee(call)
        if isinstance(to, ptx.Symbol):
            found = self.program.functions.get(to.name)
            return (to.name,) if found is not None and found.body is not None else ()
        label = call.operands[-1].name if isinstance(call.operands[-1], ptx.Symbol) else ""
        listed = caller.call_targets.get(label)
        if listed is not None:
            return tuple(name for name in self.addressed if name in listed)
        wanted = caller.prototypes.get(label)
        functions = ((name, self.program.functions[name]) for name in self.addressed)
        return tuple(name for name, one in functions if signature(one.returns, one.params) == wanted)

    def reaches(self, name: str) -> frozenset[str]:
        """Return the functions that `name` calls, directly or through others; itself only if it is recursive."""
        found = self._reaches.get(name)
        if found is None:
            seen: set[str] = set()
            stack = [name]
            while stack:
                function = self.program.functions[stack.pop()]
                for call in calls(function):
                    new = set(self.targets(function, call)) - seen
                    seen |= new
                    stack.extend(new)
            found = self._reaches[name] = frozenset(seen)
        return found

    def recursive(self, name: str) -> bool:
        """Return whether a chain of calls leads from the function back to it."""
        return name in self.reaches(name)
