"""tensormap.replace, tensormap.cp_fenceproxy and prefetch.tensormap: instructions on tensor maps themselves."""

from __future__ import annotations

from dataclasses import replace

from .. import ptx
from .bulk import own_address
from .emitter import Emitter
from .registry import special
from .types import dtype

_SPACES = (".shared::cta", ".global", "")
_SERVED = {".shared::cta": "shared", ".global": "global", "": ""}
#: The values of the fields that are chosen from a table: constants, 0 to the number given.
_CHOICES = {"elemtype": 12, "interleave_layout": 2, "swizzle_mode": 3, "fill_mode": 1}


def _site(emitter: Emitter, instruction: ptx.Instruction, operand: ptx.Operand, space: str, action: str) -> str:
    site = emitter.site(replace(instruction, operands=(operand,)), space, action, dtype("u32"), 4)
    emitter.uncounted(site)
    return site


def _address(emitter: Emitter, operand: ptx.Operand, space: str) -> str:
    return own_address(emitter, operand) if space == "shared" else emitter.address(operand, space)


@special("tensormap.replace.tile.{field}{space}.b1024.b64", writes=0, field=("global_address",), space=_SPACES)
@special("tensormap.replace.tile.{field}{space}.b1024.b32", writes=0, field=("rank", *_CHOICES), space=_SPACES)
@special("tensormap.replace.tile.{field}{space}.b1024.b64", writes=0, field=("global_stride",), space=_SPACES)
@special(
    "tensormap.replace.tile.{field}{space}.b1024.b32", writes=0, field=("box_dim", "global_dim", "element_stride"),
    space=_SPACES,
)  # fmt: skip
def _replace(emitter: Emitter, instruction: ptx.Instruction, field: str, space: str) -> None:
    operand, *ordinals, value = instruction.operands
    if field in _CHOICES and not (isinstance(value, ptx.Immediate) and 0 <= value.value <= _CHOICES[field]):
        emitter.refuse(f"{field} must be a constant, 0 to {_CHOICES[field]}")
    if ordinals and not (isinstance(ordinals[0], ptx.Immediate) and 0 <= ordinals[0].value < 5):
        emitter.refuse("the number of a dimension must be a constant, 0 to 4")
    space, ordinal = _SERVED[space], ordinals[0].value if ordinals else 0
    new = emitter.read(value, "s64" if instruction.opcode.endswith("b64") else "u32")
    site = _site(emitter, instruction, operand, space, "store")
    where = _address(emitter, operand, space)
    emitter.line(f"tensor_map_replace(G, {site}, {space!r}, {field!r}, {ordinal}, {where}, {new})")


@special(
    "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.{scope}.sync.aligned", writes=0, gate="warp",
    scope=("cta", "cluster", "gpu", "sys"),
)  # fmt: skip
def _copy(emitter: Emitter, instruction: ptx.Instruction, **_: str) -> None:
    target, source, *_size = instruction.operands
    load = _site(emitter, instruction, source, "shared", "load")
    store = _site(emitter, instruction, target, "global", "store")
    places = f"{emitter.address(target, 'global')}, {own_address(emitter, source)}"
    emitter.line(f"tensor_map_copy(G, {load}, {store}, {places})")
