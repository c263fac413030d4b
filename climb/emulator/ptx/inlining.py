"""Replace calls by the bodies of the called functions.

Every call gets its own copy of the callee's registers, labels and local variables. PTX passes arguments and results
through `.param` variables; here they become registers, one for each variable and offset. Recursion and calls through
pointers are refused.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from . import model as ptx

DEPTH = 16
#: System functions have no body: a call becomes an instruction named after the function.
SYSTEM = ("vprintf", "__assertfail")

Refuse = Callable[[ptx.Instruction, str], None]


def inline(program: ptx.Program, function: ptx.Function, refuse: Refuse) -> ptx.Function:
    """The function without calls; the same object if it has none. `refuse` must raise: a call cannot be inlined."""
    if not any(isinstance(item, ptx.Instruction) and item.opcode.startswith("call") for item in function.body):
        return function
    out = replace(function, registers=dict(function.registers), variables=[], body=[], branch_targets={})
    _Inliner(program, out, refuse).copy(function, "", {}, None, ())
    return out


class _Inliner:
    """Copies bodies into `out`; `count` numbers the calls."""

    def __init__(self, program: ptx.Program, out: ptx.Function, refuse: Refuse) -> None:
        self.program, self.out, self.refuse, self.count = program, out, refuse, 0

    def copy(
        self, function: ptx.Function, suffix: str, parameters: dict[str, str], end: str | None, stack: tuple[str, ...]
    ) -> None:
        """Copy the body of `function` and append `suffix` to its names. `parameters` maps its parameters to variables.

        A return branches to the label `end`; `stack` holds the names of the callers.
        """
        rename = dict(parameters)
        for name, kind in function.registers.items():
            rename[name] = name + suffix
            self.out.registers[name + suffix] = kind
        for variable in function.variables:
            rename[variable.name] = variable.name + suffix
            if variable.space != "param":
                # All calls of a function share one copy of its shared variables.
                shared = variable.space == "shared"
                rename[variable.name] = variable.name if shared else variable.name + suffix
                if not shared or all(v.name != variable.name for v in self.out.variables):
                    self.out.variables.append(replace(variable, name=rename[variable.name]))
        for item in function.body:
            if isinstance(item, ptx.Label):
                rename[item.name] = item.name + suffix
        for name, targets in function.branch_targets.items():
            rename[name] = name + suffix
            self.out.branch_targets[name + suffix] = tuple(t + suffix for t in targets)
        for item in function.body:
            if isinstance(item, ptx.Label):
                self.out.body.append(ptx.Label(rename[item.name]))
                continue
            operation = item.opcode.split(".")[0]
            guard = None if item.guard is None else (ptx.Register(rename[item.guard[0].name]), item.guard[1])
            item = replace(item, guard=guard, operands=tuple(_rename(o, rename) for o in item.operands))
            if operation == "call":
                self._call(item, (*stack, function.name))
            elif operation == "ret" and end is not None:
                self.out.body.append(replace(item, opcode="bra", operands=(ptx.Symbol(end),)))
            elif item.opcode.startswith(("ld.param", "st.param")) and not _of_kernel(item, function):
                self._parameter(item)
            else:
                self.out.body.append(item)

    def _call(self, item: ptx.Instruction, stack: tuple[str, ...]) -> None:
        groups = [operand for operand in item.operands if isinstance(operand, ptx.Arguments)]
        named = [operand for operand in item.operands if isinstance(operand, ptx.Symbol)]
        if not named or any(isinstance(operand, ptx.Register) for operand in item.operands):
            self.refuse(item, "calls through pointers (function pointers, virtual functions) are not supported")
        name = named[0].name
        results = groups[0].items if isinstance(item.operands[0], ptx.Arguments) else ()
        arguments = groups[-1].items if len(groups) > bool(results) else ()
        if name in SYSTEM:
            values = tuple(self._register(a.name, 0, None) for a in (*results, *arguments))
            self.out.body.append(replace(item, opcode=f"call.{name}", operands=values))
            return
        callee = self.program.functions.get(name)
        if name in ("malloc", "free"):
            self.refuse(item, f"{name} in a kernel is not supported: memory is allocated before the launch")
        if callee is None or callee.body is None:
            self.refuse(item, f"the function {name} has no body in this module")
        if name in stack or len(stack) > DEPTH:
            self.refuse(item, f"{name} calls itself; recursion is not supported")
        if item.guard is not None:
            self.refuse(item, "a call under a predicate is not supported")
        self.count += 1
        suffix, end = f"@{self.count}", f"end@{self.count}"
        mapped = {p.name: a.name for p, a in zip(callee.params, arguments, strict=True)}
        mapped |= {p.name: r.name for p, r in zip(callee.returns, results, strict=True)}
        self.copy(callee, suffix, mapped, end, stack)
        self.out.body.append(ptx.Label(end))

    def _register(self, variable: str, offset: int, kind: str | None) -> ptx.Register:
        """The register that holds the bytes at `offset` of a parameter variable."""
        name = f"%{variable}+{offset}"
        if kind is None:
            kind = self.out.registers.get(name, "b64")
        self.out.registers.setdefault(name, kind)
        return ptx.Register(name)

    def _parameter(self, item: ptx.Instruction) -> None:
        """Turn ld.param or st.param of a call's parameter into a move."""
        load = item.opcode.startswith("ld")
        address, value = item.operands[::-1] if load else item.operands
        kind = item.opcode.split(".")[-1]
        if not isinstance(address.base, ptx.Symbol):
            self.refuse(item, "a parameter of a function is accessed at an address that is not constant")
        nbytes = ptx.TYPE_BYTES[kind]
        items = value.items if isinstance(value, ptx.Vector) else (value,)
        for index, one in enumerate(items):
            offset = address.offset + address.base.offset + index * nbytes
            name = f"%{address.base.name}+{offset}"
            if load and name not in self.out.registers:
                self.refuse(item, "a parameter is read where it was not written")
            place = self._register(address.base.name, offset, f"b{max(8 * nbytes, 16)}")
            have = ptx.TYPE_BYTES[self.out.registers[place.name]]
            if have < nbytes or (not load and have != max(nbytes, 2)):
                self.refuse(item, "a parameter is written and read with different widths")
            target, source = (one, place) if load else (place, one)
            if target == ptx.Register("_"):
                continue
            wide = ptx.TYPE_BYTES[self.out.registers[target.name]]
            if nbytes == 1 or wide != nbytes or have != max(nbytes, 2):
                sign = "s" if kind[0] == "s" else "u"
                opcode = f"cvt.{sign}{8 * wide}.{sign}{8 * nbytes}"
            else:
                opcode = f"mov.b{8 * nbytes}"
            self.out.body.append(replace(item, opcode=opcode, operands=(target, source)))


def _of_kernel(item: ptx.Instruction, function: ptx.Function) -> bool:
    """Whether an ld.param reads a parameter of the kernel itself; in a kernel, every computed address does."""
    address = next(operand for operand in item.operands if isinstance(operand, ptx.Address))
    if not isinstance(address.base, ptx.Symbol):
        return function.entry
    return function.entry and any(p.name == address.base.name for p in function.params)


def _rename(operand: ptx.Operand, names: dict[str, str]) -> ptx.Operand:
    if isinstance(operand, ptx.Register):
        return ptx.Register(names.get(operand.name, operand.name))
    if isinstance(operand, ptx.Symbol):
        return ptx.Symbol(names.get(operand.name, operand.name), operand.offset)
    if isinstance(operand, ptx.Address):
        extra = tuple(_rename(o, names) for o in operand.extra)
        return ptx.Address(_rename(operand.base, names) if operand.base else None, operand.offset, extra)
    if isinstance(operand, ptx.Vector | ptx.Arguments):
        return type(operand)(tuple(_rename(o, names) for o in operand.items))
    if isinstance(operand, ptx.Pair):
        return ptx.Pair(_rename(operand.first, names), _rename(operand.second, names))
    if isinstance(operand, ptx.Negated):
        return ptx.Negated(_rename(operand.register, names))
    return operand
