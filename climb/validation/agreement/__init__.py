"""Compare the emulator's counts with the hardware's, exactly, without a tolerance.

``records/<gpu>/emulator/agreement.json`` holds Nsight Compute's counts of every rung at a small size, in two runs, and
of access patterns (``cases``). ``compare_rung(rung)`` and ``compare_patterns()`` run the same launches on the emulator;
for each count that differs they give the reason. On a GPU with ``ncu``, ``climb agreement`` counts again.
"""

from __future__ import annotations

import functools
import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from climb import emulator
from climb.bench import counting, records
from climb.bench.ladder import BoundRung
from climb.bench.problem import Launch, Size
from climb.bench.registry import ladder_names, load_ladder
from climb.emulator.counters.marks import Mark, after_suspension, marks
from climb.emulator.running import launch as launch_compiled
from climb.emulator.simt.code import Code
from climb.emulator.simt.site import Site
from climb.toolchain import Compiled, compile_cuda, disassemble
from climb.toolchain.nvrtc import nvrtc_version
from climb.validation.agreement.alone import compiled_alone
from climb.validation.agreement.cases import PATH, Case, cases
from climb.validation.agreement.code import counted_code
from climb.validation.schema import AgreementRecord

COMMAND = "climb agreement"
WARP = 32
#: Seen on an H200 (23 November 2026): three lanes load after lane 0 alone has waited. They make two requests if lane 0
#: waits by `try_wait` of an mbarrier or `__nanosleep`, and one if it loops on `clock64`, or if `__syncwarp()` follows.
WAITED = "lanes that were suspended in a wait stay apart until the warp is synchronised"
POLLED = "asked again and again until another block answers: as often as the wait lasts"
#: The pipe's excess is subtracted from the conflicts. It includes polls of mbarriers, which conflict with nothing, so
#: this may subtract too much. The emulator's count then lies between the remainder and the original count.
HIDDEN = "hidden in the excess of the pipe, which has the polls of mbarriers too"
#: A load that sees another thread's writes meanwhile has one of these in its opcode.
_STRONG = frozenset({"volatile", "relaxed", "acquire"})
_PIPE = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_{}.sum"
_CONFLICTS = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_{}.sum"
_ASKED = "smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_{}.sum"


@dataclass(frozen=True)
class Way:
    """One way to compute a count: the sum of some metrics of Nsight Compute, less others, or 0.

    The pipe's excess, which is taken off the bank conflicts, has other causes too: polls of mbarriers.
    """

    plus: tuple[str, ...]
    less: tuple[str, ...] = ()

    def of(self, run: dict[str, int | None]) -> int | None:
        """Return the count of a run; None if the run lacks a metric."""
        if any(run.get(metric) is None for metric in (*self.plus, *self.less)):
            return None
        return max(0, sum(run[metric] for metric in self.plus) - sum(run[metric] for metric in self.less))


#: Wavefronts that instructions request from shared memory, as the tool's source view counts them. The pipe's own
#: metrics are up to a few wavefronts higher, and differ from run to run: they measure the pipe rather than the kernel.
_LOADS = (_ASKED.format("ld"), _ASKED.format("ldsm"))
_STORES = (_ASKED.format("st"),)
#: The counts to compare: kind of access, quantity, and the ways to compute it; the first way whose metrics were
#: measured is taken.
QUANTITIES: dict[tuple[str, str], tuple[Way, ...]] = {
    **{
        (f"{space} {kind}", what): (Way((f"l1tex__t_{what}_pipe_lsu_mem_{space}_op_{op}.sum",)),)
        for space in ("global", "local")
        for kind, op in (("load", "ld"), ("store", "st"))
        for what in ("requests", "sectors")
    },
    **{
        ("global atomic", what): (
            Way(tuple(f"l1tex__t_{what}_pipe_lsu_mem_global_op_{op}.sum" for op in ("atom", "red"))),
        )
        for what in ("requests", "sectors")
    },
    ("shared load", "wavefronts"): (Way(_LOADS), Way((_PIPE.format("ld"),))),
    ("shared store", "wavefronts"): (Way(_STORES), Way((_PIPE.format("st"),))),
    ("shared atomic", "wavefronts"): (Way((_ASKED.format("atom"),)), Way((_PIPE.format("atom"),))),
    ("shared load", "bank_conflicts"): (
        Way((_CONFLICTS.format("ld"), *_LOADS), (_PIPE.format("ld"),)),
        Way((_CONFLICTS.format("ld"),)),
    ),
    ("shared store", "bank_conflicts"): (
        Way((_CONFLICTS.format("st"), *_STORES), (_PIPE.format("st"),)),
        Way((_CONFLICTS.format("st"),)),
    ),
    ("shared atomic", "requests"): (Way(("smsp__inst_executed_op_shared_atom.sum",)),),
}
METRICS = (
    *dict.fromkeys(metric for ways in QUANTITIES.values() for way in ways for metric in (*way.plus, *way.less)),
    "smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_ldgsts.sum",
    "smsp__sass_l1tex_t_sectors_pipe_lsu_mem_global_op_atom.sum",
    "smsp__sass_l1tex_t_sectors_pipe_lsu_mem_global_op_red.sum",
    "smsp__inst_executed.sum",
    "smsp__thread_inst_executed_per_inst_executed.ratio",
    "smsp__sass_branch_targets_threads_divergent.sum",
)


@dataclass(frozen=True)
class Count:
    """One count of one launch: the emulator's, and the ``hardware``'s in each run.

    ``why`` is the reason of a difference, empty where all are equal; ``compiler`` says that the machine code shows it.
    """

    what: str
    kind: str
    quantity: str
    emulator: int
    hardware: tuple[int, ...]
    why: str = ""
    compiler: bool = False

    @property
    def equal(self) -> bool:
        return all(one == self.emulator for one in self.hardware)


@dataclass(frozen=True)
class Record:
    """The measured counts, with date, tool, device and compiler; the lists are as in the file."""

    date: str
    tool: str
    device: dict[str, Any]
    nvrtc: tuple[int, int]
    rungs: list[dict[str, Any]]
    patterns: list[dict[str, Any]]


def record_path(gpu: str = records.DEFAULT_GPU, folder: Path | None = None) -> Path:
    """Return the file with the counts of a GPU; ``folder`` replaces ``records/<gpu>``."""
    return (folder or records.RECORDS / gpu) / "emulator" / "agreement.json"


@functools.cache
def record(gpu: str = records.DEFAULT_GPU) -> Record:
    """Return the committed counts of a GPU. Raises LookupError if there are none."""
    path = record_path(records.gpu_with("emulator/agreement.json", gpu))
    if not path.exists():
        raise LookupError(f"no counts of {gpu} to compare the emulator with; on that GPU, run: {COMMAND}")
    data = records.load(path, AgreementRecord)
    major, minor = (int(part) for part in data.nvrtc.split("."))
    rungs, patterns = (
        [{**point, "counts": [dict(zip(data.metrics, run, strict=True)) for run in point["counts"]]} for point in which]
        for which in (data.rungs, data.patterns)
    )
    return Record(data.date, data.tool, dict(data.device), (major, minor), rungs, patterns)


def same_compiler(gpu: str = records.DEFAULT_GPU) -> bool:
    """Return whether the counted kernels were compiled by this machine's version of NVRTC; another version makes other
    PTX."""
    return record(gpu).nvrtc == nvrtc_version()


def code_sha256(compiled: Compiled, launch: Launch, inputs: dict[str, np.ndarray]) -> str:
    """Return the hash of what counts depend on: the kernel's PTX, its launch, and the inputs.

    Line numbers and the names of kernels, files and variables are ignored: see :func:`nameless_ptx`.
    """
    digest = hashlib.sha256(json.dumps({**launch.as_json(), "kernel": ""}, sort_keys=True).encode())
    digest.update(nameless_ptx(compiled.ptx, compiled.lowered(launch.kernel)).encode())
    for name in sorted(inputs):
        digest.update(name.encode() + np.ascontiguousarray(inputs[name]).tobytes())
    return digest.hexdigest()


def nameless_ptx(ptx: str, kernel: str) -> str:
    """Return the PTX of a kernel, from ``.entry`` to its closing brace, without the parts that only debuggers read.

    Mangled names are numbered in the order in which they appear, so that the text stays the same when the kernel, or a
    function or variable that it uses, is renamed. ``kernel`` is the lowered name.
    """
    match = re.search(rf"^\.(?:visible|weak) \.entry {re.escape(kernel)}\(.*?^}}", ptx, re.MULTILINE | re.DOTALL)
    text = re.sub(rf"\b{re.escape(kernel)}(?=_param_\d|\b)", "kernel", match[0] if match else ptx)
    text = re.sub(r"\$L__BB\d+_", "$L__BB_", text)  # labels start with the kernel's number in its file
    numbers: dict[str, str] = {}
    text = re.sub(r"\b_Z\w+", lambda name: numbers.setdefault(name[0], f"symbol_{len(numbers)}"), text)
    return "\n".join(row for row in text.splitlines() if row.strip() and not re.match(r"\s*(\.loc|//|\$L__tmp)", row))


def measured_size(rung: BoundRung) -> Size:
    """Return the size at which a rung is compared: the last of the sizes that its problem checks."""
    return rung.ladder.problem.check[-1]


def all_rungs(ladders: Iterable[str] | None = None) -> Iterator[BoundRung]:
    """Return every rung of every ladder, or of the named ladders, that supports the size of the comparison."""
    for name in ladder_names() if ladders is None else ladders:
        for rung in load_ladder(name):
            if rung.rung.requires(measured_size(rung)) is None:
                yield rung


class StaleCounts(LookupError):
    """A kernel has changed since it was counted."""


def compare_rung(rung: BoundRung, gpu: str = records.DEFAULT_GPU) -> tuple[Count, ...]:
    """Return all counts of all launches of a rung.

    Raises LookupError if the rung was never counted, and :class:`StaleCounts` if its kernel has changed since.
    """
    name = (rung.ladder.name, rung.name)
    points = [point for point in record(gpu).rungs if (point["ladder"], point["rung"]) == name]
    if not points:
        raise LookupError(f"no counts of {name[0]} {name[1]}; on a GPU, run: {COMMAND}")
    size = points[0]["size"]
    inputs = rung.ladder.inputs(size)
    launches = rung.launches(size)

    def is_counted(code: Compiled) -> bool:
        return all(p["code_sha256"] == code_sha256(code, x, inputs) for x, p in zip(launches, points, strict=True))

    try:
        compiled = counted_code(rung, size, gpu)
    except LookupError as error:
        raise LookupError(f"{error}; on a GPU, run: {COMMAND}") from None
    if not is_counted(compiled) and not is_counted(compiled := compiled_alone(rung, size)):
        raise StaleCounts(f"stale counts of {name[0]} {name[1]}: the kernel has changed; on a GPU, run: {COMMAND}")
    counted = counting.launch_counters(rung, size, compiled=compiled)
    out: list[Count] = []
    for index, (launch, point) in enumerate(zip(launches, points, strict=True)):
        what = f"{name[0]} {name[1]}" + (f", launch {index + 1}" if len(points) > 1 else "")
        changed = functools.cache(functools.partial(reasons, compiled, launch, counted[index]))
        out += counts(what, counted[index], point["counts"], changed)
    return tuple(out)


@dataclass(frozen=True)
class Reason:
    """The reason why counts of a kind of access differ; ``more``: it applies only if the hardware makes more
    requests."""

    kind: str
    text: str
    more: bool = False


def reasons(compiled: Compiled, launch: Launch, counted: emulator.Counters) -> list[Reason]:
    """List what explains a difference, judging by the code. Disassembling is slow: call this only for differences.

    Copies of an access, as in an unrolled loop, make more requests if lanes of a warp are apart: they take different
    copies.
    """
    apart = {(one.file, one.line, one.kind) for one in counted.lines if one.lanes < WARP * one.requests}
    marked = launch_marks(compiled, launch)
    polls = any(map(_is_poll, _code(compiled, launch).sites))
    waited = [place for place in after_suspension(disassemble(compiled, launch.kernel)) if place in apart]
    return [
        *(Reason(mark.kind, mark.reason) for mark in marked if mark.changes),
        *(
            Reason(one.kind, one.reason, True)
            for one in marked
            if one.copied and (one.file, one.line, one.kind) in apart
        ),
        *(Reason(kind, WAITED, True) for _, _, kind in waited),
        *([Reason("global load", POLLED)] if polls else []),
    ]


def _is_poll(site: Site) -> bool:
    """Return whether the instruction polls for a value that another block will write."""
    return site.spin and site.action == "load" and site.space in ("global", "") and bool(_STRONG & set(site.opcode))


def launch_marks(compiled: Compiled, launch: Launch) -> tuple[Mark, ...]:
    """Return the source lines where the launch's machine code accesses memory differently from its PTX."""
    return marks(_code(compiled, launch), disassemble(compiled, launch.kernel))


def _code(compiled: Compiled, launch: Launch) -> Code:
    """Return the launch's kernel, translated."""
    return counting.module_of(compiled).kernel(compiled.lowered(launch.kernel)).code


def counts(
    what: str,
    counted: emulator.Counters,
    hardware: list[dict[str, int]],
    changed: Callable[[], list[Reason]],
) -> Iterator[Count]:
    """Return the counts of one launch. ``hardware``: the metrics of each run; ``changed``: see :func:`reasons`."""
    for (kind, quantity), ways in QUANTITIES.items():
        every = [tuple(way.of(run) for run in hardware) for way in ways]
        seen = next((counts for counts in every if None not in counts), None)
        if seen is None:
            continue  # not measured
        ours = getattr(counted.total(kind), quantity)
        why, compiler = "", False
        if any(one != ours for one in seen):
            ways = QUANTITIES.get((kind, "requests"), ())
            asked = next((n for way in ways for run in hardware if (n := way.of(run)) is not None), None)
            more = asked is None or asked > counted.total(kind).requests
            found = list(dict.fromkeys(one.text for one in changed() if one.kind == kind and (more or not one.more)))
            if (
                quantity == "bank_conflicts"
                and seen is every[0]
                and all(least <= ours <= most for least, most in zip(*every, strict=True))
            ):
                found = [HIDDEN]
            compiler = bool(found)
            why = "; ".join(found)
        yield Count(what, kind, quantity, ours, seen, why, compiler)


@functools.cache
def compiled_patterns(path: Path = PATH) -> Compiled:
    """Return a source of patterns (`patterns.cu` by default), compiled with all of its kernels that `cases` uses."""
    names = dict.fromkeys(case.kernel for case in cases() if case.path == path)
    return compile_cuda(path.read_text(encoding="utf-8"), filename=path.name, name_expressions=names)


def pattern_launch(case: Case) -> Launch:
    """Return the case as a launch whose arrays are named by position."""
    args = tuple(f"array {n}" if isinstance(arg, np.ndarray) else arg for n, arg in enumerate(case.args))
    return Launch(case.kernel, case.grid, case.block, args, case.shared)


def compare_patterns(gpu: str = records.DEFAULT_GPU) -> tuple[Count, ...]:
    """Return all counts of the measured patterns. Raises LookupError if a kernel has changed since."""
    known = {case.label: case for case in cases()}
    out: list[Count] = []
    for point in record(gpu).patterns:
        case = known[point["label"]]
        compiled = compiled_patterns(case.path)
        if point["code_sha256"] != code_sha256(compiled, pattern_launch(case), {}):
            raise LookupError(f"stale counts of {case.label}: the kernel has changed; on a GPU, run: {COMMAND}")
        # Patterns race and read uninitialised memory; only their addresses matter, so the checks are off.
        with emulator.checking(()):
            done = launch_compiled(
                compiled, case.kernel, case.grid, case.block, case.args, shared_mem=case.shared, compare=False,
                module=counting.module_of(compiled),
            )  # fmt: skip
        changed = functools.cache(functools.partial(reasons, compiled, pattern_launch(case), done.counters))
        out += counts(case.label, done.counters, point["counts"], changed)
    return tuple(out)
