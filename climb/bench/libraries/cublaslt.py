"""cuBLASLt: every algorithm that its heuristics propose for a product, timed, and the fastest taken.

Through nvmath's bindings, on the cuBLASLt that PyTorch loads. ``cublasLtMatmulAlgoGetHeuristic`` orders algorithms by
an estimate of their time; cuBLAS runs the first, which is not always the fastest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from climb.bench.claimed_precision import EMULATED, contradiction
from climb.bench.libraries.choosing import Prepared, fastest
from climb.bench.libraries.description import Description, shortened
from climb.bench.libraries.kernels_of import kernels_of
from climb.bench.problem import PeerUnavailable

#: Bytes of workspace: cuBLAS's recommendation for Hopper, which also gives split-K all the room that it needs.
WORKSPACE = 64 << 20
#: Algorithms requested from the heuristics; most products have fewer.
ASKED = 64

# Values of the enumerations cudaDataType_t, cublasComputeType_t and cublasOperation_t.
_TYPES = {"float32": 0, "float16": 2}
_R_32F = _TYPES["float32"]
_COMPUTE = {"fp32": 68, "fp16": 68, "TF32": 77, "BF16x9": 78}
_TRANSPOSE, _KEEP = 1, 0


@dataclass(frozen=True)
class Matrix:
    """A matrix on the GPU as cuBLAS sees it: rows and columns of op(X), a row-major array, or its transpose.

    ``pitch`` is the distance between stored rows in elements. A batch of matrices is ``batch`` times ``stride`` apart.
    ``dtype`` is float32 or float16.
    """

    address: int
    rows: int
    cols: int
    pitch: int
    transposed: bool = False
    batch: int = 1
    stride: int = 0
    dtype: str = "float32"


def matrix(array: Any, transposed: bool = False) -> Matrix:
    """Return a two-dimensional C-contiguous CuPy array, or with ``transposed`` its transpose, without a copy."""
    rows, cols = array.shape
    extents = (cols, rows) if transposed else (rows, cols)
    return Matrix(array.data.ptr, *extents, cols, transposed, dtype=str(array.dtype))


def product(a: Matrix, b: Matrix, c: Matrix, precision: str = "fp32", addend: Matrix | None = None) -> Prepared:
    """Return a launch of c = a b + addend, by the fastest algorithm of the heuristics; workspace is allocated now.

    ``precision`` is ``"fp32"``, ``"fp16"`` for factors of float16 with sums in float32, ``"TF32"`` or ``"BF16x9"``,
    which emulates fp32 with nine bfloat16 products. Without ``addend`` nothing is added. Raises
    :class:`PeerUnavailable` if cuBLASLt has no algorithm, or answers a request for BF16x9 with fp32 kernels alone.
    """
    return fastest(_candidates(a, b, c, precision, addend))


def as_asked(candidate: Prepared, precision: str, kernels: Callable[..., tuple[str, ...]] = kernels_of) -> Prepared:
    """Return the candidate if the kernels that it launches are of its precision; it is launched to see them.

    Heuristics for an emulated precision propose fp32 kernels too, and propose nothing else on a GPU without emulation.
    Raises :class:`PeerUnavailable` with the kernel's name.
    """
    if precision in EMULATED and (reason := contradiction(precision, map(shortened, kernels(candidate.enqueue)))):
        raise PeerUnavailable(reason)
    return candidate


def _candidates(
    a: Matrix, b: Matrix, c: Matrix, precision: str, addend: Matrix | None
) -> Iterator[Callable[[], Prepared]]:
    import cupy
    import torch  # noqa: F401 - loads the library
    from nvmath.bindings import cublasLt as lt

    handle = lt.create()
    # cuBLAS is column-major: c^T = b^T a^T, where each row-major array is the transpose of itself.
    description = lt.matmul_desc_create(_COMPUTE[precision], _R_32F)
    attributes = lt.MatmulDescAttribute
    _set_desc(lt, description, attributes.TRANSA, np.int32(_TRANSPOSE if b.transposed else _KEEP))
    _set_desc(lt, description, attributes.TRANSB, np.int32(_TRANSPOSE if a.transposed else _KEEP))
    left, right, added, result = (_layout(lt, one) for one in (b, a, addend or c, c))
    preference = _preference(lt, b, a, addend or c, c)
    found, count = lt.MatmulHeuristicResult(ASKED), np.zeros(1, np.int32)
    try:
        lt.matmul_algo_get_heuristic(
            handle, description, left, right, added, result, preference, ASKED, found.ptr, count.ctypes.data
        )
    except lt.cuBLASLtError as error:
        raise PeerUnavailable(f"cuBLASLt has no {precision} algorithm on this GPU: {error}") from None
    workspace = cupy.empty(WORKSPACE, cupy.uint8)
    one, beta = np.ones(1, np.float32), np.full(1, 0.0 if addend is None else 1.0, np.float32)

    def candidate(index: int) -> Prepared:
        algorithm = found[index]  # kept alive: cuBLASLt reads it at every launch

        def enqueue() -> None:
            lt.matmul(
                handle, description, one.ctypes.data, b.address, left, a.address, right, beta.ctypes.data,
                (addend or c).address, added, c.address, result, algorithm.ptr,
                workspace.data.ptr, WORKSPACE, cupy.cuda.get_current_stream().ptr,
            )  # fmt: skip

        return as_asked(Prepared(enqueue, _described(lt, algorithm.ptr, index, int(count[0]))), precision)

    for index in range(int(count[0])):
        yield lambda index=index: candidate(index)


def _preference(lt: Any, *operands: Matrix) -> int:
    """Create the heuristics' preferences: the workspace, and the alignment in bytes of A, B, C and D in each batch."""
    made, names = lt.matmul_preference_create(), lt.MatmulPreferenceAttribute
    values = [(names.MAX_WORKSPACE_BYTES, np.uint64(WORKSPACE))]
    for letter, operand in zip("ABCD", operands, strict=True):
        values.append((getattr(names, f"MIN_ALIGNMENT_{letter}_BYTES"), np.uint32(alignment(operand))))
    for attribute, value in values:
        data = np.array([value])
        lt.matmul_preference_set_attribute(made, attribute, data.ctypes.data, data.nbytes)
    return made


def alignment(one: Matrix) -> int:
    """Return the largest power of two, up to 256, of bytes on which the matrix begins in every element of the batch."""
    positions = one.address | 256 | (np.dtype(one.dtype).itemsize * one.stride if one.batch > 1 else 0)
    return positions & -positions


def _layout(lt: Any, one: Matrix) -> int:
    """Create a descriptor of the stored matrix, column-major: a row-major array's columns are its rows."""
    stored_rows, stored_cols = (one.cols, one.rows) if one.transposed else (one.rows, one.cols)
    layout = lt.matrix_layout_create(_TYPES[one.dtype], stored_cols, stored_rows, one.pitch)
    if one.batch > 1:
        attributes = lt.MatrixLayoutAttribute
        for attribute, value in (
            (attributes.BATCH_COUNT, np.int32(one.batch)),
            (attributes.STRIDED_BATCH_OFFSET, np.int64(one.stride)),
        ):
            data = np.array([value])
            lt.matrix_layout_set_attribute(layout, attribute, data.ctypes.data, data.nbytes)
    return layout


def _set_desc(lt: Any, description: int, attribute: Any, value: Any) -> None:
    data = np.array([value])
    lt.matmul_desc_set_attribute(description, attribute, data.ctypes.data, data.nbytes)


def _described(lt: Any, algorithm: int, index: int, count: int) -> Description:
    """Describe the algorithm by its configuration, as ``cublasLtMatmulAlgoConfigGetAttribute`` gives it."""
    names = {"ID": "algorithm", "TILE_ID": "tile", "STAGES_ID": "stages", "SPLITK_NUM": "split-K"}
    parts = []
    for name, said in names.items():
        value, written = np.zeros(1, np.int32), np.zeros(1, np.uint64)
        attribute = getattr(lt.MatmulAlgoConfigAttribute, name)
        lt.matmul_algo_config_get_attribute(algorithm, attribute, value.ctypes.data, value.nbytes, written.ctypes.data)
        parts.append(f"{said} {_named(lt, name, int(value[0]))}")
    return {"choice": f"{', '.join(parts)}: number {index + 1} of {count} heuristic results, the fastest"}


def _named(lt: Any, attribute: str, value: int) -> str:
    kinds = {"TILE_ID": lt.MatmulTile, "STAGES_ID": lt.MatmulStages}
    if attribute not in kinds:
        return str(value)
    try:
        return kinds[attribute](value).name.removeprefix("TILE_").removeprefix("STAGES_")
    except ValueError:
        return str(value)
