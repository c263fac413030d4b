"""Child processes that measure."""

from __future__ import annotations

import ctypes
import signal
import sys

#: From linux/prctl.h: choose the signal that a process gets when its parent dies.
_PR_SET_PDEATHSIG = 1


def end_with_parent() -> None:
    """Have the system kill this process when its parent dies: a recording that is killed must not hold the GPU.

    It has an effect only on Linux.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
