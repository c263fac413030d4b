"""A function of PyTorch as a CUDA graph: its kernels start one after the other without the host."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from climb.bench.libraries.choosing import Prepared
from climb.bench.libraries.description import Description

#: Calls before the capture: libraries choose algorithms and allocate, compilers compile.
WARMING = 3


def captured(function: Callable[[], Any], target: Any, chosen: Description | None = None) -> Prepared:
    """Return a launch that replays ``function``, and copies its result to ``target``; all on PyTorch's streams."""
    import torch

    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.no_grad(), torch.cuda.stream(stream):
        for _ in range(WARMING):
            target.copy_(function())
    torch.cuda.current_stream().wait_stream(stream)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.no_grad(), torch.cuda.graph(graph):
        target.copy_(function())
    return Prepared(graph.replay, chosen or {})
