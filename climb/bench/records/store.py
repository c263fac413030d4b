"""Reading and writing JSON records of any kind: checked against the kind's schema, written completely or not at all.

A kind is a msgspec Struct, a dataclass or a TypedDict; ``climb.bench.records.schema`` and ``kinds`` have those of the
bench, ``climb.validation.schema`` those of the validation.
"""

from __future__ import annotations

import functools
import json
import os
import re
from pathlib import Path
from typing import Any, TypeVar

import msgspec

Kind = TypeVar("Kind")
_PLACE = re.compile(r"^(?P<what>.*) - at `\$\.?(?P<place>.+)`$", re.DOTALL)


class RecordError(ValueError):
    """A record that does not follow its schema; the message names the file, the field and what was expected."""


def load(path: Path, kind: type[Kind]) -> Kind:
    """Read and check a record. Raises :class:`RecordError`, and FileNotFoundError if there is no file."""
    data = path.read_bytes()
    try:
        return _decoder(kind).decode(data)
    except msgspec.MsgspecError as error:
        raise RecordError(f"{path}: {explained(error)}") from None


def parse(data: Any, kind: type[Kind]) -> Kind:
    """Parse a record from its JSON object. Raises :class:`RecordError`."""
    try:
        return msgspec.convert(data, kind)
    except msgspec.MsgspecError as error:
        raise RecordError(explained(error)) from None


def save(path: Path, data: Any, kind: Any, text: str | None = None) -> None:
    """Write a record, completely or not at all; ``text`` is its JSON if it has its own layout.

    Raises :class:`RecordError` instead of writing a record that could not be read again as this kind.
    """
    text = json.dumps(data, indent=1) + "\n" if text is None else text
    try:
        _decoder(kind).decode(text)
    except msgspec.MsgspecError as error:
        raise RecordError(f"{path}: not written: {explained(error)}") from None
    write_whole(path, text)


def explained(error: msgspec.MsgspecError) -> str:
    """Return msgspec's message with the field first: ``points[2]: Object missing required field `bytes```."""
    found = _PLACE.match(str(error))
    return f"{found['place']}: {found['what']}" if found else str(error)


def write_whole(path: Path, text: str) -> None:
    """Write a file so that an interruption leaves the old one as it was: to ``.partial``, which is then renamed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f"{path.name}.partial")
    try:
        partial.write_text(text, encoding="utf-8")
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)


@functools.cache
def _decoder(kind: Any) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(kind)
