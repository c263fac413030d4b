"""Object code: a translated kernel before it is linked into a module, so independent of the module's address.

Addresses of the module's variables and functions are relative to the module. `link` makes them absolute, as a linker
does with relocations, and turns the compiled Python into functions.
"""

from __future__ import annotations

import marshal
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from .. import ptx
from ..isa import HELPERS
from ..isa.types import DTYPES
from ..memory.device_memory import LOCAL_WINDOW, PARAM_WINDOW, SHARED_WINDOW, DeviceMemory
from ..memory.layout import Layout
from ..ptx.control_flow import Block
from ..runtime.functions import FUNCTIONS
from ..simt.code import Code, TranslatedKernel
from ..simt.site import Site

_GLOBALS: dict[str, object] = {
    "np": np, "bool": np.bool_, "SHARED_WINDOW": SHARED_WINDOW, "LOCAL_WINDOW": LOCAL_WINDOW,
    "PARAM_WINDOW": PARAM_WINDOW, **{name: getattr(np, name) for name in set(DTYPES.values()) if name != "bool"},
}  # fmt: skip


@dataclass(frozen=True)
class ObjectCode:
    """A translated kernel, not linked yet.

    `function` is the kernel without its body. `source` is the generated Python, compressed, `bytecode` the marshalled
    code of its functions, one by one. `constants` maps names in generated code to (dtype, bytes) of (1,1) arrays. Those
    in `relocated_constants`, and the sites whose indices are in `relocated_sites`, contain an address relative to the
    module.
    """

    function: ptx.Function
    layout: Layout
    blocks: list[Block]
    sites: list[Site]
    kinds: dict[str, str]
    special_registers: frozenset[str]
    source: bytes
    bytecode: bytes
    constants: dict[str, tuple[str, bytes]]
    relocated_constants: frozenset[str]
    relocated_sites: frozenset[int]


def constant_array(dtype: str, data: bytes) -> np.ndarray:
    """Return a constant of generated code, (1,1) and not writeable."""
    return np.frombuffer(data, dtype).reshape(1, 1)


def link(code: ObjectCode, variables: DeviceMemory, base: int, sources: Mapping[str, list[str]]) -> TranslatedKernel:
    """Return the kernel in a module that is loaded at address `base` and whose variables are in `variables`."""
    sites = [
        replace(site, offset=site.offset + base) if site.index in code.relocated_sites else site for site in code.sites
    ]
    constants = {name: constant_array(*one) for name, one in code.constants.items()}
    for name in code.relocated_constants:
        # Narrow types hold the low part of an address, so the sum wraps.
        value = constants[name]
        constants[name] = (value.astype(np.int64) + base).astype(value.dtype)
        constants[name].flags.writeable = False
    namespace = _GLOBALS | HELPERS | FUNCTIONS | constants | {f"S{site.index}": site for site in sites}
    for function in marshal.loads(code.bytecode):
        exec(function, namespace)
    functions = [namespace[f"block_{block.index}"] for block in code.blocks]
    zeros = {name: np.zeros((1, 1), DTYPES[kind]) for name, kind in code.kinds.items()}
    linked = Code(code.blocks, functions, sites, code.kinds, code.source)
    layout = code.layout.relocated(base)
    return TranslatedKernel(code.function, layout, linked, variables, code.special_registers, zeros, dict(sources))
