"""The definition of a computation: the inputs, the reference, the work, and the sizes of interest.

A :class:`Problem` does not say how it is computed; the rungs of a ladder do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from climb.bench.work import Work

#: A problem's size, for instance ``{"rows": 16384, "cols": 16384}``. A key may name a kind of data: ``"data": "zipf"``.
Size = Mapping[str, Any]
#: One extent of a shape: the name of a size key, or a function of the size.
Extent = str | Callable[[Size], int]


def ceil_div(numerator: int, denominator: int) -> int:
    """Return the least whole number of pieces of size ``denominator`` that cover ``numerator``."""
    return -(-numerator // denominator)


def size_label(size: Size) -> str:
    """Format a size as text: ``rows=16384, cols=16384``."""
    return ", ".join(f"{key}={value}" for key, value in size.items())


def short_size(size: Size) -> str:
    """Format a size as text without its keys, with large powers of two as such: ``2^29 x 3``."""
    return " x ".join(map(_extent, size.values()))


def _extent(extent: int | str) -> str:
    if isinstance(extent, int) and extent > 1 << 16 and extent.bit_count() == 1:
        return f"2^{extent.bit_length() - 1}"
    return str(extent)


@dataclass(frozen=True)
class Argument:
    """One array that a problem reads or writes.

    ``shape`` names size keys (``("rows", "cols")``) or computes an extent from the size. Arrays are C-contiguous.
    """

    name: str
    dtype: str
    shape: tuple[Extent, ...]
    role: Literal["input", "output"] = "input"

    def extents(self, size: Size) -> tuple[int, ...]:
        """Return the array's shape at this size."""
        return tuple(size[e] if isinstance(e, str) else int(e(size)) for e in self.shape)


@dataclass(frozen=True)
class Problem:
    """A computation with its reference and its work.

    ``parameters`` are the size keys that no input's shape determines (a stride, say): they are passed by keyword. A
    parameter is at least 1, unless it is named in ``may_be_zero``. ``kinds`` are the size keys whose value is a name,
    with the allowed names. They shape the inputs that ``make_inputs`` makes and nothing else; for a reader's own
    arrays, the first name is assumed. A kind that is also a parameter says how to compute: it is passed by keyword, and
    its first name is the default. ``flops`` and ``bytes`` count the least work: every multiply and add, every input
    byte read once, every output byte written once. ``reference`` computes in float64 (or in exact integers) on the
    host. ``tolerance`` is the largest error allowed relative to the largest reference value (0: bit-equal); a comment
    at the problem says why. ``operations`` splits ``flops`` by the fields of :class:`~climb.bench.work.Work`; without
    it they are multiply-adds, of integers where the first output is one. ``reference_magnitude`` takes the same
    arguments as ``reference``, and gives the sum of the absolute values of the terms that make each output, so that an
    error can be judged element by element. ``headline`` are the sizes that the book reports, ``sweep`` further sizes
    that a chapter draws; both are recorded. ``check`` are the small and awkward sizes that the tests run. ``precision``
    is that of the rungs' products, in the words of a peer's description: a peer in another precision answers another
    question.
    """

    name: str
    title: str
    size_keys: tuple[str, ...]
    arguments: tuple[Argument, ...]
    make_inputs: Callable[[Size, np.random.Generator], dict[str, np.ndarray]]
    reference: Callable[[dict[str, np.ndarray], Size], dict[str, np.ndarray]]
    tolerance: Callable[[Size], float]
    flops: Callable[[Size], int]
    bytes: Callable[[Size], int]
    headline: tuple[Size, ...]
    check: tuple[Size, ...]
    sweep: tuple[Size, ...] = ()
    parameters: tuple[str, ...] = ()
    may_be_zero: tuple[str, ...] = ()
    kinds: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    accepts_empty: bool = False
    operations: Callable[[Size], Mapping[str, int]] | None = None
    reference_magnitude: Callable[[dict[str, np.ndarray], Size], dict[str, np.ndarray]] | None = None
    precision: Literal["fp32", "TF32", "fp16"] = "fp32"

    @property
    def recorded(self) -> tuple[Size, ...]:
        """Every size that a record holds."""
        return (*self.headline, *self.sweep)

    @property
    def inputs(self) -> tuple[Argument, ...]:
        return tuple(a for a in self.arguments if a.role == "input")

    @property
    def outputs(self) -> tuple[Argument, ...]:
        return tuple(a for a in self.arguments if a.role == "output")

    def written(self, size: Size) -> int:
        """The bytes of all outputs."""
        return sum(int(np.prod(a.extents(size), dtype=np.int64)) * np.dtype(a.dtype).itemsize for a in self.outputs)

    def work(self, size: Size) -> Work:
        """The least work: the outputs' bytes written, the rest of ``bytes`` read, and the operations by pipe."""
        written = self.written(size)
        if self.operations is not None:
            operations = dict(self.operations(size))
        else:
            whole = bool(self.outputs) and np.dtype(self.outputs[0].dtype).kind in "iu"
            operations = {"int32" if whole else "fma": int(self.flops(size)) // 2}
        return Work(read=max(0, int(self.bytes(size)) - written), written=written, **operations)


@dataclass(frozen=True)
class ByValue:
    """An array of the problem that a kernel takes by value, in its constant bank, as a structure with one member.

    The values are copied when the rung is prepared.
    """

    array: str

    def __str__(self) -> str:
        return f"{self.array} by value"


@dataclass(frozen=True)
class Textured:
    """A two-dimensional float32 array of the problem that a kernel reads as a texture, by whole texels.

    ``beyond`` says what a read outside the array returns: ``"border"``, zero, or ``"clamp"``, the nearest texel. The
    array is copied into the texture's layout when the rung is prepared.
    """

    array: str
    beyond: str = "border"

    def __str__(self) -> str:
        return f"{self.array} as a texture, {self.beyond}"


@dataclass(frozen=True)
class Tensor:
    """A tensor map of an array of the problem or of the workspace, for the copy engine (TMA).

    The kernel takes it as a ``const __grid_constant__`` structure of 128 bytes, aligned to 64. The array's elements,
    read as ``dtype`` ("float16", "bfloat16", "float32", or "tfloat32", to which loads round), are taken as a tensor of
    ``shape``, and ``box`` has the extents that one copy moves. ``pitch`` is the number of elements from one row (of the
    last dimension) to the next, if that is not its length. ``swizzle`` and ``l2_promotion`` are those of
    :func:`climb.tensor_map`.
    """

    array: str
    shape: tuple[int, ...]
    box: tuple[int, ...]
    dtype: str
    swizzle: int = 0
    pitch: int | None = None
    l2_promotion: int = 0

    @property
    def element(self) -> np.dtype:
        """NumPy's type of an element: it has none of its own for bfloat16 and for what the copy engine rounds."""
        own = {"bfloat16": "uint16", "float32_ftz": "float32", "tfloat32": "float32", "tfloat32_ftz": "float32"}
        return np.dtype(own.get(self.dtype, self.dtype))

    @property
    def strides(self) -> tuple[int, ...]:
        """Bytes from one element to the next, by dimension."""
        steps = [self.element.itemsize]
        for position, extent in enumerate(reversed(self.shape[1:])):
            steps.append(steps[-1] * (self.pitch or extent) if position == 0 else steps[-1] * extent)
        return tuple(reversed(steps))

    def __str__(self) -> str:
        shape, box = (" x ".join(map(str, extents)) for extents in (self.shape, self.box))
        own = {"swizzle": self.swizzle, "pitch": self.pitch, "L2 promotion": self.l2_promotion}
        extra = "".join(f", {name} {value}" for name, value in own.items() if value)
        return f"tensor map of {self.array} ({shape} {self.dtype}, boxes of {box}{extra})"


@dataclass(frozen=True)
class Launch:
    """One kernel launch: the launch configuration between ``<<<`` and ``>>>``, and the arguments.

    ``kernel`` is a C++ name expression (``transpose_tiled<32, 8>``). ``args`` are names of the problem's arrays or of
    the rung's workspace, NumPy scalars, which are passed by value with exactly their type, :class:`ByValue`,
    :class:`Textured` or :class:`Tensor`. With ``pdl``, programmatic dependent launch, the kernel may start before the
    launch before it has ended, as soon as all its blocks have executed ``griddepcontrol.launch_dependents`` or ended;
    it must execute ``griddepcontrol.wait`` before it reads what that launch writes. It needs a launch before it in the
    same rung, and compute capability 9.0. The emulator raises EarlyAccess for an access that should have waited. With
    ``graph``, it and its neighbours that have it too are captured into one CUDA graph when the rung is prepared, and
    the graph is launched; on the emulator they are launched one after the other.
    """

    kernel: str
    grid: tuple[int, ...]
    block: tuple[int, ...]
    args: tuple[str | np.generic | ByValue | Textured | Tensor, ...]
    shared_mem: int = 0
    pdl: bool = False
    graph: bool = False

    def as_json(self) -> dict[str, Any]:
        """Return the launch as records and the hash of a measured kernel hold it."""
        return {
            "kernel": self.kernel,
            "grid": list(self.grid),
            "block": list(self.block),
            "shared_mem": self.shared_mem,
            "args": [f"{a.dtype.name}({a})" if isinstance(a, np.generic) else str(a) for a in self.args],
            **({"pdl": True} if self.pdl else {}),
            **({"graph": True} if self.graph else {}),
        }

    def __str__(self) -> str:
        """Format the launch as CUDA C++ writes it."""
        config = ", ".join(_dim3(d) for d in (self.grid, self.block))
        if self.shared_mem:
            config += f", {self.shared_mem}"
        how = (", starts early (pdl)" if self.pdl else "") + (", in a graph" if self.graph else "")
        return f"{self.kernel}<<<{config}>>>({', '.join(str(a) for a in self.args)}){how}"


def _dim3(dims: Sequence[int]) -> str:
    return str(dims[0]) if len(dims) == 1 else f"dim3({', '.join(str(d) for d in dims)})"


def _no_demand(size: Size) -> str | None:
    return None


def _no_workspace(size: Size) -> Mapping[str, tuple[tuple[int, ...], str]]:
    return {}


@dataclass(frozen=True)
class Rung:
    """One kernel that solves a problem: one idea more than the rung before it.

    Its file is ``<number>_<name>.cu`` in the ladder's folder, where the number is the rung's place in the ladder, from
    01; ``source`` names another file, relative to that folder. ``launches`` gives the launches at a size, in order; no
    launch configuration is written anywhere else. ``requires`` returns a sentence when a size is not supported.
    ``alignment`` gives bytes by argument name where the kernel needs more than the element type's own alignment.
    ``workspace`` gives ``{name: (shape, dtype)}`` of scratch arrays, allocated for a launch and not initialised.
    A rung that is not ``swept`` is recorded at the headline sizes alone. A rung with a ``shortcut`` needs fewer
    operations than the problem counts. ``work`` gives the least work of such a rung, and of one that uses another pipe
    than the problem counts; it is then compared with the limit of that work too. ``capability`` is the least compute
    capability of a GPU that can run it. ``arch``, ``"sm_90a"``, is for a rung that uses instructions of that one
    architecture: it is compiled for it alone, and runs on GPUs of that compute capability alone. ``tolerance`` replaces
    the problem's where a rung computes with less precision; a comment there says why.
    """

    name: str
    idea: str
    launches: Callable[[Size], tuple[Launch, ...]]
    options: tuple[str, ...] = ()
    alignment: Mapping[str, int] = field(default_factory=dict)
    requires: Callable[[Size], str | None] = _no_demand
    workspace: Callable[[Size], Mapping[str, tuple[tuple[int, ...], str]]] = _no_workspace
    swept: bool = True
    shortcut: bool = False
    source: str = ""
    work: Callable[[Size], Work] | None = None
    capability: str = "7.5"
    arch: str = ""
    tolerance: Callable[[Size], float] | None = None

    def __post_init__(self) -> None:
        if self.arch and not self.arch.endswith("a"):
            raise ValueError(f"rung '{self.name}': arch is for architectures such as sm_90a, not {self.arch!r}")


class RungUnavailable(RuntimeError):
    """This GPU cannot run a rung at this size; the message says what the GPU lacks."""


class PeerUnavailable(RuntimeError):
    """A peer cannot run on this machine or at this size; the message says why, and how to make it run."""


@dataclass(frozen=True)
class Peer:
    """The vendor's library on the same problem; runs on a GPU only.

    ``prepare(arrays, size)`` does all set-up (handles, algorithm choice) and returns a function of no arguments that
    enqueues the work once on the current stream and returns nothing. It raises :class:`PeerUnavailable` or ImportError
    if a library is missing or cannot solve this size; the record then keeps the reason in place of a time.
    ``describe()`` gives ``library`` for the record: ``{"name", "version", "algorithm", "precision"}``. If the returned
    function has an attribute ``chosen``, a dictionary with some of these keys, its values replace the description's: it
    says which algorithm or precision was chosen at this size. ``tolerance`` replaces the problem's where the precision
    is lower (TF32), and the record says so. ``requires`` returns a sentence for a size that the peer does not take; the
    record then has no point for it. A peer that is not ``swept`` is recorded at the headline sizes alone. A peer that
    is ``isolated`` is measured in a process without other peers, because its library keeps what they make it choose.
    """

    name: str
    prepare: Callable[[dict[str, Any], Size], Callable[[], None]]
    describe: Callable[[], dict[str, str]]
    tolerance: Callable[[Size], float] | None = None
    requires: Callable[[Size], str | None] = _no_demand
    swept: bool = True
    isolated: bool = False
