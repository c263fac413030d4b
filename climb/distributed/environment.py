"""The rank of a process, read from the environment variables of the program that started it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from climb.distributed.plan import Place

#: The port on which rank 0 waits for the others, if ``MASTER_PORT`` does not say.
PORT = 29531
#: For each way to start ranks: the variables of rank, number of ranks, rank on this host.
_NAMES = {
    "python -m climb.launch or torchrun": ("RANK", "WORLD_SIZE", "LOCAL_RANK"),
    "Open MPI": ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"),
    "MPICH": ("PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID"),
    "Slurm": ("SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID"),
}


class NotStarted(RuntimeError):
    """The variables do not say which rank this process is; the message says what is missing."""


@dataclass(frozen=True)
class Started:
    """The way a process was started: ``place`` among all ranks, ``local`` rank on its host, and the address of rank
    0."""

    place: Place
    local: int
    host: str = "127.0.0.1"
    port: int = PORT


def started(variables: Mapping[str, str] | None = None) -> Started:
    """Return how this process was started; a process that was not started as a rank is the only one.

    Raises :class:`NotStarted` if the variables contradict each other or one is missing.
    """
    have = os.environ if variables is None else variables
    for starter, (rank, ranks, local) in _NAMES.items():
        if rank not in have:
            continue
        try:
            place = Place(int(have[rank]), int(have[ranks]))
            # MPICH names the local rank in some of its versions only; one host is then assumed.
            return Started(place, int(have.get(local, have[rank])), _host(have), _port(have))
        except KeyError as error:
            raise NotStarted(f"{rank} is set, as {starter} does, but not {error}") from None
        except ValueError as error:
            raise NotStarted(f"{rank}={have[rank]}, {ranks}={have.get(ranks)}: {error}") from None
    return Started(Place(0, 1), 0)


def _host(have: Mapping[str, str]) -> str:
    return have.get("MASTER_ADDR") or have.get("SLURM_LAUNCH_NODE_IPADDR") or "127.0.0.1"


def _port(have: Mapping[str, str]) -> int:
    """Return a port beside ``MASTER_PORT``: torchrun itself listens on that one."""
    return int(have["MASTER_PORT"]) + 1 if "MASTER_PORT" in have else PORT
