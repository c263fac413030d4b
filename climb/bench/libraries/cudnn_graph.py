"""cuDNN through its graph API: a convolution with its bias as one operation, and every execution plan timed.

The package ``nvidia-cudnn-frontend`` builds the graph, on the cuDNN that PyTorch loads. cuDNN's heuristics list plans
(modes A and B, and the fallback list); the fastest is the peer, by the name that cuDNN gives it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from climb.bench.libraries.choosing import Prepared, fastest
from climb.bench.libraries.description import Description, describe, dotted

#: Bytes of workspace above which a plan is not tried; FFT plans of large volumes ask for more than a GPU has.
MOST_WORKSPACE = 8 << 30
LAYOUTS = ("NCHW", "NHWC")


def cudnn_graph(algorithm: str, precision: str) -> Callable[[], Description]:
    """A peer's ``describe`` for cuDNN's graph API, with the versions of cuDNN and of the frontend."""

    def found() -> Description:
        import torch  # noqa: F401 - loads the library

        import cudnn  # isort: skip

        version = dotted(cudnn.backend_version(), 10000, 100, 1)
        return describe("cuDNN", version, f"{algorithm}, through cudnn-frontend {cudnn.__version__}", precision)

    return found


def convolution(
    source: Any,
    weights: Any,
    target: Any,
    padding: tuple[int, int],
    bias: Any = None,
    tf32: bool = False,
    layouts: Sequence[str] = LAYOUTS,
) -> Prepared:
    """Return a launch that convolves ``source`` into ``target`` and adds ``bias`` in the same operation, CuPy arrays.

    Shapes: (batch, channels in, rows, columns), weights (channels out, channels in, taps down, taps across), bias
    (channels out), target (batch, channels out, rows, columns). All plans in all ``layouts`` are built and timed now.
    In NHWC, arrays are brought into that layout now, and only the first result is brought back, to be verified. Without
    ``tf32``, plans that use tensor cores or round their inputs are left out.
    """

    def candidates() -> Iterator[Callable[[], Prepared]]:
        for layout in layouts:
            yield from _plans(source, weights, target, padding, bias, tf32, layout)

    return fastest(candidates())


def _plans(
    source: Any, weights: Any, target: Any, padding: tuple[int, int], bias: Any, tf32: bool, layout: str
) -> Iterator[Callable[[], Prepared]]:
    import cupy
    import torch

    import cudnn  # isort: skip

    memory_format = torch.channels_last if layout == "NHWC" else torch.contiguous_format
    given, taps = (torch.from_dlpack(a).contiguous(memory_format=memory_format) for a in (source, weights))
    result = torch.from_dlpack(target)
    out = torch.empty_like(result, memory_format=memory_format) if layout == "NHWC" else result
    handle = cudnn.create_handle()
    graph = cudnn.pygraph(
        handle=handle,
        io_data_type=cudnn.data_type.FLOAT,
        intermediate_data_type=cudnn.data_type.FLOAT,
        compute_data_type=cudnn.data_type.FLOAT,
    )
    x, w = (_tensor(graph, name, array, layout) for name, array in (("x", given), ("w", taps)))
    y = graph.conv_fprop(image=x, weight=w, padding=list(padding), stride=[1, 1], dilation=[1, 1])
    buffers = {x: given, w: taps}
    if bias is not None:
        offsets = torch.from_dlpack(bias).reshape(1, -1, 1, 1)
        b = _tensor(graph, "b", offsets, layout)
        y = graph.bias(input=y, bias=b)
        buffers[b] = offsets
    y.set_output(True).set_dim(list(out.shape)).set_stride(_strides(out.shape, layout))
    buffers[y] = out
    try:
        graph.validate()
        graph.build_operation_graph()
        graph.create_execution_plans([cudnn.heur_mode.A, cudnn.heur_mode.B, cudnn.heur_mode.FALLBACK])
        if not tf32:
            notes = cudnn.numerical_note
            graph.deselect_numeric_notes([notes.TENSOR_CORE, notes.DOWN_CONVERT_INPUTS])
        graph.deselect_workspace_greater_than(MOST_WORKSPACE)
        graph.check_support()
    except Exception:  # cudnnGraphNotSupportedError, and RuntimeError in older frontends
        return
    count = graph.get_execution_plan_count()

    def candidate(index: int) -> Prepared:
        graph.build_plan_at_index(index)
        workspace = cupy.empty(max(1, graph.get_workspace_size_plan_at_index(index)), dtype=cupy.uint8)
        pointers = {tensor: array.data_ptr() for tensor, array in buffers.items()}

        def enqueue() -> None:
            cudnn.set_stream(handle=handle, stream=cupy.cuda.get_current_stream().ptr)
            graph.execute_plan_at_index(pointers, workspace.data.ptr, index, handle=handle)

        name = graph.get_plan_name_at_index(index)
        chosen = {"choice": f"{name}, {layout}: the fastest plan, of {count} in this layout"}
        return Prepared(enqueue, chosen, (lambda: result.copy_(out)) if out is not result else None)

    for index in range(count):
        yield lambda index=index: candidate(index)


def _tensor(graph: Any, name: str, array: Any, layout: str) -> Any:
    import cudnn

    shape = list(array.shape)
    return graph.tensor(name=name, dim=shape, stride=_strides(shape, layout), data_type=cudnn.data_type.FLOAT)


def _strides(shape: Sequence[int], layout: str) -> list[int]:
    """Return the strides in elements of a packed array of shape (N, C, H, W), laid out as ``"NCHW"`` or ``"NHWC"``."""
    _, channels, rows, cols = shape
    if layout == "NHWC":
        return [channels * rows * cols, 1, cols * channels, channels]
    return [channels * rows * cols, rows * cols, cols, 1]
