"""NCCL's calls between ranks of one process: results, messages, and what would hang or corrupt data on a GPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from climb import fake_cupy as cp
from climb.emulator import EmulatorError
from climb.fake_cupy.ranks import Deadlock, RankFailed, run_ranks

nccl = cp.cuda.nccl
F32 = nccl.NCCL_FLOAT32


def on_ranks(program: Callable[[Any, int], Any], ranks: int) -> list[Any]:
    """Call ``program(comm, rank)`` on every rank."""
    identity = nccl.get_unique_id()
    return run_ranks(lambda rank: program(nccl.NcclCommunicator(ranks, identity, rank), rank), ranks)


def floats(*values: float) -> Any:
    return cp.asarray(np.array(values, np.float32))


class TestOperations:
    def test_group_exchanges_both_ways(self) -> None:
        def program(comm: Any, rank: int) -> Any:
            mine, theirs = floats(rank, rank + 10), cp.empty(2, dtype=cp.float32)
            nccl.groupStart()
            comm.send(mine.data.ptr, 2, F32, 1 - rank, 0)
            comm.recv(theirs.data.ptr, 2, F32, 1 - rank, 0)
            nccl.groupEnd()
            return cp.asnumpy(theirs).tolist(), comm.messages

        (zero, _), (one, messages) = on_ranks(program, 2)
        assert (zero, one) == ([1, 11], [0, 10])
        assert [(m.kind, m.source, m.target, m.nbytes) for m in messages] == [("send", 0, 1, 8), ("send", 1, 0, 8)]

    @pytest.mark.parametrize("op, expected", [("SUM", [6, 9]), ("MAX", [3, 4]), ("MIN", [1, 2]), ("PROD", [6, 24])])
    def test_all_reduce_leaves_the_result_on_every_rank(self, op: str, expected: list[float]) -> None:
        def program(comm: Any, rank: int) -> Any:
            mine = floats(rank + 1, rank + 2)
            comm.allReduce(mine.data.ptr, mine.data.ptr, 2, F32, getattr(nccl, f"NCCL_{op}"), 0)
            return cp.asnumpy(mine).tolist(), [m.nbytes for m in comm.messages]

        assert on_ranks(program, 3) == [(expected, [10, 10, 10])] * 3  # by a ring: 2 * (3 - 1) / 3 of 8 bytes, rounded

    def test_scatter_gather_and_broadcast(self) -> None:
        def program(comm: Any, rank: int) -> Any:
            mine, part, whole = floats(rank, rank + 1), cp.empty(1, dtype=cp.float32), cp.empty(2, dtype=cp.float32)
            comm.reduceScatter(mine.data.ptr, part.data.ptr, 1, F32, nccl.NCCL_SUM, 0)
            comm.allGather(part.data.ptr, whole.data.ptr, 1, F32, 0)
            comm.bcast(mine.data.ptr, 2, F32, 1, 0)
            return [cp.asnumpy(one).tolist() for one in (part, whole, mine)]

        assert on_ranks(program, 2) == [[[1], [1, 3], [1, 2]], [[3], [1, 3], [1, 2]]]

    def test_unwritten_bytes_stay_unwritten_on_the_other_side(self) -> None:
        def program(comm: Any, rank: int) -> None:
            data = cp.empty(4, dtype=cp.float32)
            if rank == 0:
                data[:2] = 1.0
                comm.send(data.data.ptr, 4, F32, 1, 0)
            else:
                comm.recv(data.data.ptr, 4, F32, 0, 0)
                code = 'extern "C" __global__ void read(float* a, float* b) { b[threadIdx.x] = a[threadIdx.x]; }'
                out = cp.empty(4, dtype=cp.float32)
                cp.RawKernel(code, "read")((1,), (2,), (data, out))
                cp.RawKernel(code, "read")((1,), (4,), (data, out))

        with pytest.raises(RankFailed, match="rank 1 failed") as failed:
            on_ranks(program, 2)
        assert isinstance(failed.value.error, EmulatorError) and "nothing has written" in str(failed.value)

    def test_one_process_may_hold_all_ranks(self) -> None:
        comms = nccl.NcclCommunicator.initAll([0, 1])
        data = [floats(1), floats(2)]
        nccl.groupStart()
        for comm, one in zip(comms, data, strict=True):
            comm.allReduce(one.data.ptr, one.data.ptr, 1, F32, nccl.NCCL_SUM, 0)
        nccl.groupEnd()
        assert [float(one[0]) for one in data] == [3, 3]
        with pytest.raises(nccl.NcclError, match="would wait for ever: allReduce"):
            comms[0].allReduce(data[0].data.ptr, data[0].data.ptr, 1, F32, nccl.NCCL_SUM, 0)


class TestDeadlocks:
    def test_two_sends_without_a_group_wait_for_each_other(self) -> None:
        def program(comm: Any, rank: int) -> None:
            data = floats(0)
            comm.send(data.data.ptr, 1, F32, 1 - rank, 0)
            comm.recv(data.data.ptr, 1, F32, 1 - rank, 0)

        with pytest.raises(Deadlock) as found:
            on_ranks(program, 2)
        assert found.value.waiting == {0: "send(1 float32, to rank 1)", 1: "send(1 float32, to rank 0)"}

    def test_missing_receive_is_named(self) -> None:
        def program(comm: Any, rank: int) -> None:
            data = floats(0)
            if rank == 0:
                comm.send(data.data.ptr, 1, F32, 1, 0)

        with pytest.raises(Deadlock, match=r"rank 0 waits in send\(1 float32, to rank 1\)$"):
            on_ranks(program, 2)

    def test_collective_that_a_rank_leaves_out_is_named(self) -> None:
        def program(comm: Any, rank: int) -> None:
            data = floats(0)
            if rank != 1:
                comm.allReduce(data.data.ptr, data.data.ptr, 1, F32, nccl.NCCL_SUM, 0)

        with pytest.raises(Deadlock) as found:
            on_ranks(program, 3)
        assert set(found.value.waiting) == {0, 2}

    def test_communicator_waits_for_all_ranks(self) -> None:
        identity = nccl.get_unique_id()
        with pytest.raises(Deadlock, match=r"NcclCommunicator, which ranks \[1\] have not made"):
            run_ranks(lambda rank: rank == 1 or nccl.NcclCommunicator(2, identity, rank), 2)


class TestRefused:
    @pytest.mark.parametrize(
        ("zero", "one", "said"),
        [
            (
                lambda c, p: c.send(p, 2, F32, 1, 0),
                lambda c, p: c.recv(p, 1, F32, 0, 0),
                "sends 2 float32.*receives 1 ",
            ),
            (
                lambda c, p: c.send(p, 1, F32, 1, 0),
                lambda c, p: c.recv(p, 1, nccl.NCCL_INT32, 0, 0),
                "sends 1 float32.*receives 1 int32",
            ),
            (
                lambda c, p: c.allReduce(p, p, 2, F32, nccl.NCCL_SUM, 0),
                lambda c, p: c.bcast(p, 2, F32, 0, 0),
                r"different operations: rank 0 allReduce\(2 float32, sum\), rank 1 broadcast",
            ),
            (
                lambda c, p: c.allReduce(p, p, 2, F32, nccl.NCCL_SUM, 0),
                lambda c, p: c.allReduce(p, p, 2, F32, nccl.NCCL_MAX, 0),
                "sum.*max",
            ),
            (lambda c, p: c.send(p, 3, F32, 1, 0), lambda c, p: None, "12 bytes at .*; only 8 bytes are left"),
            (lambda c, p: c.send(p, 1, F32, 2, 0), lambda c, p: None, "there is no rank 2; there are 2"),
        ],
    )
    def test_calls_that_do_not_agree(self, zero: Any, one: Any, said: str) -> None:
        def program(comm: Any, rank: int) -> None:
            data = floats(1, 2)
            (zero, one)[rank](comm, data.data.ptr)

        with pytest.raises(RankFailed, match=said) as failed:
            on_ranks(program, 2)
        assert isinstance(failed.value.error, nccl.NcclError)

    def test_communicators_that_do_not_agree(self) -> None:
        identity = nccl.get_unique_id()
        with pytest.raises(RankFailed, match="3 ranks join one of 2"):
            run_ranks(lambda rank: nccl.NcclCommunicator(2 + rank, identity, rank), 2)
        with pytest.raises(RankFailed, match="a second rank 0 joins"):
            run_ranks(lambda rank: nccl.NcclCommunicator(2, nccl_identity, 0), 2)
        with pytest.raises(nccl.NcclError, match=r"start them with python -m climb.launch -n 2"):
            nccl.NcclCommunicator(2, nccl.get_unique_id(), 0)


nccl_identity = nccl.get_unique_id()


def test_ranks_take_turns_in_the_same_way_every_time() -> None:
    def course() -> list[int]:
        seen: list[int] = []

        def program(comm: Any, rank: int) -> None:
            data = floats(rank)
            for _ in range(3):
                seen.append(rank)
                comm.allReduce(data.data.ptr, data.data.ptr, 1, F32, nccl.NCCL_SUM, 0)

        on_ranks(program, 3)
        return seen

    assert course() == course()
    assert sorted(course()) == [0, 0, 0, 1, 1, 1, 2, 2, 2]
