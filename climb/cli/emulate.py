"""Run a kernel of a .cu file on the emulator, and print what the hardware would have to do for it.

    climb emulate saxpy.cu --kernel saxpy --grid 4 --block 256 \\
        --arg 1024 --arg 2.0 --arg x:float32:1024:random --arg y:float32:1024:ones

An --arg is a number, or NAME:TYPE:SHAPE[:FILL] for an array: TYPE is NumPy's (float32, int32, uint8, ...), SHAPE such
as 1024 or 64x128, FILL one of zeros (the default), ones, range, random, or a .npy file. Give them in the kernel's
order. With --schedules N the kernel also runs N times in other orders of warps, blocks and asynchronous copies; the
outputs must not change by a bit.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from climb.cli.errors import UsageError

FILLS = ("zeros", "ones", "range", "random")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``climb emulate``."""
    parser.add_argument("file", help="a .cu file")
    parser.add_argument("--kernel", help="its name, or a C++ name expression such as 'scale<float>'; optional if "
                        "the file has only one kernel")  # fmt: skip
    parser.add_argument("--grid", required=True, help="blocks, such as 4 or 8x8")
    parser.add_argument("--block", required=True, help="threads of a block, such as 256 or 32x8")
    parser.add_argument("--arg", action="append", default=[], help="a number, or NAME:TYPE:SHAPE[:FILL]")
    parser.add_argument("--shared", type=int, default=0, metavar="BYTES", help="dynamic shared memory")
    parser.add_argument("--cooperative", action="store_true", help="run all blocks at a time, for grid.sync()")
    parser.add_argument("--cluster", help="blocks of a cluster, such as 2 or 2x2, if the kernel does not say so")
    parser.add_argument("--arch", default="sm_90", help="sm_90a for instructions that only Hopper has")
    parser.add_argument("--stack", type=int, metavar="BYTES", help="stack of a thread, for recursion")
    parser.add_argument("--heap", type=int, metavar="BYTES", help="device heap, for malloc and new")
    parser.add_argument("--option", action="append", default=[], help="for the compiler, as in --option=-DTILE=16")
    parser.add_argument("--schedules", type=int, default=0, metavar="N",
                        help="run under N adverse schedules too, and compare the outputs bit by bit")  # fmt: skip
    parser.add_argument("--seed", type=int, default=0, help="of random arrays, and of the first schedule")
    parser.add_argument("--show", type=int, default=8, metavar="N", help="elements of each array to print")
    parser.add_argument(
        "--save", action="append", default=[], metavar="NAME=FILE", help="write an array to a .npy file"
    )


def run(args: argparse.Namespace) -> int:
    """Launch the kernel. 0: it ran; 1: it did something wrong, its outputs depend on the schedule, or it does not
    compile. Raises UsageError."""
    from climb.emulator.errors import EmulatorError
    from climb.emulator.execution.schedules import Schedules
    from climb.emulator.ptx import PtxSyntaxError
    from climb.emulator.running import run as launch
    from climb.toolchain import CompileError, KernelNotFound, ToolchainError

    limits = {"stack_bytes": args.stack, "heap_bytes": args.heap}
    limits = {name: nbytes for name, nbytes in limits.items() if nbytes is not None}
    rng = np.random.default_rng(args.seed)
    try:
        named = [_argument(text, rng) for text in args.arg]
        saves = dict(_save(text, [name for name, _ in named]) for text in args.save)
        result = launch(
            args.file, args.kernel, grid=_extent(args.grid), block=_extent(args.block),
            args=[value for _, value in named], shared_mem=args.shared, options=args.option,
            cooperative=args.cooperative, schedule=Schedules(args.schedules, args.seed) if args.schedules else None,
            cluster=_extent(args.cluster) if args.cluster else None, arch=args.arch, **limits,
        )  # fmt: skip
    except (EmulatorError, CompileError, ToolchainError, PtxSyntaxError) as error:
        print(error, file=sys.stderr)
        return 1
    except (FileNotFoundError, KernelNotFound, TypeError, ValueError) as error:
        raise UsageError(str(error)) from None
    print(result)
    for name, value in named:
        if isinstance(value, np.ndarray):
            print(f"{name} ({value.dtype}, {'x'.join(map(str, value.shape))}): {_glance(value, args.show)}")
    for name, path in saves.items():
        np.save(path, next(value for other, value in named if other == name))
    return int(bool(result.comparison))


def _extent(text: str) -> tuple[int, ...]:
    parts = text.lower().split("x")
    if len(parts) > 3 or not all(part.isdigit() and int(part) for part in parts):
        raise UsageError(f"'{text}' is not an extent; expected one to three positive numbers, such as 256 or 32x8")
    return tuple(int(part) for part in parts)


def _argument(text: str, rng: np.random.Generator) -> tuple[str, np.ndarray | int | float]:
    """The name and value of an --arg."""
    if ":" not in text:
        return text, _number(text)
    name, kind, *rest = text.split(":", 3)
    if not rest:
        raise UsageError(f"--arg {text}: expected a number, or NAME:TYPE:SHAPE[:FILL]")
    try:
        dtype = np.dtype(kind)
    except TypeError:
        raise UsageError(f"--arg {text}: '{kind}' is not a NumPy dtype") from None
    if dtype.kind not in "biuf":
        raise UsageError(f"--arg {text}: expected a numeric type, not '{kind}'")
    try:
        shape = tuple(int(part) for part in rest[0].lower().split("x"))
    except ValueError:
        raise UsageError(f"--arg {text}: '{rest[0]}' is not a shape; expected one such as 1024 or 64x128") from None
    return name, _filled(rest[1] if len(rest) > 1 else "zeros", shape, dtype, rng, text)


def _number(text: str) -> int | float:
    for convert in (lambda t: int(t, 0), float):
        try:
            return convert(text)
        except ValueError:
            continue
    raise UsageError(f"--arg {text}: expected a number, or NAME:TYPE:SHAPE[:FILL]")


def _filled(how: str, shape: tuple[int, ...], dtype: np.dtype, rng: np.random.Generator, text: str) -> np.ndarray:
    if how == "zeros":
        return np.zeros(shape, dtype)
    if how == "ones":
        return np.ones(shape, dtype)
    if how == "range":
        return np.arange(np.prod(shape, dtype=np.int64)).astype(dtype).reshape(shape)
    if how == "random":
        values = (
            rng.standard_normal(shape) if dtype.kind == "f" else rng.integers(0, 2 if dtype.kind == "b" else 100, shape)
        )
        return values.astype(dtype)
    if not how.endswith(".npy"):
        raise UsageError(f"--arg {text}: '{how}' is neither {', '.join(FILLS)} nor a .npy file")
    if not Path(how).is_file():
        raise UsageError(f"--arg {text}: no file {how}")
    loaded = np.load(how, allow_pickle=False)
    if loaded.shape != shape or loaded.dtype != dtype:
        raise UsageError(f"--arg {text}: {how} holds {loaded.dtype} {loaded.shape}")
    return loaded.copy()


def _save(text: str, names: Sequence[str]) -> tuple[str, str]:
    name, equals, path = text.partition("=")
    if not equals or name not in names:
        raise UsageError(f"--save {text}: expected NAME=FILE with the name of an array: {', '.join(names)}")
    return name, path


def _glance(array: np.ndarray, count: int) -> str:
    flat = array.reshape(-1)
    values = " ".join(f"{value:g}" if array.dtype.kind == "f" else str(value) for value in flat[:count])
    return values + (f" ... ({flat.size - count} more)" if flat.size > count else "")
