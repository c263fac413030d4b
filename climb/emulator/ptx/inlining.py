"""Remove calls: replace each by the body of the called function, or by a branch to a body that calls share.

A call of a function by name gets its own copy of the callee's registers, labels and local variables. Functions that
are recursive or called through pointers have one body, placed after the kernel's (see `call_graph`): `call.outlined`
goes there, and `frames` turns it into branches. A call through a pointer becomes a chain of comparisons with the
functions that have the right signature.

PTX passes arguments and results through `.param` variables; here they become registers, one for each variable and
offset.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from . import model as ptx
from .call_graph import CallGraph, callee

DEPTH = 64
#: System functions have no body: a call becomes an instruction named after the function.
SYSTEM = ("vprintf", "__assertfail", "malloc", "free")
#: Functions that dynamic parallelism calls to launch a kernel from a kernel.
LAUNCHES = ("cudaLaunchDevice", "cudaGetParameterBuffer", "__cudaCDP2")

Refuse = Callable[[ptx.Instruction, str], None]


def inline(program: ptx.Program, function: ptx.Function, refuse: Refuse) -> ptx.Function:
    """Return the function without calls of other functions; the same object if it has none.

    `refuse` must raise an error for a call that is not possible.
    """
    if not any(isinstance(item, ptx.Instruction) and item.opcode.startswith("call") for item in function.body):
        return function
    out = replace(function, registers=dict(function.registers), variables=[], body=[], branch_targets={})
    inliner = _Inliner(program, out, refuse)
    inliner.copy(function, "", {}, None, ())
    inliner.outline()
    return out


def entry_label(name: str) -> str:
    """Return the label of a shared body."""
    return f"entry of {name}"


def _in(name: str) -> str:
    """Return the function in names of registers, which must not begin with an underscore: the code generator's names
    do."""
    return f"f{name}"


def _on_stack(variable: ptx.Variable, suffix: str) -> str:
    """Return the register that holds the address of a local variable of a recursive function."""
    return f"%{_in(variable.name)}{suffix}"


def _exit_label(name: str) -> str:
    return f"return of {name}"


def _parameter_of(variable: str, name: str) -> str:
    """Return the name of a parameter or result of a shared body."""
    return f"{_in(variable)}@{_in(name)}"


def return_register(name: str) -> ptx.Register:
    """Return the register that tells a shared body which call it returns to."""
    return ptx.Register(f"%return of {_in(name)}")


class _Inliner:
    """Copies bodies into `out`; `count` numbers the calls, `shared` lists the functions with a shared body."""

    def __init__(self, program: ptx.Program, out: ptx.Function, refuse: Refuse) -> None:
        self.program, self.out, self.refuse, self.count = program, out, refuse, 0
        self.graph = CallGraph(program)
        self.shared: dict[str, tuple[list[ptx.Register], list[ptx.Register]]] = {}
        #: The results of calls through a pointer that no function of the module fits: such a call never returns.
        self.never: set[str] = set()

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
        frame = self.graph.recursive(function.name) and function.name in self.shared
        for variable in function.variables:
            rename[variable.name] = variable.name + suffix
            if variable.space == "local" and frame:
                rename[variable.name] = self._allocate(variable, suffix)
            elif variable.space != "param":
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
            given = item
            item = replace(item, guard=guard, operands=tuple(_rename(o, rename) for o in item.operands))
            if operation == "call":
                self._call(function, given, item, (*stack, function.name))
            elif operation == "ret" and end is not None:
                self.out.body.append(replace(item, opcode="bra", operands=(ptx.Symbol(end),)))
            elif item.opcode.startswith(("ld.param", "st.param")) and not _of_kernel(item, function):
                self._parameter(item)
            else:
                self.out.body.append(item)

    def outline(self) -> None:
        """Append the shared bodies, each between its label and `frame.return`."""
        done: set[str] = set()
        if self.shared:
            self._add("exit")
        while len(done) < len(self.shared):
            name = next(each for each in self.shared if each not in done)
            done.add(name)
            function = self.program.functions[name]
            self.out.body.append(ptx.Label(entry_label(name)))
            mapped = {each.name: _parameter_of(each.name, name) for each in (*function.params, *function.returns)}
            self.copy(function, f"@{_in(name)}", mapped, _exit_label(name), (name,))
            self.out.body.append(ptx.Label(_exit_label(name)))
            local = next((each for each in function.variables if each.space == "local"), None)
            if local is not None and self.graph.recursive(name):
                self._add("frame.leave", ptx.Register(_on_stack(local, f"@{_in(name)}")))
            self._add("frame.return", return_register(name), ptx.Vector(tuple(self.shared[name][0])))

    def _add(self, opcode: str, *operands: ptx.Operand, like: ptx.Instruction | None = None) -> None:
        location = like.location if like is not None else ptx.Location()
        text = like.text if like is not None else opcode
        self.out.body.append(ptx.Instruction(opcode, operands, location, None, text))

    def _allocate(self, variable: ptx.Variable, suffix: str) -> str:
        """Let a recursive function allocate a local variable on the stack; return the register that holds its
        address."""
        name = _on_stack(variable, suffix)
        self.out.registers[name] = "b64"
        self._add("frame.enter", ptx.Register(name), ptx.Immediate(variable.nbytes), ptx.Immediate(variable.align))
        return name

    def _call(self, caller: ptx.Function, given: ptx.Instruction, item: ptx.Instruction, stack: tuple) -> None:
        """Replace a call. `given` is the instruction in the body of `caller`, `item` the same with names renamed."""
        if item.guard is not None:
            self.count += 1
            skip = f"skipped@{self.count}"
            register, negated = item.guard
            self.out.body.append(
                replace(item, opcode="bra", operands=(ptx.Symbol(skip),), guard=(register, not negated))
            )
            self._call(caller, given, replace(item, guard=None), stack)
            self.out.body.append(ptx.Label(skip))
            return
        groups = [operand for operand in item.operands if isinstance(operand, ptx.Arguments)]
        results = groups[0].items if isinstance(item.operands[0], ptx.Arguments) else ()
        arguments = groups[-1].items if len(groups) > bool(results) else ()
        to, targets = callee(item), self.graph.targets(caller, given)
        if isinstance(to, ptx.Register):
            self._through_pointer(item, to, targets, results, arguments)
            return
        name = to.name
        if name in SYSTEM:
            values = tuple(self._register(a.name, 0, None) for a in (*results, *arguments))
            self.out.body.append(replace(item, opcode=f"call.{name}", operands=values))
            return
        if name.startswith(LAUNCHES):
            self.refuse(item, "a kernel that launches a kernel (dynamic parallelism) is not supported")
        if not targets:
            self.refuse(item, f"the function {name} has no body in this module")
        if self.graph.recursive(name):
            self._outlined(item, name, results, arguments)
            return
        if len(stack) > DEPTH:
            self.refuse(item, f"calls are nested more than {DEPTH} deep")
        self.count += 1
        suffix, end = f"@{self.count}", f"end@{self.count}"
        function = self.program.functions[name]
        mapped = {p.name: a.name for p, a in zip(function.params, arguments, strict=True)}
        mapped |= {p.name: r.name for p, r in zip(function.returns, results, strict=True)}
        self.copy(function, suffix, mapped, end, stack)
        self.out.body.append(ptx.Label(end))

    def _through_pointer(
        self, item: ptx.Instruction, pointer: ptx.Register, targets: tuple[str, ...], results: tuple, arguments: tuple
    ) -> None:
        """Call the function among `targets` that the pointer holds; the fault `call.unknown` if it holds none of
        them."""
        self.count += 1
        number = self.count
        for name in targets:
            flag = ptx.Register(f"%is {_in(name)}@{number}")
            self.out.registers[flag.name] = "pred"
            self._add("setp.eq.u64", flag, pointer, ptx.Symbol(name), like=item)
            there = ptx.Symbol(f"{name}@{number}")
            self.out.body.append(replace(item, opcode="bra", operands=(there,), guard=(flag, False)))
        self._add("call.unknown", pointer, like=item)
        if not targets:
            self.never.update(one.name for one in results)
        self._add("bra", ptx.Symbol(f"called@{number}"), like=item)
        for name in targets:
            self.out.body.append(ptx.Label(f"{name}@{number}"))
            self._outlined(item, name, results, arguments)
            self._add("bra", ptx.Symbol(f"called@{number}"), like=item)
        self.out.body.append(ptx.Label(f"called@{number}"))

    def _outlined(self, item: ptx.Instruction, name: str, results: tuple, arguments: tuple) -> None:
        """Call a shared body."""
        function = self.program.functions[name]
        if name not in self.shared:
            self.shared[name] = ([], [])
            self.out.registers[return_register(name).name] = "b32"
            for which, variables in zip(self.shared[name], (function.returns, function.params), strict=True):
                for variable, offset, nbytes in _accessed(function, variables):
                    found = self._register(_parameter_of(variable, name), offset, f"b{max(8 * nbytes, 16)}")
                    if found not in which:
                        which.append(found)
        produced, taken = self.shared[name]
        passed = []
        for theirs, ours in ((function.returns, results), (function.params, arguments)):
            names = {_parameter_of(each.name, name): one.name for each, one in zip(theirs, ours, strict=True)}
            pairs = []
            for register in produced if theirs is function.returns else taken:
                variable, offset = register.name[1:].rsplit("+", 1)
                kind = self.out.registers[register.name]
                mine = self._register(names[variable], int(offset), kind)
                if ptx.TYPE_BYTES[self.out.registers[mine.name]] != ptx.TYPE_BYTES[kind]:
                    self.refuse(item, "a parameter is written and read with different widths")
                pairs.append((mine, ptx.Symbol(register.name)))
            passed.append(pairs)
        (outputs, outputs_there), (inputs, inputs_there) = (
            (ptx.Vector(tuple(a for a, _ in pairs)), ptx.Vector(tuple(b for _, b in pairs))) for pairs in passed
        )
        self.out.body.append(
            replace(
                item,
                opcode="call.outlined",
                operands=(outputs, inputs, ptx.Symbol(name), outputs_there, inputs_there,
                          ptx.Immediate(self.graph.recursive(name))),
                guard=None,
            )
        )  # fmt: skip

    def _register(self, variable: str, offset: int, kind: str | None) -> ptx.Register:
        """Return the register that holds the bytes at `offset` of a parameter variable."""
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
            if load and address.base.name in self.never:
                self._add(f"mov.b{8 * max(nbytes, 2)}", one, ptx.Immediate(0), like=item)
                continue
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


def _accessed(function: ptx.Function, variables: list[ptx.Variable]) -> Iterator[tuple[str, int, int]]:
    """Return the parameters among `variables` that a function accesses: (name, offset, bytes) of each element."""
    names = {each.name for each in variables}
    for item in function.body:
        if isinstance(item, ptx.Instruction) and item.opcode.startswith(("ld.param", "st.param")):
            address, value = item.operands[:: -1 if item.opcode.startswith("ld") else 1]
            if isinstance(address.base, ptx.Symbol) and address.base.name in names:
                nbytes = ptx.TYPE_BYTES[item.opcode.split(".")[-1]]
                for index in range(len(value.items) if isinstance(value, ptx.Vector) else 1):
                    yield address.base.name, address.offset + address.base.offset + index * nbytes, nbytes


def _of_kernel(item: ptx.Instruction, function: ptx.Function) -> bool:
    """Return whether an ld.param reads a parameter of the kernel itself; in a kernel, every computed address does."""
    address = next(operand for operand in item.operands if isinstance(operand, ptx.Address))
    if not isinstance(address.base, ptx.Symbol):
        return function.entry
    return function.entry and any(p.name == address.base.name for p in function.params)


def _rename(operand: ptx.Operand, names: dict[str, str]) -> ptx.Operand:
    if isinstance(operand, ptx.Register):
        return ptx.Register(names.get(operand.name, operand.name))
    if isinstance(operand, ptx.Symbol):
        name = names.get(operand.name, operand.name)
        return ptx.Symbol(name, operand.offset) if name[:1] != "%" else ptx.Register(name)
    if isinstance(operand, ptx.Address):
        extra = tuple(_rename(o, names) for o in operand.extra)
        inside = operand.base.offset if isinstance(operand.base, ptx.Symbol) else 0
        base = _rename(operand.base, names) if operand.base else None
        return ptx.Address(base, operand.offset + (inside if isinstance(base, ptx.Register) else 0), extra)
    if isinstance(operand, ptx.Vector | ptx.Arguments):
        return type(operand)(tuple(_rename(o, names) for o in operand.items))
    if isinstance(operand, ptx.Pair):
        return ptx.Pair(_rename(operand.first, names), _rename(operand.second, names))
    if isinstance(operand, ptx.Part):
        return replace(operand, register=_rename(operand.register, names))
    if isinstance(operand, ptx.Negated):
        return ptx.Negated(_rename(operand.register, names))
    return operand
