"""A rank by itself and in company: its connections, how long it waits, and what it reports to the process watching."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from climb.bench.cuda import cp
from climb.distributed import rank as ranks
from climb.distributed.plan import Place
from climb.distributed.rank import Rank, RankTimeout, TooFewGpus, connect
from climb.fake_cupy.ranks import run_ranks


class Comm:
    """A communicator that records what is asked of it."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def check_async_error(self) -> None:
        self.asked.append("error?")

    def abort(self) -> None:
        self.asked.append("abort")


def stream(*done: bool) -> Any:
    """A stream that answers in turn whether it is done; the last answer stays."""
    answers = list(done)
    kind = type("Stream", (), {"done": property(lambda self: answers.pop(0) if len(answers) > 1 else answers[0])})
    made = kind()
    made.synchronize = lambda: None
    return made


@pytest.mark.emulated
def test_process_that_nothing_started_is_the_only_rank(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID"):
        monkeypatch.delenv(name, raising=False)
    alone = connect()
    assert alone.place == Place(0, 1) and alone.comm is None
    alone.barrier(cp.cuda.get_current_stream())
    assert alone.largest(np.array([2.0]), None) == [2.0]


@pytest.mark.emulated
def test_rank_without_a_gpu_says_how_to_start_all_in_one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "4")
    with pytest.raises(TooFewGpus, match=r"rank 1 of 4 has no GPU; .* python -m climb\.launch -n 4"):
        connect()


@pytest.mark.emulated
def test_largest_value_of_all_ranks() -> None:
    def program(number: int) -> list[float]:
        values = np.array([number, -number], np.float64)
        return connect().largest(values, cp.cuda.get_current_stream()).tolist()

    assert run_ranks(program, 3) == [[2, 0]] * 3


def test_more_ranks_than_gpus_of_a_host_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranks, "backend", "cupy")
    monkeypatch.setattr(
        ranks, "cp", SimpleNamespace(cuda=SimpleNamespace(runtime=SimpleNamespace(getDeviceCount=lambda: 2)))
    )
    for name, value in {"RANK": "2", "WORLD_SIZE": "3", "LOCAL_RANK": "2"}.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(TooFewGpus, match=r"rank 2 is number 2 on a host with 2 GPU\(s\)"):
        connect()


def test_rank_waits_until_its_stream_is_done_and_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(ranks, "backend", "cupy")
    monkeypatch.setenv(ranks.STATUS, str(tmp_path))
    comm = Comm()
    Rank(Place(1, 2), None, comm).wait(stream(False, False, True), "halos")
    assert comm.asked == ["error?", "error?"]
    said = json.loads((tmp_path / "1.json").read_text())
    assert (said["what"], said["waits"]) == ("halos", False)


def test_patience_ends_with_an_abort_and_an_error_that_names_rank_and_step(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(ranks, "backend", "cupy")
    monkeypatch.setenv(ranks.STATUS, str(tmp_path))
    comm = Comm()
    with pytest.raises(RankTimeout, match="rank 0 waited 0 s for the others in: halos"):
        Rank(Place(0, 2), None, comm, patience=0.01).wait(stream(False), "halos")
    assert comm.asked[-1] == "abort" and json.loads((tmp_path / "0.json").read_text())["waits"]
