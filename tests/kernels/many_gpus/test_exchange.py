"""Messages between GPUs, on the stand-in: they arrive, and nothing else is read or written.

In a file of its own, so that `climb mutate`, which gives a chapter's tests two minutes, need not run all others first.
"""

from __future__ import annotations

import pytest

from climb.bench.cuda import backend
from climb.distributed.registry import load_shared_ladder
from climb.distributed.running import run

pytestmark = pytest.mark.skipif(backend != "emulator", reason="ranks in one process need the stand-in")

EXCHANGE = load_shared_ladder("exchange")


@pytest.mark.parametrize("name", EXCHANGE.names)
@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_messages_arrive(name: str, ranks: int) -> None:
    for size in EXCHANGE.problem.check:
        run(EXCHANGE, name, size, ranks)
