"""cp.async.bulk.tensor: copies of boxes of tensors, by tensor maps, in tile mode and (loads) im2col mode."""

from __future__ import annotations

from dataclasses import replace

from .. import ptx
from .bulk import own_address, range_site
from .emitter import Emitter
from .mbarrier import barrier_site
from .registry import special
from .types import dtype

DIMENSIONS = ("1", "2", "3", "4", "5")
PIXEL_DIMENSIONS = DIMENSIONS[2:]
REDUCTIONS = ("add", "min", "max", "inc", "dec", "and", "or", "xor")
_MBARRIER = ".mbarrier::complete_tx::bytes"


def _map(emitter: Emitter, instruction: ptx.Instruction, operand: ptx.Address, action: str) -> tuple[str, str]:
    """Return the site of a copy, in global memory, and the generic address of its tensor map."""
    site = emitter.site(replace(instruction, operands=(operand,)), "", action, dtype("u32"), 1)
    emitter.uncounted(site)  # the copy engine has counters of its own
    address = emitter.address(operand, "")
    if isinstance(operand.base, ptx.Symbol):
        address = f"({address} + PARAM_WINDOW)"
    return site, address


def _coordinates(emitter: Emitter, operand: ptx.Address, count: str) -> str:
    if len(operand.extra) != 1 or not isinstance(operand.extra[0], ptx.Vector):
        emitter.refuse("the coordinates of a tensor copy are a vector, as in [map, {x, y}]")
    items = operand.extra[0].items
    if len(items) != int(count):
        emitter.refuse(f"{count} coordinates expected, {len(items)} found")
    return f"({''.join(emitter.read(item, 's32') + ', ' for item in items)})"


def _offsets(emitter: Emitter, operand: object, count: int) -> str:
    """Return the offsets of im2col mode, as in {w, h}."""
    if not isinstance(operand, ptx.Vector) or len(operand.items) != count:
        emitter.refuse(f"im2col mode needs a vector of {count} offsets")
    return f"({''.join(emitter.read(item, 'u16') + ', ' for item in operand.items)})"


@special(
    "cp.async.bulk.tensor.{n}d.{window}.global{tile}" + _MBARRIER + "{cast}", writes=0, n=DIMENSIONS,
    window=("shared::cluster", "shared::cta"), tile=("", ".tile"), cast=("", ".multicast::cluster"),
)  # fmt: skip
@special(
    "cp.async.bulk.tensor.{n}d.{window}.global.im2col" + _MBARRIER + "{cast}", writes=0, n=PIXEL_DIMENSIONS,
    window=("shared::cluster", "shared::cta"), cast=("", ".multicast::cluster"),
)  # fmt: skip
def _load(emitter: Emitter, instruction: ptx.Instruction, n: str, cast: str, **_: str) -> None:
    target, tensor, barrier, *rest = instruction.operands
    offsets = "None"
    if ".im2col" in instruction.opcode:
        offsets, rest = _offsets(emitter, rest[0] if rest else None, int(n) - 2), rest[1:]
    site, address = _map(emitter, instruction, tensor, "load")
    store = range_site(emitter, instruction, target, "shared", "store")
    word, mbar = barrier_site(emitter, instruction, barrier, ".shared")
    mask = emitter.read(rest[0], "u16") if cast else "None"
    places = f"{own_address(emitter, target)}, {address}, {_coordinates(emitter, tensor, n)}"
    emitter.line(f"tensor_load(G, {site}, {store}, {word}, {places}, {mbar}, {mask}, {offsets})")


def _store(emitter: Emitter, instruction: ptx.Instruction, n: str, how: str = "", **_: str) -> None:
    tensor, source, *_rest = instruction.operands
    site, address = _map(emitter, instruction, tensor, "atomic" if how else "store")
    load = range_site(emitter, instruction, source, "shared", "load")
    places = f"{own_address(emitter, source)}, {address}, {_coordinates(emitter, tensor, n)}"
    emitter.line(f"tensor_store(G, {site}, {load}, {places}, {how or None!r})")


special(
    "cp.async.bulk.tensor.{n}d.global.shared::cta{tile}.bulk_group", writes=0, n=DIMENSIONS, tile=("", ".tile"),
)(_store)  # fmt: skip
special(
    "cp.reduce.async.bulk.tensor.{n}d.global.shared::cta.{how}{tile}.bulk_group", writes=0, n=DIMENSIONS,
    how=REDUCTIONS, tile=("", ".tile"),
)(_store)  # fmt: skip


@special("cp.async.bulk.tensor.{n}d.global.shared::cta.im2col_no_offs.bulk_group", writes=0, n=PIXEL_DIMENSIONS)
@special(
    "cp.reduce.async.bulk.tensor.{n}d.global.shared::cta.{how}.im2col_no_offs.bulk_group", writes=0,
    n=PIXEL_DIMENSIONS, how=REDUCTIONS,
)  # fmt: skip
def _store_pixels(emitter: Emitter, instruction: ptx.Instruction, **_: str) -> None:
    emitter.refuse("stores in im2col mode are not supported: an H200 stopped at each that was tried")


@special("cp.async.bulk.prefetch.tensor.{n}d.L2.global{tile}", writes=0, n=DIMENSIONS, tile=("", ".tile"))
@special("cp.async.bulk.prefetch.tensor.{n}d.L2.global.im2col", writes=0, n=PIXEL_DIMENSIONS)
def _prefetch(emitter: Emitter, instruction: ptx.Instruction, n: str, **_: str) -> None:
    tensor, *_rest = instruction.operands
    site, address = _map(emitter, instruction, tensor, "load")
    emitter.line(f"tensor_prefetch(G, {site}, {address}, {_coordinates(emitter, tensor, n)})")


@special("prefetch{space}.tensormap", writes=0, space=("", ".const"))
@special("prefetch.param.tensormap", writes=0)
def _prefetch_map(emitter: Emitter, instruction: ptx.Instruction, **_: str) -> None:
    site, address = _map(emitter, instruction, instruction.operands[0], "load")
    emitter.line(f"tensor_prefetch(G, {site}, {address}, ())")
