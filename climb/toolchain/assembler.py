"""Machine code from PTX by ptxas, the part of NVRTC that makes it, as a command of its own.

To make machine code, NVRTC first makes the PTX of the source again, which takes half of the time. If that PTX is at
hand, ptxas of the same version makes the same machine code from it, byte for byte.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from pathlib import Path

from climb.toolchain.errors import ToolchainError
from climb.toolchain.nvrtc import nvrtc_version
from climb.toolchain.tools import find_tool

#: Options that change only what NVRTC makes of the source. Others may change what ptxas makes of the PTX.
_OF_THE_SOURCE = re.compile(
    r"-(?:default-device|lineinfo|I.*|D.*|-?std=.*|-?ftz=.*|-?use_fast_math|-?fmad=.*|-?device-as-default-execution-space)"
)


def serves(options: Sequence[str]) -> bool:
    """Return whether machine code with these options of NVRTC can be made here: ptxas is installed, in NVRTC's version,
    and need not know of any option but ``-lineinfo``."""
    return "-lineinfo" in options and all(map(_OF_THE_SOURCE.fullmatch, options)) and _version() == nvrtc_version()


def assemble(ptx: bytes, arch: str) -> tuple[bytes, str] | None:
    """Return the machine code for `arch`, and ptxas's report of each kernel's resources; None if ptxas refuses the
    PTX."""
    import subprocess  # only when ptxas runs, so that importing the toolchain is quick
    import tempfile

    with tempfile.TemporaryDirectory(prefix="climb-ptxas-") as folder:
        text, code = Path(folder, "kernel.ptx"), Path(folder, "kernel.cubin")
        text.write_bytes(ptx)
        command = [find_tool("ptxas"), f"-arch={arch}", "-lineinfo", "-v", str(text), "-o", str(code)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        return (code.read_bytes(), done.stderr.rstrip("\n")) if done.returncode == 0 else None


@functools.cache
def _version() -> tuple[int, int] | None:
    """Return major and minor version of ptxas; None if it is not installed or does not run."""
    import subprocess

    try:
        done = subprocess.run([find_tool("ptxas"), "--version"], capture_output=True, text=True, check=False)
    except (ToolchainError, OSError):
        return None
    found = re.search(r"release (\d+)\.(\d+)", done.stdout)
    return (int(found[1]), int(found[2])) if found else None
