"""PyTorch's work as a CUDA graph, with a double of PyTorch that only remembers what a graph has captured."""

from __future__ import annotations

import contextlib
import sys
import types

import pytest

from climb.bench.libraries.captured import captured


class Graph:
    """The work that ``torch.cuda.graph`` has captured, to be replayed."""

    def __init__(self):
        self.work = []

    def replay(self):
        for each in self.work:
            each()


class Target:
    """An array of one number, whose copies run at once, or later where a graph is being captured."""

    def __init__(self):
        self.value, self.capturing, self.computed = None, None, 0

    def copy_(self, function):
        self.computed += 1
        if self.capturing is None:
            self.value = function()
        else:
            self.capturing.work.append(lambda: self.copy_(function))


@pytest.fixture
def target(monkeypatch):
    """A target of the double of PyTorch."""
    one = Target()

    @contextlib.contextmanager
    def graph(made):
        one.capturing = made
        yield
        one.capturing = None

    stream = types.SimpleNamespace(wait_stream=lambda other: None)
    cuda = types.SimpleNamespace(
        Stream=lambda: stream, current_stream=lambda: stream, stream=lambda _: contextlib.nullcontext(),
        synchronize=lambda: None, CUDAGraph=Graph, graph=graph,
    )  # fmt: skip
    monkeypatch.setitem(sys.modules, "torch", types.SimpleNamespace(cuda=cuda, no_grad=contextlib.nullcontext))
    return one


@pytest.mark.parametrize("chosen", [None, {"choice": "this way"}])
def test_a_launch_replays_what_was_captured_after_calls_that_warm_up(target, chosen) -> None:
    given = [1]
    prepared = captured(lambda: lambda: 10 * given[0], target, chosen)
    assert (target.value, target.computed, prepared.chosen) == (10, 4, chosen or {})
    given[0] = 2
    prepared()
    assert (target.value, target.computed) == (20, 5)
