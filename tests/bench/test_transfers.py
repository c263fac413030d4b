"""The cost of moving arrays: the steps measured and the record's place. A double of CuPy has its own clock."""

from __future__ import annotations

import sys
from collections import Counter
from types import SimpleNamespace

import numpy as np
import pytest
from tiny_ladder import made, scale

from climb.bench import records, transfers
from climb.bench.records.kinds import TransfersRecord

#: What each call takes, in seconds.
SECONDS = {"malloc": 1, "free": 100, "set": 4, "set pinned": 2, "get": 8, "get pinned": 3}


class Gpu:
    """A GPU on which every call takes the seconds of ``SECONDS``, and 50 more the first time."""

    def __init__(self):
        self.now = 0.0
        self.calls = Counter()
        self.pinned = []
        runtime = SimpleNamespace(malloc=lambda size: self.takes("malloc"), free=lambda address: self.takes("free"))
        self.cuda = SimpleNamespace(
            runtime=runtime,
            alloc_pinned_memory=self.alloc_pinned_memory,
            Device=lambda: SimpleNamespace(synchronize=lambda: None),
        )

    def takes(self, call):
        self.calls[call] += 1
        self.now += SECONDS[call] + (50 if self.calls[call] == 1 else 0)

    def alloc_pinned_memory(self, size):
        memory = bytearray(size)
        self.pinned.append(np.frombuffer(memory, np.uint8))
        return memory

    def where(self, array):
        return " pinned" if any(np.shares_memory(array, memory) for memory in self.pinned) else ""

    def asarray(self, values):
        def set_to(other):
            np.testing.assert_array_equal(other, values)
            self.takes(f"set{self.where(other)}")

        return SimpleNamespace(set=set_to, get=lambda out: self.takes(f"get{self.where(out)}"))


def test_each_step_of_a_program_is_measured_without_its_warm_up(monkeypatch):
    gpu = Gpu()
    monkeypatch.setitem(sys.modules, "cupy", gpu)
    monkeypatch.setattr(transfers, "time", SimpleNamespace(perf_counter=lambda: gpu.now))
    found = transfers.move(scale.ladder, {"n": 5}, samples=3)
    # Memory is allocated for x and y; x goes to the device and y comes back.
    assert found == {
        "size": {"n": 5},
        "bytes_in": 20,
        "bytes_out": 20,
        "samples": {
            "allocate": [2.0] * 3,
            "to_device": [4.0] * 3,
            "to_device_pinned": [2.0] * 3,
            "to_host": [8.0] * 3,
            "to_host_pinned": [3.0] * 3,
        },
    }
    assert gpu.calls["malloc"] == gpu.calls["free"] == 2 * 4


def test_a_file_of_transfers_is_below_its_gpu_or_the_folder_given(tmp_path):
    assert transfers.transfers_path("scale", "a-gpu") == records.RECORDS / "a-gpu" / "transfers" / "scale.json"
    assert transfers.transfers_path("scale", "a-gpu", tmp_path) == tmp_path / "transfers" / "scale.json"


def test_transfers_are_read_by_size_and_refused_where_there_are_none(tmp_path, monkeypatch):
    monkeypatch.setattr(records, "RECORDS", tmp_path)
    point = {"size": {"n": 5}, "bytes_in": 20, "bytes_out": 20, "samples": {"to_host": [1.0, 9.0, 2.0]}}
    head = {"ladder": "scale", "command": "climb transfers scale", "date": "2026-11-20", "commit": "f00"}
    data = {**head, "device": made.DEVICE, "points": [point]}
    records.save(transfers.transfers_path("scale", "a-gpu"), data, TransfersRecord)
    found = transfers.transfers(scale.ladder, "a-gpu")
    assert (found.gpu, found.at({"n": 5})) == ("NVIDIA H200", {"to_host": 2.0})
    assert transfers.transfers("scale", "a-gpu") == found
    with pytest.raises(LookupError, match="no transfers of scale at n=6; on that GPU: climb transfers scale"):
        found.at({"n": 6})
    with pytest.raises(LookupError, match="no transfers of scale on another-gpu; on that GPU: climb transfers scale"):
        transfers.transfers("scale", "another-gpu")
