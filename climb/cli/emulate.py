"""Run a kernel of a .cu file on the emulator, and print what the hardware would have to do for it.

    climb emulate saxpy.cu --kernel saxpy --grid 4 --block 256 \\
        --arg 1024 --arg 2.0 --arg x:@x.npy --arg y:float32:1024:ones --out y:y.npy --html saxpy.html

An --arg is a number; NAME:TYPE:SHAPE[:FILL] for an array, where TYPE is NumPy's (float32, int32, uint8, ...), SHAPE
such as 1024 or 64x128, and FILL one of zeros (the default), ones, range, random, or a .npy file; or NAME:@FILE for
the array of a .npy file, or the array of that name in a .npz file (of another name: FILE.npz[OTHER]). Give them in the
kernel's order. NAME:@FILE.json describes a struct by value, a texture or a tensor map:

    {"struct": {"n": ["int32", 5], "size": ["float32", [1, 2]], "x": "float32:64:random", "y": "@y.npy"}}
    {"texture": "@image.npy", "filtering": "linear", "addressing": ["clamp"], "normalised": true}
    {"tensor": "float32:64x64:random", "box": [16, 32], "swizzle": 128}

Members are in the order of the struct, and arrays are pointers; other keys are those of climb.emulator.Texture and
Tensor ("channels": true if the last axis of a texture's array has them).

Of a file with host code, such as main, only the device code is compiled. With --schedules N the kernel also runs N
times in other orders of warps, blocks and asynchronous copies; the outputs must not change by a bit. A long launch uses
several CPU cores, which changes no result; the environment variable CLIMB_WORKERS sets how many, CLIMB_WORKERS=1 one.
Float arithmetic is that of CuPy, which compiles with -ftz=true: subnormal float32 numbers become zero. nvcc keeps them,
and so does --option=-ftz=false. The search for races in global memory takes time and memory where a kernel reads and
writes the same array: --fast leaves it out.

exit status:
    0  the kernel ran and no fault was found
    1  it did not run: it does not compile, or needs what the emulator does not support
    2  the command line is wrong, or a file cannot be read or written
    3  an access out of bounds or misaligned, a bad free, a call through a bad pointer, a stack overflow
    4  a race, also with an asynchronous copy or product
    5  a read of memory that nothing has written
    6  a barrier or a warp function that not all of its threads reach, or a misused mbarrier or asynchronous copy
    7  an endless loop or a deadlock
    8  a failed assertion or a trap
    9  a launch that no GPU takes
   10  the outputs depend on the schedule
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from climb.cli.emulation.arguments import argument, arrays_of, extent, glance, outputs, save, writable
from climb.cli.emulation.progress import progress
from climb.cli.errors import UsageError

if TYPE_CHECKING:
    from climb.cli.emulation.arguments import Value
    from climb.emulator import Counters, Result
    from climb.toolchain import Compiled

#: Lines that the report shows before it leaves out the cheapest.
MOST_LINES = 24


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``climb emulate``."""
    parser.add_argument("file", help="a .cu file")
    parser.add_argument("--kernel", help="its name, or a C++ name expression such as 'scale<float>'; optional if "
                        "the file has only one kernel")  # fmt: skip
    parser.add_argument("--grid", required=True, help="blocks, such as 4 or 8x8")
    parser.add_argument("--block", required=True, help="threads of a block, such as 256 or 32x8")
    parser.add_argument("--arg", action="append", default=[], help="a number, NAME:TYPE:SHAPE[:FILL] or NAME:@FILE")
    parser.add_argument("--constant", action="append", default=[], metavar="ARG",
                        help="the value of a __constant__ or __device__ array, as for --arg")  # fmt: skip
    parser.add_argument("--shared", type=int, default=0, metavar="BYTES", help="dynamic shared memory")
    parser.add_argument("--cooperative", action="store_true", help="run all blocks at a time, for grid.sync()")
    parser.add_argument("--cluster", help="blocks of a cluster, such as 2 or 2x2, if the kernel does not say so")
    parser.add_argument("--arch", default="sm_90", help="sm_90a for instructions that only Hopper has")
    parser.add_argument("--stack", type=int, metavar="BYTES", help="stack of a thread, for recursion")
    parser.add_argument("--heap", type=int, metavar="BYTES", help="device heap, for malloc and new")
    parser.add_argument("--max-steps", type=int, metavar="N", help="basic blocks that a batch of blocks may run before "
                        "it counts as an endless loop; raise it for a kernel that is only long")  # fmt: skip
    parser.add_argument("-D", "--define", action="append", default=[], metavar="NAME[=VALUE]", help="define a macro")
    parser.add_argument("-I", "--include", action="append", default=[], metavar="DIR", help="folder of headers; that "
                        "of the file itself is one")  # fmt: skip
    parser.add_argument("--option", action="append", default=[], help="for the compiler, as in --option=-ftz=false")
    parser.add_argument("--schedules", type=int, default=0, metavar="N",
                        help="run under N adverse schedules too, and compare the outputs bit by bit")  # fmt: skip
    parser.add_argument("--fast", action="store_true", help="do not search for races in global memory")
    parser.add_argument("--seed", type=int, default=0, help="of random arrays, and of the first schedule")
    parser.add_argument("--show", type=int, default=8, metavar="N", help="elements of each array to print")
    parser.add_argument("--top", type=int, default=MOST_LINES, metavar="N",
                        help="print the N lines that cost most; 0 prints all (default %(default)s)")  # fmt: skip
    parser.add_argument("--out", action="append", default=[], metavar="NAME:FILE", help="write an array to a .npy "
                        "file, or to a .npz file with others")  # fmt: skip
    parser.add_argument("--save", action="append", default=[], metavar="NAME=FILE", help="the same as --out")
    parser.add_argument("--json", metavar="FILE", help="write counters and fault as JSON; - prints it instead of the "
                        "report")  # fmt: skip
    parser.add_argument("--html", metavar="FILE", help="write a page of the source with the counters of each line")


_LEAST = {"max_steps": 1, "schedules": 0, "seed": 0, "show": 0, "top": 0, "stack": 0, "heap": 0}


@dataclass(frozen=True)
class _Source:
    """The device code of a file. `whole`: its text with the host code; `cuts`: the parts left out of it."""

    text: str
    whole: str
    name: str
    folder: str
    cuts: tuple[object, ...] = ()


def run(args: argparse.Namespace) -> int:
    """Launch the kernel. Returns the exit status, see the head of this module. Raises UsageError."""
    for option, least in _LEAST.items():
        value = getattr(args, option)
        if value is not None and value < least:
            raise UsageError(f"--{option.replace('_', '-')} {value}: expected a number of at least {least}")
    rng = np.random.default_rng(args.seed)
    named = [argument(text, rng) for text in args.arg]
    constants = [argument(text, rng, "--constant") for text in args.constant]
    for text, (_, value) in zip(args.constant, constants, strict=True):
        if not isinstance(value, np.ndarray):
            raise UsageError(f"--constant {text}: expected NAME:TYPE:SHAPE[:FILL] or NAME:@FILE")
    arrays = dict(arrays_of(named))
    if len(arrays) < len(arrays_of(named)):
        raise UsageError("two arrays have the same name")
    saves = outputs(args.save, args.out, arrays)
    pages = {
        option: writable(Path(path), f"--{option} {path}")
        for option, path in (("json", args.json), ("html", args.html))
        if path and path != "-"
    }
    grid, block, cluster = (extent(text) if text else None for text in (args.grid, args.block, args.cluster))
    source = _read(args.file)
    if source.cuts:
        print(f"climb emulate: left out host code: {', '.join(map(str, source.cuts))}", file=sys.stderr)
    launched = _launched(args, source, named, dict(constants), (grid, block, cluster))
    if args.json:
        text = json.dumps(launched.document(arrays), indent=2) + "\n"
        if args.json == "-":
            print(text, end="")
        else:
            _write(pages["json"], text)
    if args.html:
        from climb.cli.emulation.page import page

        _write(pages["html"], page(launched.counters, launched.fault, source.whole, source.name))
    if launched.fault is not None:
        print(launched.fault, file=sys.stderr)
        return launched.status
    if args.json != "-":
        print(launched.report(args.top))
        for name, value in arrays.items():
            print(f"{name} ({value.dtype}, {'x'.join(map(str, value.shape))}): {glance(value, args.show)}")
    save(saves, arrays)
    return launched.status


def _write(path: Path, text: str) -> None:
    """Write a file. Raises UsageError if that fails."""
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}") from None


@dataclass(frozen=True)
class _Launched:
    """The end of a launch: a result, or a fault."""

    result: Result | None
    fault: Exception | None = None

    @property
    def status(self) -> int:
        from climb.cli.emulation import statuses
        from climb.emulator import EmulatorError

        if isinstance(self.fault, EmulatorError):
            return statuses.status_of(self.fault)
        if self.fault is not None:
            return statuses.NOT_RUN
        return statuses.SCHEDULE if self.result.comparison else statuses.CLEAN

    @property
    def counters(self) -> Counters | None:
        """The counters, up to the fault if there is one."""
        return self.result.counters if self.result else getattr(self.fault, "counters", None)

    def document(self, arrays: dict[str, np.ndarray]) -> dict[str, object]:
        from climb.cli.emulation.document import document

        comparison = self.result.comparison if self.result else None
        return document(self.status, self.counters, self.fault, comparison, arrays)

    def report(self, most: int) -> str:
        """Format the report, with the `most` lines that cost most; all of them if `most` is 0."""
        from climb.cli.emulation.costs import costliest

        counters, left = costliest(self.counters, most)
        text = str(counters) if self.result.comparison is None else f"{counters}\n\n{self.result.comparison}"
        return text + (
            f"\n{left} cheaper {'line is' if left == 1 else 'lines are'} not shown; --top 0 shows all" if left else ""
        )


def _launched(
    args: argparse.Namespace,
    source: _Source,
    named: list[tuple[str, Value]],
    constants: dict[str, np.ndarray],
    extents: tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...] | None],
) -> _Launched:
    """Compile and launch. Raises UsageError if the command line does not fit the kernel."""
    from climb.emulator import EmulatorError, Schedules
    from climb.emulator.checks.enabled import DEFAULT, OF_A_RUN
    from climb.emulator.ptx import PtxSyntaxError
    from climb.emulator.running import launch
    from climb.toolchain import CompileError, KernelNotFound, ToolchainError

    limits = {"stack_bytes": args.stack, "heap_bytes": args.heap, "max_steps": args.max_steps}
    limits = {name: nbytes for name, nbytes in limits.items() if nbytes is not None}
    grid, block, cluster = extents
    try:
        compiled, kernel = _compiled(args, source)
        with progress(f"climb emulate: {kernel}", _place):
            result = launch(
                compiled, kernel, grid, block, [value for _, value in named], shared_mem=args.shared,
                symbols=constants, cooperative=args.cooperative, cluster=cluster,
                schedule=Schedules(args.schedules, args.seed) if args.schedules else None,
                checks=DEFAULT if args.fast else OF_A_RUN, **limits,
            )  # fmt: skip
            _ = result.counters.marks  # computed for the report, so that an error of ptxas is reported here
            return _Launched(result)
    except (EmulatorError, CompileError, ToolchainError, PtxSyntaxError) as error:
        return _Launched(None, error)
    except (KernelNotFound, TypeError, ValueError) as error:
        raise UsageError(str(error)) from None


def _place() -> str:
    """Say which source line the kernel has reached, and after how many steps; "" if none is running."""
    from climb.emulator.execution.scheduler import running

    found = running()
    if found is None:
        return ""
    steps, location = found
    return f"now at {location.file.rsplit('/', 1)[-1]}:{location.line}, after {steps} steps"


def _compiled(args: argparse.Namespace, source: _Source) -> tuple[Compiled, str]:
    """Compile the source; return it with the kernel to launch."""
    from climb.emulator.running import only_kernel
    from climb.toolchain import compile_cuda
    from climb.toolchain.host_code import options_like_nvcc

    options = [
        *args.option,
        *options_like_nvcc(source.text),
        *(f"-D{each}" for each in args.define),
        *(f"-I{each}" for each in args.include),
    ]
    for folder in args.include:
        if not Path(folder).is_dir():
            raise UsageError(f"-I {folder}: no such folder")
    compiled = compile_cuda(
        source.text, filename=source.name, options=options, include_dirs=(source.folder,), arch=args.arch,
        name_expressions=(args.kernel,) if args.kernel else (),
    )  # fmt: skip
    return compiled, args.kernel or only_kernel(compiled)


def _read(file: str) -> _Source:
    """Read the device code of the file. Raises UsageError."""
    from climb.toolchain.host_code import without_host_code
    from climb.toolchain.includes import read_source

    path = Path(file)
    if not path.is_file():
        raise UsageError(f"no file {file}" if not path.is_dir() else f"{file} is a folder; expected a .cu file")
    try:
        text = read_source(path)
    except OSError as error:
        raise UsageError(f"cannot read {file}: {error}") from None
    device, cuts = without_host_code(text)
    return _Source(device, text, path.name, str(path.resolve().parent), cuts)
