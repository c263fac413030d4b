"""The machine code that chapters show of rungs for which NVRTC makes another code in each process.

NVRTC merges neighbouring loads of these rungs in an order that depends on its own memory addresses, so registers and
the counts that follow from them differ from process to process. ``climb keep-code`` compiles each rung in several
processes and keeps every code that they made; a chapter shows the most frequent one, and says how far the others
differ. This needs no GPU.
"""

from __future__ import annotations

import base64
import hashlib
import json
import lzma
import pickle
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from climb.bench import identity, records
from climb.bench.identity import expand_includes
from climb.bench.ladder import BoundRung
from climb.bench.problem import Size
from climb.bench.registry import load_ladder
from climb.paths import IMPORT_ROOT
from climb.toolchain import Compiled, cache
from climb.toolchain.machine_bytes import instruction_bytes
from climb.toolchain.nvrtc import nvrtc_version

#: (ladder, rung) of the rungs whose code is kept for the chapters, at the ladder's first headline size.
SHOWN = frozenset(
    {
        *(
            ("async_matmul", rung)
            for rung in ("pipelined", "tma", "specialised", "multicast", "setmaxnreg", "persistent")
        ),
        *(("sgemm", rung) for rung in ("pipelined", "prefetched", "tuned")),
    }
)
COMMAND = "climb keep-code"


class ShownCode(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``code/<ladder>.<rung>.json``: every PTX and machine code that was made, the most frequent first.

    ``times`` says how many processes made each; ``codes`` has them with ptxas's report, compressed together and in
    base 85.
    """

    nvrtc: str
    made_from: str
    filename: str
    lowered: tuple[str, ...]
    include_dirs: tuple[str, ...]
    times: tuple[int, ...]
    codes: str


def code_path(ladder: str, rung: str) -> Path:
    """Return the file that keeps what chapters show of a rung."""
    return records.RECORDS / records.BOOK_GPU / "code" / f"{ladder}.{rung}.json"


def made_from(compiled: Compiled, source: str) -> str:
    """Return the hash of the compiler's input, by the rule of ``climb.bench.identity``, and of the compiler's
    version. ``source`` has its includes in place."""
    code, kernels = identity.canonical(source, sorted(compiled.names))
    given = (identity.RULE, code, kernels, compiled.arch, compiled.options, compiled.nvrtc_version)
    return hashlib.sha256(json.dumps(given).encode()).hexdigest()


def without_include_dirs(compiled: Compiled) -> tuple[bytes, list[str]]:
    """Return the machine code without this machine's include directories, and what replaces them in its line table:
    as many slashes as each has letters."""
    cubin, names = compiled.cubin, ["/" * len(folder.encode()) for folder in compiled.include_dirs]
    for folder, name in zip(compiled.include_dirs, names, strict=True):
        cubin = cubin.replace(folder.encode(), name.encode())
    return cubin, names


def shown_size(rung: BoundRung) -> Size:
    """Return the size at which chapters show the rung's machine code."""
    return rung.ladder.problem.headline[0]


def shown_code(rung: BoundRung, size: Size) -> Compiled:
    """Return the rung's code as compiled now, or the code most often made if NVRTC makes more than one.

    Raises LookupError like :func:`shown_codes`.

    >>> opcode_counts(shown_code(ladder["tuned"], size), [kernel], "LDS")                   # doctest: +SKIP
    """
    return next(iter(shown_codes(rung, size)))


def shown_codes(rung: BoundRung, size: Size) -> dict[Compiled, int]:
    """Return each machine code of the rung and how many processes made it, the most frequent first.

    Codes with the same instructions count as one, also if their PTX and line tables differ. Of a rung that is not in
    ``SHOWN``, of another size or with a compiler of another version than the kept code's, it is what the compiler makes
    now. Raises LookupError if nothing was kept, or if the source has changed since.
    """
    kept = kept_codes(rung, size)
    if len(kept) == 1:
        return kept
    alike: dict[tuple[bytes, ...], list[Compiled]] = {}
    for code in kept:
        alike.setdefault(tuple(instruction_bytes(code.cubin).values()), []).append(code)
    found = {codes[0]: sum(kept[code] for code in codes) for codes in alike.values()}
    return dict(sorted(found.items(), key=lambda one: -one[1]))


def kept_codes(rung: BoundRung, size: Size) -> dict[Compiled, int]:
    """Return each PTX of the rung, with its machine code, and how many processes made it, like `shown_codes`."""
    name = (rung.ladder.name, rung.name)
    if name not in SHOWN or dict(size) != dict(shown_size(rung)):
        return {rung.compiled(size): 1}
    path = code_path(*name)
    if not path.exists():
        raise LookupError(f"no machine code of {' '.join(name)} is kept; run: {COMMAND}")
    held = records.load(path, ShownCode)
    if held.nvrtc != _version():
        return {rung.compiled(size): 1}
    compiled = rung.compiled(size, whole=False)
    if held.made_from != made_from(compiled, expand_includes(rung.path)):
        raise LookupError(f"stale machine code of {' '.join(name)}: the source has changed; run: {COMMAND}")
    names = {"filename": held.filename, "lowered": held.lowered}
    made = (
        compiled.with_code(ptx, cubin.encode("latin-1"), held.include_dirs, report=report, **names)
        for ptx, cubin, report in json.loads(lzma.decompress(base64.b85decode(held.codes)))
    )
    return dict(zip(made, held.times, strict=True))


def keep(path: Path, rung: BoundRung, made: Sequence[Compiled]) -> None:
    """Write the codes that as many processes have made of a rung, with those kept before of the same origin."""
    first = made[0]
    origin = {
        "nvrtc": _version(),
        "made_from": made_from(first, expand_includes(rung.path)),
        "filename": first.filename,
        "lowered": list(first.names.values()),
        "include_dirs": without_include_dirs(first)[1],
    }
    held = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    before = kept_codes(rung, shown_size(rung)) if origin.items() <= held.items() else {}
    every = [*before, *made]
    images = {one.ptx: (without_include_dirs(one)[0].decode("latin-1"), one.ptxas_report) for one in reversed(every)}
    counted = Counter({one.ptx: times for one, times in before.items()}) + Counter(one.ptx for one in made)
    # Of equally frequent codes the first in the alphabet: the order in which processes end does not matter.
    ranked = sorted(counted.items(), key=lambda one: (-one[1], one[0]))
    text = json.dumps([(ptx, *images[ptx]) for ptx, _ in ranked], ensure_ascii=False)
    data = {
        **origin,
        "times": [times for _, times in ranked],
        "codes": base64.b85encode(lzma.compress(text.encode())).decode(),
    }
    records.save(path, data, ShownCode)


def is_fresh(rung: BoundRung) -> bool:
    """Return whether the code that is kept of a rung is today's source by today's compiler."""
    path = code_path(rung.ladder.name, rung.name)
    if not path.exists():
        return False
    held = records.load(path, ShownCode)
    return held.made_from == made_from(rung.compiled(shown_size(rung), whole=False), expand_includes(rung.path))


def missing_or_stale() -> list[BoundRung]:
    """Return the rungs of ``SHOWN`` without fresh code, in order."""
    every = (load_ladder(ladder)[rung] for ladder, rung in sorted(SHOWN))
    return [rung for rung in every if not is_fresh(rung)]


def keep_all(rungs: Sequence[BoundRung], processes: int) -> Iterator[tuple[Path, tuple[int, ...]]]:
    """Compile rungs in ``processes`` processes, keep their codes, and yield each file and how often it has each code.

    Each process compiles them in another order: what NVRTC makes also depends on what it has compiled before.
    """
    made: dict[tuple[str, str], list[Compiled]] = {}
    for seed in range(processes if rungs else 0):
        for name, compiled in _in_a_process([(rung.ladder.name, rung.name) for rung in rungs], seed).items():
            made.setdefault(name, []).append(compiled)
    for name, every in sorted(made.items()):
        path = code_path(*name)
        keep(path, load_ladder(name[0])[name[1]], every)
        yield path, records.load(path, ShownCode).times


def _in_a_process(names: list[tuple[str, str]], seed: int) -> dict[tuple[str, str], Compiled]:
    program = f"import sys; from {__name__} import main; main(*sys.argv[1:])"
    random.Random(seed).shuffle(names)
    command = [sys.executable, "-c", program, json.dumps(names)]
    made = subprocess.run(command, cwd=IMPORT_ROOT, stdout=subprocess.PIPE, check=True).stdout
    return pickle.loads(made)  # written by our own process


def main(names: str) -> None:
    """Compile rungs in this order, without the cache, and write their pickled codes to standard output."""
    cache.FOLDER = None
    sys.stdout.buffer.write(pickle.dumps(dict(_compiled(json.loads(names)))))


def _compiled(names: Iterable[tuple[str, str]]) -> Iterator[tuple[tuple[str, str], Any]]:
    for ladder, name in names:
        rung = load_ladder(ladder)[name]
        compiled = rung.compiled(shown_size(rung))
        _ = compiled.cubin  # made here, not where it is read
        yield (ladder, name), compiled


def _version() -> str:
    return ".".join(map(str, nvrtc_version()))
