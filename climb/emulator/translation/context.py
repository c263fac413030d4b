"""State shared by the blocks of a kernel during translation: register types, constants, and access sites."""

from __future__ import annotations

from typing import NoReturn

import numpy as np

from .. import ptx
from ..errors import UnsupportedInstruction
from ..isa.types import DTYPES
from ..memory.layout import Layout
from ..ptx.control_flow import Roles
from ..simt.code import line_text
from ..simt.site import Site
from .late_loads import LateLoads
from .product_registers import ProductRegisters
from .registers import address_registers, flushed_registers, register_kinds


class KernelContext:
    """The shared state of a kernel's translation.

    `kinds` maps each register to the PTX type in which it is kept; `flushed` holds the registers that are never
    subnormal, `read` those that are read anywhere, `addresses` those that addresses are made of (`address_registers`).
    `instruction` is the one being translated, `product_registers` the analysis of wgmma's registers, `late_loads` that
    of loads of shared memory; `spinning`: it is in a loop that may wait for other lanes. `constants` maps names to
    (dtype, bytes). `relocated_constants` and `relocated_sites` contain the address of a module's variable, relative to
    the module.
    """

    def __init__(self, function: ptx.Function, layout: Layout, sources: dict[str, list[str]], roles: Roles) -> None:
        self.function, self.layout, self.sources = function, layout, sources
        self.kinds = register_kinds(function)
        self.flushed = flushed_registers(function, roles)
        self.read = frozenset(
            name
            for item in function.body
            if isinstance(item, ptx.Instruction)
            for name in (*roles(item)[1], *([item.guard[0].name] if item.guard else ()))
        )
        self.addresses = address_registers(function)
        self.sites: list[Site] = []
        self.instruction: ptx.Instruction | None = None
        self.spinning = False
        self.product_registers = ProductRegisters()
        self.late_loads = LateLoads()
        self.constants: dict[str, tuple[str, bytes]] = {}
        self.relocated_constants: set[str] = set()
        self.relocated_sites: set[int] = set()
        self._names: dict[tuple[str, bytes, bool], str] = {}

    def constant(self, value: np.ndarray, relocated: bool = False) -> str:
        """Return the name of a constant, a (1,1) array."""
        key = (value.dtype.str, value.tobytes())
        name = self._names.get((*key, relocated))
        if name is None:
            name = self._names[*key, relocated] = f"_K{len(self._names)}"
            self.constants[name] = key
            if relocated:
                self.relocated_constants.add(name)
        return name

    def symbol(self, operand: ptx.Symbol, kind: str) -> str:
        """Return the name of a constant that holds the address of a variable, as a value of type `kind`."""
        _, address = self.address(operand.name)
        value = np.array(address + operand.offset, np.int64).astype(DTYPES[kind])
        return self.constant(value, operand.name in self.layout.symbols)

    def address(self, name: str) -> tuple[str, int]:
        """Return the space and address of a variable; those of a module's variables are relative to the module.

        Raises UnsupportedInstruction if it has none.
        """
        found = self.layout.addresses.get(name)
        if found is None:
            self.refuse(f"{name} is not a variable with an address")
        return found

    def site(
        self, instruction: ptx.Instruction, space: str, action: str, element: np.dtype, count: int, offset: int
    ) -> str:
        """Add a site; return its name in generated code."""
        index = len(self.sites)
        location = instruction.location
        text = line_text(self.sources, location)
        site = Site(index, space, action, element, count, offset, location, text, instruction.text, self.spinning)
        self.sites.append(site)
        return f"S{index}"

    def site_named(self, name: str) -> Site:
        """Return the site of this name in generated code."""
        return self.sites[int(name.removeprefix("S"))]

    def change_site(self, site: Site) -> None:
        """Replace the site of this index."""
        self.sites[site.index] = site

    def refuse(self, why: str) -> NoReturn:
        """Raise UnsupportedInstruction for the instruction that is being translated."""
        instruction = self.instruction
        raise UnsupportedInstruction.at(
            self.function.name, instruction.location, self.sources,
            f"{instruction.opcode}: {why} (in: {instruction.text})",
        )  # fmt: skip
