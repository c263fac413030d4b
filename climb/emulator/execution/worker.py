"""A worker process: it does jobs until the process that started it closes the pipe, or ends."""

from __future__ import annotations

import mmap
import os
import pickle
import signal

import numpy as np

from ..simt.code import TranslatedKernel
from ..translation import cache
from .batches import keep_freed_pages
from .jobs import Job, Origin, perform
from .pipes import Pipes

MOST_KERNELS = 64  # remembered by a worker


def main(jobs: int, results: int, memory: int) -> None:
    """Run jobs until the pipe is closed. `jobs` and `results`: descriptors of pipes; `memory`: of the file that holds
    the shared memory."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is handled by the process that waits for this one
    pipes = Pipes(jobs, results)
    keep_freed_pages()
    parent = os.getppid()
    kernels: dict[Origin, TranslatedKernel] = {}

    def alone() -> bool:
        return os.getppid() != parent

    shared = np.zeros(0, np.uint8)
    pipes.send(cache.version())
    while True:
        try:
            job: Job = pickle.loads(pipes.receive())
        except EOFError:
            return
        if shared.size != os.fstat(memory).st_size:
            shared = map_shared(memory)
        if len(kernels) > MOST_KERNELS:
            kernels.clear()
        try:
            answer = pickle.dumps(perform(job, shared, kernels, alone), pickle.HIGHEST_PROTOCOL)
        except Exception:  # an error of the kernel, or too little memory: the other process runs these batches itself
            answer = pickle.dumps(None)
        try:
            pipes.send(answer)
        except BrokenPipeError:
            return


def map_shared(memory: int) -> np.ndarray:
    """Map the whole shared memory: uint8. It is unmapped when the array is no longer used."""
    return np.frombuffer(mmap.mmap(memory, os.fstat(memory).st_size), np.uint8)
