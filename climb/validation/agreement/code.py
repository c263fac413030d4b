"""Keep the counted code of nondeterministic rungs, whose PTX differs from process to process.

NVRTC merges neighbouring loads of these rungs in an order that depends on its own memory addresses. Counts of one PTX
say nothing about another, so their PTX and machine code are kept beside the counts and compared in their place.
"""

from __future__ import annotations

import base64
import lzma
from pathlib import Path

from climb.bench import records
from climb.bench.identity import expand_includes
from climb.bench.ladder import BoundRung
from climb.bench.problem import Size
from climb.bench.shown_code import made_from, without_include_dirs
from climb.toolchain import Compiled
from climb.validation.schema import KeptCode

#: (ladder, rung) of the rungs for which NVRTC makes different PTX in each process.
NONDETERMINISTIC = frozenset(
    {
        ("classifier", "split_k_per_warp"),
        *(
            ("async_matmul", rung)
            for rung in ("pipelined", "tma", "specialised", "multicast", "setmaxnreg", "persistent")
        ),
        *(("async_transpose", rung) for rung in ("persistent", "diagonal", "swizzled", "tma")),
        *(("conv3d_tiles", rung) for rung in ("grid_1d", "grid_3d")),
        ("hgemm", "small_tiles"),
        ("tgemm", "few_rows"),
        *(("sgemm", rung) for rung in ("pipelined", "prefetched", "tuned", "stream_k")),
    }
)


def code_path(ladder: str, rung: str, gpu: str = records.DEFAULT_GPU) -> Path:
    """Return the file that keeps the code of a rung that was counted on a GPU."""
    return records.RECORDS / gpu / "emulator" / "code" / f"{ladder}.{rung}.json"


def keep_code(path: Path, compiled: Compiled, source: str) -> None:
    """Write PTX and machine code, compressed, with the hash of what they were made from.

    ``source`` has its includes in place.
    """
    cubin, names = without_include_dirs(compiled)
    images = {"ptx": compiled.ptx.encode(), "cubin": cubin}
    packed = {name: base64.b85encode(lzma.compress(image)).decode() for name, image in images.items()}
    path.parent.mkdir(parents=True, exist_ok=True)
    data = {
        "made_from": made_from(compiled, source),
        "filename": compiled.filename,
        "lowered": list(compiled.names.values()),
        "include_dirs": names,
        **packed,
    }
    records.save(path, data, KeptCode)


def counted_code(rung: BoundRung, size: Size, gpu: str = records.DEFAULT_GPU) -> Compiled:
    """Return the rung's code as compiled now, or as counted if the rung is nondeterministic.

    Raises LookupError if no code was kept, or if the source has changed since.
    """
    name = (rung.ladder.name, rung.name)
    if name not in NONDETERMINISTIC:
        return rung.compiled(size)
    compiled = rung.compiled(size, whole=False)
    path = code_path(*name, records.gpu_with("emulator/agreement.json", gpu))
    if not path.exists():
        raise LookupError(f"no code of {name[0]} {name[1]} beside its counts")
    held = records.load(path, KeptCode)
    if held.made_from != made_from(compiled, expand_includes(rung.path)):
        raise LookupError(f"stale counts of {name[0]} {name[1]}: the source has changed")
    ptx, cubin = (lzma.decompress(base64.b85decode(image)) for image in (held.ptx, held.cubin))
    return compiled.with_code(ptx.decode(), cubin, held.include_dirs, filename=held.filename, lowered=held.lowered)
