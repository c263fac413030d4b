"""Plans of all ranks against each other: what fits together, and what is refused before the first message."""

from __future__ import annotations

import pytest

from climb.distributed.agreement import PlanError, check
from climb.distributed.execution import ordered
from climb.distributed.plan import (
    COMPUTE,
    MESSAGES,
    After,
    Barrier,
    Collective,
    Copy,
    Exchange,
    Part,
    Place,
    Receive,
    Send,
)

ARRAYS = {"a": ((8,), "float32"), "b": ((8,), "float32"), "i": ((8,), "int32")}
A, B = Part("a", 0, 4), Part("b", 4, 4)


def refused(*plans: tuple, match: str) -> None:
    with pytest.raises(PlanError, match=match):
        check(plans, [ARRAYS] * len(plans))


def test_shares_are_consecutive_and_even() -> None:
    shares = [Place(rank, 3).share(11) for rank in range(3)]
    assert [list(one) for one in shares] == [[0, 1, 2], [3, 4, 5, 6], [7, 8, 9, 10]]
    assert [len(Place(rank, 3).share(1)) for rank in range(3)] == [0, 0, 1]
    with pytest.raises(ValueError, match="rank 3 of 3"):
        Place(3, 3)


def test_messages_of_plans_that_agree() -> None:
    plans = [(Exchange("x", (Send(A, 1 - r), Receive(B, 1 - r))), Barrier()) for r in range(2)]
    found = check(plans, [ARRAYS] * 2)
    assert [(m.label, m.source, m.target, m.nbytes, m.step) for m in found] == [("x", 0, 1, 16, 0), ("x", 1, 0, 16, 0)]


def test_send_that_nobody_receives_is_named() -> None:
    refused(
        (Exchange("x", (Send(A, 1),)),), (), match=r"rank 0 waits in x: send a\[0:4\] to rank 1\n.*rank 1 has ended"
    )


def test_two_exchanges_that_wait_for_each_other_are_named() -> None:
    plans = [(Exchange("out", (Send(A, 1 - r),)), Exchange("in", (Receive(B, 1 - r),))) for r in range(2)]
    refused(*plans, match=r"deadlock: no rank can go on\n  rank 0 waits in out: send .*\n  rank 1 waits in out: send")


@pytest.mark.parametrize(
    ("taken", "said"),
    [
        (Part("b", 0, 3), r"rank 0 sends 4 float32 \(a\[0:4\]\) and rank 1 receives 3 float32"),
        (Part("i", 0, 4), "rank 1 receives 4 int32"),
        (Part("b", 5, 4), r"rank 1, step 0 \(x\): b\[5:9\] of an array of 8 elements"),
        (Part("c", 0, 4), "there is no array 'c'; there are a, b, i"),
    ],
)
def test_messages_that_do_not_agree(taken: Part, said: str) -> None:
    refused((Exchange("x", (Send(A, 1),)),), (Exchange("x", (Receive(taken, 0),)),), match=said)


def test_collective_operations_that_do_not_agree() -> None:
    def reduce(part: Part) -> Collective:
        return Collective("allReduce", part, part)

    refused(
        (reduce(A),), (reduce(Part("a", 0, 2)),), match="rank 0 calls allReduce, 4, float32, and rank 1 allReduce, 2"
    )
    refused((reduce(A),), (Barrier(),), match="rank 0 calls allReduce, 4, float32, and rank 1 barrier")
    refused((reduce(A),), (), match="rank 0 waits in allReduce\n  rank 1 has ended")
    refused((Collective("allGather", A, B),) * 1, (Collective("allGather", A, B),), match="a.0:4. to b.4:8. on 2 ranks")
    refused((Copy(A, Part("b", 0, 3)),), match="3 elements to 4")


def test_orders_keep_streams_and_waits_and_nothing_else() -> None:
    x, y = Exchange("x", ()), Exchange("y", ())
    first, second = Copy(A, B), Copy(B, A)
    plan = (x, first, After(COMPUTE, MESSAGES), second, y)
    assert ordered(plan, "early") == (x, y, first, After(COMPUTE, MESSAGES), second)
    assert ordered(plan, "late") == (first, x, After(COMPUTE, MESSAGES), second, y)
    assert ordered(plan, "written") == plan
    waits = (first, After(MESSAGES, COMPUTE), x)
    assert ordered(waits, "early") == ordered(waits, "late") == waits
