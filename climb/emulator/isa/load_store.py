"""Loads and stores. Space, vector width and type decide which bytes are accessed; cache hints change no value."""

from __future__ import annotations

import numpy as np

from .. import ptx
from .emitter import Emitter
from .registry import special
from .types import dtype

TYPES = ("b8", "u8", "s8", "b16", "u16", "s16", "b32", "u32", "s32", "b64", "u64", "s64", "f32", "f64")
#: The type, after a vector width where there is one; an access has at most 16 bytes.
SHAPES = (
    *TYPES,
    *(f"v2.{each}" for each in TYPES),
    *(f"v4.{each}" for each in TYPES if dtype(each).itemsize <= 4),
)
_KEEP = ("", ".L1::evict_normal", ".L1::evict_unchanged", ".L1::evict_first", ".L1::evict_last", ".L1::no_allocate")
_FETCH = ("", ".L2::64B", ".L2::128B", ".L2::256B")
_LOAD_CACHE = (".ca", ".cg", ".cs", ".cv", ".lu")
_STORE_CACHE = (".wb", ".cg", ".cs", ".wt")
#: The spaces in which threads can wait for each other.
_SHARED = (".shared", ".shared::cta", ".shared::cluster")
_COMMON = {"space": ("", ".global", *_SHARED), "shape": SHAPES}
_SCOPE = ("cta", "cluster", "gpu", "sys")
#: The part of the runtime that serves a space, if its name differs.
_SERVED = {"shared::cta": "shared", "shared::cluster": "cluster"}
#: The space of a site: distributed shared memory is shared memory.
SITE_SPACE = {"cluster": "shared"}


def _decode(shape: str) -> tuple[int, str]:
    """Return the number of elements and the type."""
    *vector, kind = shape.split(".")
    return int(vector[0][1]) if vector else 1, kind


def _targets(operand: ptx.Operand) -> tuple[ptx.Operand, ...]:
    return operand.items if isinstance(operand, ptx.Vector) else (operand,)


@special("ld{space}{cache}{fetch}.{shape}", results=("b",), space=(".global",), cache=_LOAD_CACHE, fetch=_FETCH,
         shape=SHAPES)  # fmt: skip
@special("ld{space}{nc}{keep}{fetch}.{shape}", results=("b",), space=(".global",), nc=("", ".nc"), keep=_KEEP,
         fetch=_FETCH, shape=SHAPES)  # fmt: skip
@special("ld{space}{cache}.{shape}", results=("b",), space=("",), cache=("", *_LOAD_CACHE), shape=SHAPES)
@special("ld{space}.{shape}", results=("b",), space=(*_SHARED, ".const", ".param", ".local"), shape=SHAPES)
@special("ld.volatile{space}.{shape}", results=("b",), waits=True, **_COMMON)
@special("ld.{order}.{scope}{space}.{shape}", results=("b",), waits=True, order=("relaxed", "acquire"), scope=_SCOPE,
         **_COMMON)  # fmt: skip
def _load(emitter: Emitter, instruction: ptx.Instruction, space: str, shape: str, **_: str) -> None:
    space, (count, kind) = _SERVED.get(space[1:], space[1:]), _decode(shape)
    target, address = instruction.operands
    targets = _targets(target)
    # b32 may hold any type: load as the type of the destination.
    have = emitter.resolve(kind, targets[0]) if kind[0] == "b" and kind != "b8" else kind
    if space == "param" and isinstance(address.base, ptx.Symbol):
        offset = emitter.parameter_offset(instruction, address)
        each = dtype(kind).itemsize
        for index, item in enumerate(targets):
            code = f"G.batch.parameter({offset + index * each}, '{dtype(have)}')"
            emitter.write_extended(item, have, code)
        return
    site = emitter.site(instruction, SITE_SPACE.get(space, space), "load", dtype(have), count)
    if instruction.used is not None:
        _load_used(emitter, instruction, space, have, site)
        return
    code = f"load_{space}(G, {site}, {emitter.address(address, space)})"
    if count == 1:
        emitter.write_extended(target, have, code)
        return
    many = emitter.fresh(code)
    for index, item in enumerate(targets):
        if item != ptx.Register("_"):
            emitter.write_extended(item, have, f"{many}[:, :, {index}]")


def _load_used(emitter: Emitter, instruction: ptx.Instruction, space: str, kind: str, whole: str) -> None:
    """A load that the compiler has widened: count the whole load, but read only the bytes that the source uses."""
    target, address = instruction.operands
    targets = _targets(target)
    each, used = dtype(kind).itemsize, instruction.used
    base = emitter.address(address, space)
    emitter.line(f"count_load(G, {whole}, {base})")
    asked = [used >> index * each & (1 << each) - 1 for index in range(len(targets))]
    index = 0
    while index < len(targets):
        wanted = asked[index]
        many = 1
        if wanted == (1 << each) - 1:  # take as many whole elements as one load may have
            fitting = (n for n in (4, 2) if index % n == 0 and asked[index : index + n] == [wanted] * n)
            many = next(fitting, 1)
            site = emitter.part(instruction, space, dtype(kind), many, index * each)
            code = emitter.fresh(f"load_{space}(G, {site}, {base})")
            codes = [code] if many == 1 else [f"{code}[:, :, {n}]" for n in range(many)]
        else:
            nothing = emitter.constant(np.zeros((), np.uint8))
            parts = []
            for byte in range(each):
                site = (
                    emitter.part(instruction, space, dtype("u8"), 1, index * each + byte) if wanted >> byte & 1 else ""
                )
                parts.append(emitter.fresh(f"load_{space}(G, {site}, {base})") if site else nothing)
            codes = [f"pack(({', '.join(parts)},), '{dtype(kind)}')" if each > 1 else parts[0]]
        for item, code in zip(targets[index : index + many], codes, strict=True):
            if item != ptx.Register("_") and wanted:
                emitter.write_extended(item, kind, code)
            elif item != ptx.Register("_"):
                emitter.write_extended(item, kind, emitter.constant(np.zeros((), dtype(kind))))
        index += many


@special("st{space}{cache}.{shape}", writes=0, space=("", ".global"), cache=_STORE_CACHE, shape=SHAPES)
@special("st{space}{keep}.{shape}", writes=0, space=(".global",), keep=_KEEP, shape=SHAPES)
@special("st{space}.{shape}", writes=0, space=("", *_SHARED, ".local"), shape=SHAPES)
@special("st.volatile{space}.{shape}", writes=0, **_COMMON)
@special("st.{order}.{scope}{space}.{shape}", writes=0, order=("relaxed", "release"), scope=_SCOPE, **_COMMON)
def _store(emitter: Emitter, instruction: ptx.Instruction, space: str, shape: str, **_: str) -> None:
    space, (count, kind) = _SERVED.get(space[1:], space[1:]), _decode(shape)
    address, source = instruction.operands
    items = _targets(source)
    if kind[0] == "b" and kind != "b8":
        kind = emitter.kind_of(items[0], kind)
    values = [emitter.read(item, kind) for item in items]
    site = emitter.site(instruction, SITE_SPACE.get(space, space), "store", dtype(kind), count)
    value = values[0] if count == 1 else f"({', '.join(values)})"
    emitter.line(f"store_{space}(G, {site}, {emitter.address(address, space)}, {value})")
