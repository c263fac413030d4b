"""Loads and stores. The opcode's cache hints change no value; the space, the vector width and the type do."""

from __future__ import annotations

import numpy as np

from .. import ptx
from . import special
from .types import dtype

KINDS = ("b8", "u8", "s8", "b16", "u16", "s16", "b32", "u32", "s32", "b64", "u64", "s64", "f32", "f64")
_L1 = ("evict_normal", "evict_unchanged", "evict_first", "evict_last", "no_allocate")
_FETCHES = ("", ".L2::64B", ".L2::128B", ".L2::256B")
HINTS = {
    "global": tuple(
        f"{path}{keep}{fetch}"
        for path, keeps in (
            *((path, ("",)) for path in (".ca", ".cg", ".cs", ".cv", ".lu")),
            *((path, ("", *(f".L1::{how}" for how in _L1))) for path in ("", ".nc")),
        )
        for keep in keeps
        for fetch in _FETCHES
    ),
    "": ("", ".ca", ".cg", ".cs", ".cv", ".lu"),
    "shared": ("",),
    "const": ("",),
    "param": ("",),
    "local": ("",),
}
STORE_HINTS = {
    "global": ("", ".wb", ".cg", ".cs", ".wt", *(f".L1::{how}" for how in _L1)),
    "": ("", ".wb", ".cg", ".cs", ".wt"),
    "shared": ("",),
    "local": ("",),
}


def _decode(opcode: str) -> tuple[str, int, str]:
    """(space, elements, type) of a ld or st opcode; space "" is generic."""
    parts = opcode.split(".")
    space = next((part for part in parts if part in HINTS), "")
    count = next((int(part[1]) for part in parts if part in ("v2", "v4")), 1)
    return space, count, parts[-1]


def _targets(operand: ptx.Operand) -> tuple[ptx.Operand, ...]:
    return operand.items if isinstance(operand, ptx.Vector) else (operand,)


def _load(emitter, instruction: ptx.Instruction) -> None:
    space, count, kind = _decode(instruction.opcode)
    target, address = instruction.operands
    targets = _targets(target)
    # b32 may hold any type: load straight into the one that the destination has.
    have = emitter.resolve(kind, targets[0]) if kind[0] == "b" and kind != "b8" else kind
    if space == "param" and isinstance(address.base, ptx.Symbol):
        offset = emitter.parameter_offset(instruction, address)
        each = dtype(kind).itemsize
        for index, item in enumerate(targets):
            code = f"G.batch.parameter({offset + index * each}, '{dtype(have)}')"
            emitter.write_extended(item, have, code)
        return
    site = emitter.site(instruction, space, "load", dtype(have), count)
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


def _load_used(emitter, instruction: ptx.Instruction, space: str, kind: str, whole: str) -> None:
    """A load that the compiler has made wider: it is counted as it is, but only the bytes used are read."""
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
        if wanted == (1 << each) - 1:  # as many whole elements as one load may have
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


def _store(emitter, instruction: ptx.Instruction) -> None:
    space, count, kind = _decode(instruction.opcode)
    address, source = instruction.operands
    items = _targets(source)
    if kind[0] == "b" and kind != "b8":
        kind = emitter.kind_of(items[0], kind)
    values = [emitter.read_narrow(item, kind) for item in items]
    site = emitter.site(instruction, space, "store", dtype(kind), count)
    value = values[0] if count == 1 else f"({', '.join(values)})"
    emitter.line(f"store_{space}(G, {site}, {emitter.address(address, space)}, {value})")


for _space in ("global", "shared", "const", "param", "local", ""):
    _dotted = f".{_space}" if _space else ""
    for _vector in ("", ".v2", ".v4"):
        for _kind in KINDS:
            if dtype(_kind).itemsize * (int(_vector[2]) if _vector else 1) > 16:
                continue
            for _hint in HINTS[_space]:
                special(f"ld{_dotted}{_hint}{_vector}.{_kind}", results=("b",), operands=())(_load)
            for _hint in STORE_HINTS.get(_space, ()):
                special(f"st{_dotted}{_hint}{_vector}.{_kind}", results=(), operands=(), writes=0)(_store)
            for _order, _scope in ((o, s) for o in ("relaxed", "acquire", "release") for s in ("cta", "gpu", "sys")):
                if _space in ("global", "shared", ""):
                    if _order != "release":
                        _name = f"ld.{_order}.{_scope}{_dotted}{_vector}.{_kind}"
                        special(_name, results=("b",), operands=(), waits=True)(_load)
                    if _order != "acquire":
                        special(f"st.{_order}.{_scope}{_dotted}{_vector}.{_kind}", writes=0)(_store)
            if _space in ("global", "shared", ""):
                special(f"ld.volatile{_dotted}{_vector}.{_kind}", results=("b",), operands=(), waits=True)(_load)
                special(f"st.volatile{_dotted}{_vector}.{_kind}", results=(), operands=(), writes=0)(_store)
