"""The measuring process's calls to the GPU, on a double of CuPy and of PyTorch."""

from __future__ import annotations

import contextlib
import sys
from types import SimpleNamespace

import pytest

from climb.bench.measuring_gpu import Gpu


@pytest.fixture
def called(monkeypatch) -> list[str]:
    """The calls so far; ``synchronize`` raises once "fault" is among them."""
    calls: list[str] = []

    def synchronize() -> None:
        calls.append("synchronize")
        if "fault" in calls:
            raise RuntimeError("an illegal memory access was encountered")

    @contextlib.contextmanager
    def stream(handle: int):
        calls.append(f"stream {handle}")
        yield
        calls.append(f"end of stream {handle}")

    pool = SimpleNamespace(free_all_blocks=lambda: calls.append("free"))
    cuda = SimpleNamespace(Device=lambda: SimpleNamespace(synchronize=synchronize), ExternalStream=stream)
    monkeypatch.setitem(sys.modules, "cupy", SimpleNamespace(cuda=cuda, get_default_memory_pool=lambda: pool))
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    return calls


def use_torch(monkeypatch, calls: list[str]) -> None:
    """PyTorch has been imported from here on."""
    cuda = SimpleNamespace(
        empty_cache=lambda: calls.append("torch: free"), ExternalStream=lambda handle: handle,
        stream=lambda handle: contextlib.nullcontext(calls.append(f"torch: stream {handle}")),
    )  # fmt: skip
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(cuda=cuda))


def test_a_gpu_is_lost_once_it_cannot_be_waited_for(called) -> None:
    assert not Gpu().is_lost()
    called.append("fault")
    assert Gpu().is_lost()
    assert called == ["synchronize", "fault", "synchronize"]


def test_memory_and_streams_are_also_those_of_pytorch_once_it_is_imported(called, monkeypatch) -> None:
    Gpu().release()
    with Gpu().stream(7):
        called.append("launch")
    assert called == ["free", "stream 7", "launch", "end of stream 7"]
    called.clear()
    use_torch(monkeypatch, called)
    Gpu().release()
    with Gpu().stream(7):
        called.append("launch")
    assert called == ["free", "torch: free", "stream 7", "torch: stream 7", "launch", "end of stream 7"]
