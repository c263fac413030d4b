"""Ranks that are processes find each other: rank 0 tells the others the identity of NCCL's communicator.

Before that, every rank names the program that it is about to run. If the programs differ, all ranks refuse before the
first message. Standard library sockets (``multiprocessing.connection``) carry these few bytes, as JSON; everything
after them is NCCL's.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from multiprocessing.connection import Client, Connection, Listener
from typing import Any

from climb.distributed.environment import Started

#: The seconds that a rank waits for the others.
PATIENCE = 20.0


class Unmatched(RuntimeError):
    """The ranks do not run the same thing, or one of them did not arrive; the message names them."""


def meet(started: Started, what: dict[str, Any], make: Callable[[], Any], patience: float = PATIENCE) -> Any:
    """Return on every rank the result of ``make()`` on rank 0 (JSON), once all ranks have arrived with the same
    ``what``.

    Raises :class:`Unmatched` on every rank.
    """
    if started.place.ranks == 1:
        return make()
    mine = {"rank": started.place.rank, "ranks": started.place.ranks, "what": what}
    if started.place.rank == 0:
        return _host(started, mine, make, patience)
    answer = _ask(started, mine, patience)
    if "refused" in answer:
        raise Unmatched(answer["refused"])
    return answer["given"]


def _key() -> bytes:
    """Return the key that keeps other users' processes out: the job's name if there is one."""
    return (os.environ.get("CLIMB_JOB") or os.environ.get("SLURM_JOB_ID") or "climb").encode()


def _host(started: Started, mine: dict[str, Any], make: Callable[[], Any], patience: float) -> Any:
    deadline = time.monotonic() + patience
    guests: dict[int, Connection] = {}
    found = {0: mine}
    with Listener((started.host, started.port), authkey=_key()) as listener:
        # The listener's own socket: its public interface has no timeout.
        listener._listener._socket.settimeout(0.2)  # type: ignore[attr-defined]
        while len(guests) < started.place.ranks - 1 and time.monotonic() < deadline:
            try:
                guest = listener.accept()
            except TimeoutError:
                continue
            said = json.loads(guest.recv_bytes())
            guests[said["rank"]], found[said["rank"]] = guest, said
        refused = _refusal(found, started.place.ranks, patience)
        answer = {"refused": refused} if refused else {"given": make()}
        for guest in guests.values():
            guest.send_bytes(json.dumps(answer).encode())
            guest.close()
    if refused:
        raise Unmatched(refused)
    return answer["given"]


def _refusal(found: dict[int, dict[str, Any]], ranks: int, patience: float) -> str:
    missing = sorted(set(range(ranks)) - set(found))
    for rank, said in sorted(found.items()):
        if said["ranks"] != ranks:
            return f"rank 0 is one of {ranks} ranks, and rank {rank} one of {said['ranks']}"
        if said["what"] != found[0]["what"]:
            return f"the ranks run different things: rank 0 {found[0]['what']}, rank {rank} {said['what']}"
    if missing:
        text = ", ".join(map(str, missing))
        return f"after {patience:.0f} s rank {text} of {ranks} had not come"
    return ""


def _ask(started: Started, mine: dict[str, Any], patience: float) -> dict[str, Any]:
    deadline = time.monotonic() + patience + 2  # rank 0 is the first to decide which ranks are missing
    while True:
        try:
            with Client((started.host, started.port), authkey=_key()) as host:
                host.send_bytes(json.dumps(mine).encode())
                if host.poll(max(0.0, deadline - time.monotonic())):
                    return json.loads(host.recv_bytes())
                raise Unmatched(f"rank 0 did not answer within {patience:.0f} s")
        except (ConnectionError, EOFError, OSError) as error:
            if time.monotonic() > deadline:
                raise Unmatched(
                    f"rank 0 had not come to {started.host}:{started.port} after {patience:.0f} s ({error})"
                ) from None
            time.sleep(0.1)
