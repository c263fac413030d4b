"""Run a program as several ranks, on a GPU each, and watch them: ``climb launch``, or ``python -m climb.launch``.

Each rank is a process with the variables that torchrun sets too (RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR,
MASTER_PORT), so a program for one also runs under the other; ``climb.distributed.rank.connect()`` reads them, and those
of mpirun and Slurm. When a rank dies, or waits too long for another, all are ended, and the message names the rank and
what it did. Without a GPU the ranks are threads of one process, whose NCCL is the stand-in.
"""

from __future__ import annotations

import contextlib
import json
import os
import runpy
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from climb import paths
from climb.distributed.rank import STATUS

#: Seconds that the other ranks may still take to report after a rank has failed.
GRACE = 2.0
#: If a rank says that it waits, and is silent for this many seconds, the run hangs. A rank gives up by itself before
#: that, unless the call in which it waits does not return; one that says it is more patient gets ``GRACE`` seconds
#: more.
SILENCE = 25.0
_POLL = 0.1


def launch(
    ranks: int,
    program: str,
    arguments: Sequence[str] = (),
    module: bool = False,
    silence: float = SILENCE,
    processes: bool = False,
) -> int:
    """Run a program on this number of ranks. Returns the exit status of the first rank that failed, or 0.

    ``program`` is a file, or with ``module`` the name of a module. ``silence``: seconds without a sign of life after
    which a rank hangs. ``processes``: start a process for each rank even without a GPU for each.
    """
    if not processes and _emulated():
        return _threads(ranks, module, program, list(arguments))
    command = [sys.executable, *(["-m"] if module else []), program, *arguments]
    with contextlib.ExitStack() as stack:
        watched = stack.enter_context(_ranks(command, ranks))
        return _watch(*watched, silence=silence)


def _emulated() -> bool:
    from climb.bench.cuda import backend

    return backend == "emulator"


# Ranks as processes


@contextlib.contextmanager
def _ranks(command: list[str], ranks: int) -> Iterator[tuple[list[subprocess.Popen], Path]]:
    """Start all ranks; end them all, whatever happens."""
    processes: list[subprocess.Popen] = []
    with tempfile.TemporaryDirectory(prefix="climb-ranks-") as folder:
        variables = {
            "WORLD_SIZE": str(ranks),
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(_free_port() - 1),
            "CLIMB_JOB": secrets.token_hex(8),
            # A process that is given a file looks for modules beside that file, not where this one found climb.
            "PYTHONPATH": os.pathsep.join(filter(None, (str(paths.PACKAGE.parent), os.environ.get("PYTHONPATH")))),
            STATUS: folder,
            # NVLink multicast (NVLS) reserves resources of the whole host; a reader with a host of their own may turn
            # it on.
            "NCCL_NVLS_ENABLE": os.environ.get("NCCL_NVLS_ENABLE", "0"),
        }
        try:
            for rank in range(ranks):
                own = {**os.environ, **variables, "RANK": str(rank), "LOCAL_RANK": str(rank)}
                processes.append(subprocess.Popen(command, env=own, start_new_session=True))
            yield processes, Path(folder)
        finally:
            for process in processes:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(process.pid, signal.SIGKILL)
            for process in processes:
                process.wait()


def _free_port() -> int:
    """Return a port that is free now; ranks take it a moment later."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def _watch(processes: list[subprocess.Popen], folder: Path, silence: float) -> int:
    while True:
        states = [process.poll() for process in processes]
        if all(state == 0 for state in states):
            return 0
        failed = [rank for rank, state in enumerate(states) if state not in (None, 0)]
        if failed:
            _let_finish(processes)
            return _report(processes, folder, failed[0])
        silent = [rank for rank, said in _said(folder).items() if said["waits"] and _age(said) > _limit(said, silence)]
        if any(states[rank] is None for rank in silent):
            return _report(processes, folder, None)
        time.sleep(_POLL)


def _let_finish(processes: list[subprocess.Popen]) -> None:
    deadline = time.monotonic() + GRACE
    while time.monotonic() < deadline and any(process.poll() is None for process in processes):
        time.sleep(_POLL)


def _said(folder: Path) -> dict[int, dict[str, Any]]:
    """Return the last message of each rank, by rank."""
    return {int(path.stem): json.loads(path.read_text(encoding="utf-8")) for path in folder.glob("*.json")}


def _age(said: dict[str, Any]) -> float:
    return time.time() - said["since"]


def _limit(said: dict[str, Any], silence: float) -> float:
    return max(silence, said.get("patience", 0.0) + GRACE)


def _report(processes: list[subprocess.Popen], folder: Path, first: int | None) -> int:
    """Report how each rank ended, and return the exit status."""
    said = _said(folder)
    waits = {rank for rank, one in said.items() if one["waits"]}
    running = [rank for rank, process in enumerate(processes) if process.poll() is None and rank not in waits]
    if first is not None:
        print(f"climb.launch: rank {first} {_end(processes[first].returncode)}; all ranks are ended", file=sys.stderr)
    if first is None or first in waits:
        hung = f"rank {', '.join(map(str, running))} did not come" if running else "the ranks wait for each other"
        print(f"climb.launch: {hung}; all ranks are ended", file=sys.stderr)
    for rank, process in enumerate(processes):
        one = said.get(rank)
        does = f"{'waited in' if one['waits'] else 'last did'}: {one['what']}, {_age(one):.1f} s ago" if one else ""
        state = "was running" if process.poll() is None else _end(process.returncode)
        print(f"  rank {rank} {state}{'; it ' + does if does else ''}", file=sys.stderr)
    return processes[first].returncode if first is not None and processes[first].returncode > 0 else 1


def _end(status: int) -> str:
    if status >= 0:
        return f"ended with status {status}"
    return f"was killed by {signal.Signals(-status).name}"


# Ranks as threads


def _threads(ranks: int, module: bool, program: str, arguments: Sequence[str]) -> int:
    from climb.fake_cupy.ranks import Deadlock, RankFailed, run_ranks

    sys.argv = [program, *arguments]
    if not module:
        sys.path.insert(0, str(Path(program).resolve().parent))
    text = None if module else Path(program).read_text(encoding="utf-8")

    def run(rank: int) -> None:
        if module:
            runpy.run_module(program, run_name="__main__")
        else:
            exec(compile(text, program, "exec"), {"__name__": "__main__", "__file__": program})

    try:
        run_ranks(run, ranks)
    except (Deadlock, RankFailed) as error:
        own = getattr(error, "error", None)
        if isinstance(own, SystemExit) and not own.code:
            return 0
        if own is not None:
            traceback.print_exception(own)
        print(f"climb.launch: {error}", file=sys.stderr)
        return 1
    return 0
