"""The head of a record: the GPU that measures, its state, and the commit of the book."""

from __future__ import annotations

import contextlib
import datetime
import hashlib
import os
import re
import subprocess
from typing import Any

from climb.bench import versions
from climb.paths import IMPORT_ROOT

_QUERIED = ("driver_version", "clocks.sm", "clocks.mem", "clocks.max.sm", "clocks.max.mem")


def gpu_slug(name: str, gpus: int = 1) -> str:
    """Return a GPU's name as a folder of records: ``NVIDIA H200`` is ``nvidia-h200``, two of them
    ``nvidia-h200-x2``."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") + (f"-x{gpus}" if gpus > 1 else "")


def device_block() -> dict[str, Any]:
    """Return the ``device`` of a record, as the driver reports it now. It needs a GPU; a value that cannot be read is
    None.

    Clocks are in MHz; ``clocks`` holds the current and the highest SM and memory clocks. ``differs`` is present if
    versions differ from the locks, and describes the difference.
    """
    import cupy

    properties = cupy.cuda.runtime.getDeviceProperties(0)
    queried = _nvidia_smi()
    compiler = cupy.cuda.nvrtc.getVersion()
    differs = versions.differences(compiler)
    return {
        "name": properties["name"].decode(),
        "compute_capability": f"{properties['major']}.{properties['minor']}",
        "sm_count": properties["multiProcessorCount"],
        "l2_bytes": properties["l2CacheSize"],
        "driver": queried.get("driver_version"),
        "cuda": _version(cupy.cuda.runtime.runtimeGetVersion()),
        "nvrtc": ".".join(str(part) for part in compiler),
        "cupy": cupy.__version__,
        "clocks": {
            "sm_mhz": _number(queried.get("clocks.sm")),
            "memory_mhz": _number(queried.get("clocks.mem")),
            "max_sm_mhz": _number(queried.get("clocks.max.sm")),
            "max_memory_mhz": _number(queried.get("clocks.max.mem")),
        },
        **({"differs": differs} if differs else {}),
    }


def board() -> str:
    """Return eight hexadecimal digits that tell this GPU from others of its model, "" if the driver gives none.

    The memory rates of two boards of one model differ by a few percent.
    """
    uuid = output("nvidia-smi", "-i", _address(), "--query-gpu=uuid", "--format=csv,noheader")
    return hashlib.sha256(uuid.strip().encode()).hexdigest()[:8] if uuid and uuid.strip() else ""


def origin() -> dict[str, str]:
    """Return what each record begins with: its `date`, of today in UTC, and the `commit` that is measured."""
    return {"date": today(), "commit": commit()}


def today() -> str:
    """Return the date in UTC, as records have it: 2026-11-29."""
    return datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d")


def commit() -> str:
    """Return the commit that is measured, with ``+dirty`` if ``kernels/`` or ``climb/`` differ from it.

    ``WORKLOG_COMMIT`` replaces it if the files are not a git checkout; without either it is ``unknown``.
    """
    if given := os.environ.get("WORKLOG_COMMIT"):
        return given
    head = output("git", "-C", str(IMPORT_ROOT), "rev-parse", "HEAD")
    if head is None:
        return "unknown"
    changed = output("git", "-C", str(IMPORT_ROOT), "status", "--porcelain", "--", "kernels", "climb")
    return head.strip() + ("+dirty" if changed else "")


def _address() -> str:
    """Return the GPU to query with nvidia-smi: CUDA's device 0 if CUDA_VISIBLE_DEVICES is set, else "0"."""
    if os.environ.get("CUDA_VISIBLE_DEVICES"):
        with contextlib.suppress(Exception):  # no GPU, or a CuPy without this call
            import cupy

            return str(cupy.cuda.runtime.deviceGetPCIBusId(0))
    return "0"


def _nvidia_smi() -> dict[str, str]:
    query = f"--query-gpu={','.join(_QUERIED)}"
    text = output("nvidia-smi", "-i", _address(), query, "--format=csv,noheader,nounits")
    values = [value.strip() for value in (text or "").strip().split(",")]
    return dict(zip(_QUERIED, values, strict=True)) if len(values) == len(_QUERIED) else {}


def output(*command: str) -> str | None:
    """Return a command's standard output; None if it fails or is not installed."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isdigit() else None


def _version(packed: int) -> str:
    """Format CUDA's packed version: 12090 is 12.9."""
    return f"{packed // 1000}.{packed % 1000 // 10}"
