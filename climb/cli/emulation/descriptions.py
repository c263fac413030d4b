"""Arguments of ``climb emulate`` that a JSON file describes: structs by value, textures, and tensor maps."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from climb.cli.emulation.dtypes import numeric
from climb.cli.errors import UsageError
from climb.emulator import Struct, Tensor, Texture

#: Makes an array from the text after the name in ``--arg NAME:...``; takes the name and that text.
Arrays = Callable[[str, str], np.ndarray]
KINDS = ("struct", "texture", "tensor")
_TEXTURE = ("addressing", "filtering", "normalised", "border", "as_fractions", "linear", "layered", "cube")
_TENSOR = ("box", "swizzle", "element_strides", "nan_fill", "dtype")


def described(path: str, name: str, where: str, arrays: Arrays) -> Struct | Texture | Tensor:
    """Make the argument that a file describes. Raises UsageError."""
    try:
        found = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError:
        raise UsageError(f"{where}: no file {path}") from None
    except ValueError as error:
        raise UsageError(f"{where}: {path} is not JSON: {error}") from None
    kinds = [kind for kind in KINDS if isinstance(found, dict) and kind in found]
    if len(kinds) != 1:
        raise UsageError(f"{where}: {path} must be an object with one of the keys {', '.join(KINDS)}")
    try:
        if kinds == ["struct"]:
            return _struct(found["struct"], name, where, arrays)
        more = {key: value for key, value in found.items() if key not in (*kinds, "channels")}
        unknown = sorted(set(more) - set(_TEXTURE if kinds == ["texture"] else _TENSOR))
        if unknown:
            raise UsageError(f"{where}: {path} has the unknown key '{unknown[0]}'")
        data = arrays(name, str(found[kinds[0]]))
        if kinds == ["tensor"]:
            return Tensor(data, **more)
        more |= {key: tuple(more[key]) for key in ("addressing", "border") if key in more}
        return Texture(data if found.get("channels") else data[..., None], **more)
    except (TypeError, ValueError) as error:
        raise UsageError(f"{where}: {path}: {error}") from None


def _struct(members: Any, name: str, where: str, arrays: Arrays) -> Struct:
    """Make a struct of {name: [type, value or values], array text, or struct}."""
    if not isinstance(members, dict) or not members:
        raise UsageError(f"{where}: a struct is an object of its members, in order")
    out: dict[str, object] = {}
    for key, each in members.items():
        if isinstance(each, str):
            out[key] = arrays(f"{name}.{key}", each)
        elif isinstance(each, dict):
            out[key] = _struct(each, f"{name}.{key}", where, arrays)
        elif isinstance(each, list) and len(each) == 2 and isinstance(each[0], str):
            out[key] = _numbers(each[0], each[1], f"{where}: the member {key}")
        else:
            what = 'expected ["int32", 5], ["float32", [1, 2]], "float32:64:ones", "@x.npy", or an object'
            raise UsageError(f"{where}: the member {key} is {json.dumps(each)}; {what}")
    return Struct(out)


def _numbers(kind: str, value: Any, where: str) -> object:
    dtype = numeric(kind, where)
    try:
        return [dtype.type(one) for one in value] if isinstance(value, list) else dtype.type(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise UsageError(f"{where}: {error}") from None
