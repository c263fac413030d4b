"""What a cold cache costs: the states are brought about in turn, slow rungs are left out, stale times are refused."""

from __future__ import annotations

import json

import pytest

from kernels.lab import cold, load_ladder, records

LADDER = load_ladder("read")
SIZE = LADDER.problem.check[-1]


class FakeGpu:
    """A GPU on which a launch takes as long as the state of its cache says."""

    def __init__(self, **seconds: float) -> None:
        self.by_state = {"kept": 1e-6, **seconds}
        self.state = "kept"
        self.log: list[str] = []

    def bring(self, state: str) -> None:
        self.state = state

    def seconds(self, launch) -> float:
        launch()
        self.log.append(self.state)
        return self.by_state[self.state]


def test_every_state_is_timed_after_it_was_brought_about() -> None:
    gpu = FakeGpu(written=3e-6, read=2e-6)
    launches: list[int] = []
    found = cold.times(lambda: launches.append(1), gpu, samples=5)
    assert found == {"written": 3e-6, "read": 2e-6, "kept": 1e-6}
    assert gpu.log == ["kept"] + [state for state in cold.STATES for _ in range(5)]
    assert len(launches) == 1 + len(gpu.log)


def test_a_launch_for_which_the_cache_does_not_matter_is_left_out() -> None:
    assert cold.times(lambda: None, FakeGpu(kept=2 * cold.LONGEST)) is None


@pytest.fixture
def committed(tmp_path, monkeypatch):
    """Times of one rung in a folder of records."""
    rung = next(iter(LADDER))
    data = {
        "device": {"name": "A GPU"},
        "date": "2026-01-01",
        "command": "python -m kernels.lab.cold read",
        "points": [cold._point(rung, SIZE, {"written": 3e-6, "read": 2e-6, "kept": 1e-6})],
    }
    path = tmp_path / "gpu" / "cold" / "read.json"
    path.parent.mkdir(parents=True)
    monkeypatch.setattr(records, "RECORDS", tmp_path)

    def write(**changed) -> str:
        data["points"][0].update(changed)
        path.write_text(json.dumps(data), encoding="utf-8")
        return rung.name

    return write


def test_what_was_committed_is_read(committed) -> None:
    name = committed()
    assert cold.cold_states("read", "gpu").at(name, SIZE)["read"] == 2e-6


def test_times_of_a_changed_kernel_are_refused(committed) -> None:
    name = committed(source_sha256="0" * 64)
    with pytest.raises(LookupError, match=rf"stale cold states of {name}.*kernels\.lab\.cold read"):
        cold.cold_states("read", "gpu").at(name, SIZE)


def test_what_is_not_there_is_named(committed) -> None:
    committed()
    with pytest.raises(LookupError, match="no cold states of another"):
        cold.cold_states("read", "gpu").at("another", SIZE)
    with pytest.raises(LookupError, match="no cold states of fma"):
        cold.cold_states("fma", "gpu")
