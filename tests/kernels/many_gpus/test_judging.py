"""The exercise of the chapter on many GPUs: the skeleton deadlocks, and solutions of two kinds pass."""

from __future__ import annotations

from typing import Any

from kernels.many_gpus.judging import judge


def skeleton(nccl: Any, comm: Any, rank: int, ranks: int, mine: Any, theirs: Any) -> None:
    after, before = (rank + 1) % ranks, (rank - 1) % ranks
    comm.send(mine.data.ptr, mine.size, nccl.NCCL_FLOAT32, after, 0)
    comm.recv(theirs.data.ptr, theirs.size, nccl.NCCL_FLOAT32, before, 0)


def grouped(nccl: Any, comm: Any, rank: int, ranks: int, mine: Any, theirs: Any) -> None:
    nccl.groupStart()
    skeleton(nccl, comm, rank, ranks, mine, theirs)
    nccl.groupEnd()


def one_starts(nccl: Any, comm: Any, rank: int, ranks: int, mine: Any, theirs: Any) -> None:
    after, before = (rank + 1) % ranks, (rank - 1) % ranks
    for turn in (0, 1):
        if turn == (rank != 0):
            comm.send(mine.data.ptr, mine.size, nccl.NCCL_FLOAT32, after, 0)
        else:
            comm.recv(theirs.data.ptr, theirs.size, nccl.NCCL_FLOAT32, before, 0)


def wrong_way(nccl: Any, comm: Any, rank: int, ranks: int, mine: Any, theirs: Any) -> None:
    grouped(nccl, comm, -rank % ranks, ranks, mine, theirs)


def test_skeleton_deadlocks_and_solutions_pass() -> None:
    checks = judge(skeleton).checks
    assert all(check.wrong and check.wrong.startswith("deadlock: no rank can go on") for check in checks)
    assert judge(grouped) and judge(one_starts)


def test_wrong_data_is_told_from_a_deadlock() -> None:
    def keeps(nccl: Any, comm: Any, rank: int, ranks: int, mine: Any, theirs: Any) -> None:
        pass

    assert judge(keeps).checks[0].wrong == "rank 0 has [-1.0, -1.0, -1.0, -1.0]"
    assert not judge(wrong_way)
