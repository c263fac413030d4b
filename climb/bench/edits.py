"""Edits of a kernel, tried on the emulator: the effect of a change to the source or the launch.

An edit replaces text of the source, or changes the launch. The edited kernel is compiled and run with all checks of
the emulator, on a machine with a GPU too, and its outputs are compared with the reference. The outcome says whether it
compiled, which error stopped it, which elements are wrong, and what the hardware would have had to do.
"""

from __future__ import annotations

import functools
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from climb import emulator
from climb.bench import arguments
from climb.bench.checking import compare, is_poisoned, poisoned
from climb.bench.counting import module_of, pack
from climb.bench.ladder import BoundRung
from climb.bench.problem import Launch, Size
from climb.toolchain import CompileError, compile_cuda
from climb.toolchain.names import demangled
from climb.toolchain.options import split_architecture, split_include_dirs

#: Basic blocks that a batch of an edited kernel may run before its loop counts as endless. A page shows small sizes,
#: which need far fewer; the emulator's own limit would take minutes to reach.
MAX_STEPS = 20_000
#: Messages name the byte of an array instead: an address means nothing to a reader, and may depend on earlier runs.
_ADDRESS = re.compile(r" at 0x[0-9a-f]{8,}(?=[,;: ])")
_REST_OF_LINE = re.compile(r"[ \t]*(?://[^\n]*)?\n")

STANDARD = ("-std=c++17",)
LAUNCH_KEYS = ("kernel", "grid", "block", "shared_mem")


@dataclass(frozen=True)
class Edit:
    """A change: pairs of old and new text, and replaced launch arguments (made by ``edit``)."""

    says: str
    texts: tuple[tuple[str, str], ...] = ()
    count: int = 1
    instead: Mapping[str, Any] = field(default_factory=dict)


def edit(
    says: str,
    *texts: str,
    count: int = 1,
    kernel: str | None = None,
    grid: Sequence[int] | None = None,
    block: Sequence[int] | None = None,
    shared_mem: int | None = None,
    options: Sequence[str] | None = None,
    size: Size | None = None,
    args: Sequence[Any] | None = None,
    expect: Mapping[str, np.ndarray] | None = None,
) -> Edit:
    """An edit for ``break_it``: ``says`` is its name, ``texts`` are old and new text in turn.

    Each old text must occur exactly ``count`` times in the source. An empty new text removes it, along with any line
    where only a comment remains. The other arguments replace those of the launch: ``size`` for a rung, ``args`` and
    ``expect`` for CUDA text. Raises TypeError or ValueError for an edit that changes nothing, or whose last old text
    has no new one.

    >>> edit("33 columns instead of 32", "tile[kTile][kTile]", "tile[kTile][kTile + 1]")     # doctest: +SKIP
    >>> edit("blocks of 32 x 4 threads", block=(32, 4))                                      # doctest: +SKIP
    """
    given = {"kernel": kernel, "grid": grid, "block": block, "shared_mem": shared_mem, "options": options}
    given |= {"size": size, "args": args, "expect": expect}
    instead = {key: value for key, value in given.items() if value is not None}
    if len(texts) % 2:
        raise TypeError(f"edit '{says}': the text {texts[-1]!r} has no new text")
    pairs = tuple(zip(texts[::2], texts[1::2], strict=True))
    if (not pairs and not instead) or any(not old or old == new for old, new in pairs):
        raise ValueError(f"edit '{says}' changes nothing")
    return Edit(says, pairs, count, instead)


@dataclass(frozen=True)
class Experiment:
    """The kernel run to try: source, launches, arrays before the launches, and the correct outputs."""

    source: str
    filename: str
    launches: tuple[Launch, ...]
    arrays: Mapping[str, np.ndarray]
    expected: Mapping[str, np.ndarray]
    tolerance: float
    options: tuple[str, ...] = STANDARD
    folder: Path | None = None
    resized: Callable[[Size], Experiment] | None = None

    @property
    def launch_text(self) -> str:
        """The launches in CUDA C++, one per line, and the options of the compiler as a comment.

        Include directories are left out because they depend on the machine.
        """
        shown, _ = split_include_dirs(self.options)
        options = " ".join(option for option in shown if option not in STANDARD)
        return "\n".join([*(f"{one};" for one in self.launches), *([f"// compiled with {options}"] if options else [])])

    def edited(self, change: Edit) -> Experiment:
        """Return the experiment with an edit. Raises ValueError if a text is missing, or occurs too often."""
        instead = dict(change.instead)
        start = self
        if size := instead.pop("size", None):
            if self.resized is None:
                raise ValueError(f"edit '{change.says}' gives a size, which only a rung has; give args and expect")
            start = self.resized(size)
        text = start.source
        for old, new in change.texts:
            if (found := text.count(old)) != change.count:
                raise ValueError(
                    f"edit '{change.says}': {old!r} occurs {found} times in {self.filename}, expected {change.count}"
                )
            text = _removed(text, old) if not new else text.replace(old, new)
        out = replace(start, source=text)
        if "options" in instead:
            out = replace(out, options=(*STANDARD, *instead.pop("options")))
        launched = {key: instead.pop(key) for key in LAUNCH_KEYS if key in instead}
        if launched or instead:
            if len(self.launches) != 1:
                raise ValueError(f"edit '{change.says}' changes a launch, but there are {len(self.launches)}")
            if self.resized is not None and instead:
                raise ValueError(f"edit '{change.says}': a rung makes its arguments itself; give a size")
            (launch,) = out.launches
            launch = replace(launch, **{k: tuple(v) if k in ("grid", "block") else v for k, v in launched.items()})
            if "args" in instead:
                names, arrays = _named(text, launch.kernel, instead["args"])
                launch, out = replace(launch, args=names), replace(out, arrays=arrays)
            out = replace(out, launches=(launch,), expected=_checked(instead.get("expect", out.expected), out.arrays))
        return out


def of_rung(bound: BoundRung, size: Size, seed: int = 0) -> Experiment:
    """Return the experiment of a rung at a size. Raises ArgumentError for a size that it does not take."""
    problem, rung = bound.ladder.problem, bound.rung
    arguments.check_supported(problem, rung, size)
    inputs = bound.ladder.inputs(size, seed)
    with np.errstate(all="ignore"):
        expected = problem.reference(inputs, size)
    outputs = {a.name: poisoned(a.extents(size), a.dtype) for a in problem.outputs}
    scratch = {name: poisoned(shape, dtype) for name, (shape, dtype) in rung.workspace(size).items()}
    return Experiment(
        bound.source,
        f"{bound.ladder.folder.name}/{bound.path.name}",
        bound.launches(size),
        {**inputs, **outputs, **scratch},
        {name: np.asarray(expected[name]) for name in outputs},
        problem.tolerance(size),
        bound.options,
        bound.ladder.folder,
        functools.partial(of_rung, bound, seed=seed),
    )


def of_source(
    source: str,
    kernel: str,
    grid: Sequence[int],
    block: Sequence[int],
    args: Sequence[Any],
    expect: Mapping[str, np.ndarray],
    tolerance: float = 1e-5,
    shared_mem: int = 0,
    options: Sequence[str] = (),
) -> Experiment:
    """Return the experiment of a kernel of CUDA text. ``args`` are NumPy arrays and scalars in the kernel's order.

    ``expect`` holds the right outputs by the names of the kernel's parameters. Raises ValueError for an unknown name,
    or for a different shape.
    """
    names, arrays = _named(source, kernel, args)
    launch = Launch(kernel, tuple(grid), tuple(block), names, shared_mem)
    expected = _checked(expect, arrays)
    return Experiment(source, "kernel.cu", (launch,), arrays, expected, tolerance, (*STANDARD, *options))


@dataclass(frozen=True)
class Outcome:
    """The result of an experiment. ``kind`` is ``compile``, ``fault``, ``wrong``, ``right`` or ``ran``.

    ``message`` is the compiler's or the emulator's message, or says which elements are wrong. ``line`` is the line of
    the source that a message is about, 0 if there is none. ``counters`` and ``access`` are None unless the kernel
    ended.
    """

    kind: str
    message: str = ""
    line: int = 0
    error: Exception | None = None
    counters: emulator.Counters | None = None
    access: Any = None


def attempt(experiment: Experiment, picked: Callable[[emulator.Trace], Any] | None = None, **traced: Any) -> Outcome:
    """Compile and run on the emulator. ``picked`` selects the access to draw from the trace of one warp.

    ``traced``: the ``block`` and the ``warp`` of the trace, by default the first, and which ``launch``.
    """
    launches, number = experiment.launches, traced.pop("launch", 0)
    trace = emulator.Trace(**traced)
    options, arch = split_architecture(experiment.options)  # a rung may be of one architecture
    try:
        compiled = compile_cuda(
            experiment.source,
            filename=experiment.filename,
            options=options,
            **({"arch": arch} if arch else {}),
            name_expressions=tuple(dict.fromkeys(launch.kernel for launch in launches)),
            include_dirs=(str(experiment.folder),) if experiment.folder else (),
        )
    except CompileError as error:
        first = next((one for one in error.diagnostics if one.is_error), None)
        mine = first is not None and first.file == experiment.filename
        return Outcome("compile", str(first or error), first.line if mine else 0, error)
    memory, module = emulator.DeviceMemory(), module_of(compiled)
    held = {name: _upload(memory, array, name) for name, array in experiment.arrays.items()}
    counted = []
    try:
        for position, launch in enumerate(launches):
            packed, alive = pack(launch, held, experiment.arrays)
            with emulator.checking(emulator.ALL_CHECKS):
                counted.append(
                    module.kernel(compiled.lowered(launch.kernel)).launch(
                        launch.grid,
                        launch.block,
                        packed,
                        memory=memory,
                        shared_bytes=launch.shared_mem,
                        trace=trace if picked and position == number else None,
                        max_steps=MAX_STEPS,
                        dependent=launch.pdl,
                    )
                )
            del alive
    except emulator.EmulatorError as error:
        mine = error.where.file.rsplit("/", 1)[-1] == experiment.filename.rsplit("/", 1)[-1]
        said = str(error).replace(demangled(compiled.lowered(launch.kernel)), launch.kernel)
        return Outcome("fault", _ADDRESS.sub("", said), error.where.line if mine else 0, error)
    wrong = _wrong(experiment, held)
    kind = "wrong" if wrong else "right" if experiment.expected else "ran"
    counters = functools.reduce(operator.add, counted)
    return Outcome(kind, wrong, counters=counters, access=picked(trace) if picked else None)


def _removed(text: str, old: str) -> str:
    """Return the text without ``old``. Drop lines that become empty, with their trailing comment."""
    out, done = "", 0
    while (start := text.find(old, done)) >= 0:
        end = start + len(old)
        line = max(done, text.rfind("\n", 0, start) + 1)
        rest = _REST_OF_LINE.match(text, end)
        if not text[line:start].strip() and (old.endswith("\n") or rest):
            start, end = line, end if old.endswith("\n") or not rest else rest.end()
        out, done = out + text[done:start], end
    return out + text[done:]


def _upload(memory: emulator.DeviceMemory, array: np.ndarray, name: str) -> emulator.Allocation:
    """Allocate memory with the array's bytes. An array full of the poison of ``poisoned`` counts as uninitialised."""
    held = memory.allocate(array.nbytes, name, initialised=not is_poisoned(array))
    held.data[:] = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    return held


def _wrong(experiment: Experiment, held: Mapping[str, emulator.Allocation]) -> str:
    """Say how many elements of the first wrong output are wrong, and which is the first; "" if all are right."""
    for name, want in experiment.expected.items():
        got = held[name].data.view(experiment.arrays[name].dtype).reshape(want.shape)
        found = compare(got, want, experiment.tolerance if got.dtype.kind == "f" else 0.0)
        if not found.wrong:
            continue
        be = "is" if found.wrong == 1 else "are"
        if found.unwritten == found.wrong:
            first = _element(name, found.first_unwritten, got.shape)
            return f"{found.wrong} of {got.size} elements of {name} {be} never written, the first is {first}"
        flat = found.first_wrong or 0
        text = f"{found.wrong} of {got.size} elements of {name} {be} wrong, the first is "
        text += f"{_element(name, flat, got.shape)}: {_number(got.flat[flat])} instead of {_number(want.flat[flat])}"
        return text + (f"; {found.unwritten} of these were never written" if found.unwritten else "")
    return ""


def _element(name: str, flat: int | None, shape: tuple[int, ...]) -> str:
    return f"{name}[{', '.join(str(int(i)) for i in np.unravel_index(flat or 0, shape))}]"


def _number(value: Any) -> str:
    return f"{value:.4g}" if np.asarray(value).dtype.kind == "f" else str(value)


def _named(source: str, kernel: str, args: Sequence[Any]) -> tuple[tuple[Any, ...], dict[str, np.ndarray]]:
    """The arguments with arrays replaced by names, and the arrays by name. Raises TypeError."""
    names = _parameters(source, kernel, len(args))
    for name, arg in zip(names, args, strict=True):
        if not isinstance(arg, np.ndarray | np.generic):
            raise TypeError(
                f"{name} is a {type(arg).__name__}; expected a NumPy array, or a scalar such as np.int32(5)"
            )
    pairs = list(zip(names, args, strict=True))
    arrays = {name: arg for name, arg in pairs if isinstance(arg, np.ndarray)}
    return tuple(name if name in arrays else arg for name, arg in pairs), arrays


def _parameters(source: str, kernel: str, count: int) -> list[str]:
    """The names of a kernel's parameters, as its definition in the source has them; else "argument 0" and so on."""
    name = re.escape(kernel.partition("<")[0].split("::")[-1])
    found = re.search(rf"\b{name}\s*\(([^()]*)\)\s*\{{", source)
    named = [re.search(r"(\w+)\s*(?:\[\w*\])?\s*$", part) for part in found[1].split(",")] if found else []
    if len(named) != count or not all(named):
        return [f"argument {n}" for n in range(count)]
    return [match[1] for match in named if match]


def _checked(expect: Mapping[str, np.ndarray], arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    for name, want in expect.items():
        if name not in arrays:
            raise ValueError(f"expect names '{name}'; the arrays of the kernel are {', '.join(arrays)}")
        if np.shape(want) != arrays[name].shape:
            raise ValueError(f"{name} has the shape {arrays[name].shape}, and expect gives {np.shape(want)}")
    return {name: np.asarray(want) for name, want in expect.items()}
