"""What the blocks of a kernel share while it is translated: register types, constants, and access sites."""

from __future__ import annotations

from typing import NoReturn

import numpy as np

from .. import ptx
from ..errors import UnsupportedInstruction
from ..isa import HELPERS
from ..isa.types import DTYPES
from ..memory.device_memory import LOCAL_WINDOW, PARAM_WINDOW, SHARED_WINDOW
from ..memory.layout import Layout
from ..runtime.functions import FUNCTIONS
from ..simt.code import line_text
from ..simt.site import Site
from .product_registers import ProductRegisters
from .registers import flushed_registers, register_kinds, roles

_DTYPE_NAMES = {name: getattr(np, name) for name in set(DTYPES.values()) if name != "bool"}


class KernelContext:
    """The shared state of a kernel's translation.

    `kinds` maps each register to the PTX type in which it is kept; `flushed` holds the registers that are never
    subnormal, `read` those that are read anywhere. `namespace` holds the globals of the generated code. `instruction`
    is the one being translated, `product_registers` what is known of wgmma's registers; `spinning`: it is in a loop
    that may wait for other lanes.
    """

    def __init__(self, function: ptx.Function, layout: Layout, sources: dict[str, list[str]]) -> None:
        self.function, self.layout, self.sources = function, layout, sources
        self.kinds = register_kinds(function)
        self.flushed = flushed_registers(function)
        self.read = frozenset(
            name
            for item in function.body
            if isinstance(item, ptx.Instruction)
            for name in (*roles(item)[1], *([item.guard[0].name] if item.guard else ()))
        )
        self.sites: list[Site] = []
        self.namespace: dict[str, object] = {
            "np": np, "bool": np.bool_, "SHARED_WINDOW": SHARED_WINDOW, "LOCAL_WINDOW": LOCAL_WINDOW,
            "PARAM_WINDOW": PARAM_WINDOW, **_DTYPE_NAMES, **HELPERS, **FUNCTIONS,
        }  # fmt: skip
        self.instruction: ptx.Instruction | None = None
        self.spinning = False
        self.product_registers = ProductRegisters()
        self._constants: dict[tuple[str, bytes], str] = {}

    def constant(self, value: np.ndarray) -> str:
        """The name of a constant, a (1,1) array."""
        key = (value.dtype.str, value.tobytes())
        name = self._constants.get(key)
        if name is None:
            name = self._constants[key] = f"_K{len(self._constants)}"
            value = np.ascontiguousarray(value).reshape(1, 1)
            value.flags.writeable = False
            self.namespace[name] = value
        return name

    def address(self, name: str) -> tuple[str, int]:
        """The space and address of a variable. Raises UnsupportedInstruction if it has none."""
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
        self.namespace[f"S{index}"] = site
        return f"S{index}"

    def change_site(self, name: str, site: Site) -> None:
        """Replace the site of this name."""
        self.namespace[name] = self.sites[site.index] = site

    def refuse(self, why: str) -> NoReturn:
        """Raise UnsupportedInstruction for the instruction that is being translated."""
        instruction = self.instruction
        raise UnsupportedInstruction.at(
            self.function.name, instruction.location, self.sources,
            f"{instruction.opcode}: {why} (in: {instruction.text})",
        )  # fmt: skip
