"""The options of a compilation: CuPy's defaults, those of the caller, and the include directories among them."""

from __future__ import annotations

import re
from collections.abc import Sequence

# CuPy adds -ftz=true and -default-device to every RawModule; -lineinfo changes no instruction.
DEFAULT_OPTIONS = ("-default-device", "-ftz=true", "-lineinfo", "-std=c++17")

_ARCHITECTURE = {"-arch", "--gpu-architecture"}
_ALIASES = {
    "--std": "-std",
    "--ftz": "-ftz",
    "--use_fast_math": "-ftz",
    "-use_fast_math": "-ftz",
    "--generate-line-info": "-lineinfo",
    "--device-as-default-execution-space": "-default-device",
}


def merge_options(options: Sequence[str]) -> tuple[str, ...]:
    """Return the DEFAULT_OPTIONS that `options` do not override, then `options`. Raises ValueError for an
    architecture."""
    given = {_setting(option) for option in options}
    if given & _ARCHITECTURE:
        raise ValueError("options must not set the architecture; pass arch= instead")
    return (*(option for option in DEFAULT_OPTIONS if _setting(option) not in given), *options)


def split_architecture(options: Sequence[str]) -> tuple[tuple[str, ...], str]:
    """Split `options` into those that name no architecture, and the architecture that the others name, e.g. "sm_90a",
    or "".

    Raises ValueError for a virtual architecture, which has no machine code.
    """
    kept, arch = [], ""
    for option in options:
        if _setting(option) not in _ARCHITECTURE:
            kept.append(option)
            continue
        arch = option.partition("=")[2]
        if not re.fullmatch(r"sm_\d+[af]?", arch):
            raise ValueError(f"{option}: expected an architecture such as sm_90a")
    return tuple(kept), arch


def split_include_dirs(options: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Split `options` into those that name no include directory, and the include directories that the others name."""
    kept, folders = [], []
    pending = iter(options)
    for option in pending:
        if option in ("-I", "--include-path"):
            folders.append(next(pending, "."))
        elif match := re.match(r"(?:-I|--include-path=)(.+)", option):
            folders.append(match[1])
        else:
            kept.append(option)
    return tuple(kept), tuple(folders)


def _setting(option: str) -> str:
    """Return the name of the setting of `option`, the same for all spellings of the option."""
    name = option.split("=", 1)[0]
    return _ALIASES.get(name, name)
