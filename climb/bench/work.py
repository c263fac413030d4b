"""The least work of a computation: bytes from and to memory, and operations of each pipe of an SM.

A :class:`Work` times the ceilings of a GPU is a limit (``climb.bench.roofline``). A problem's work follows from its
definition; a rung that takes a shortcut, or uses another pipe, declares its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Work:
    """The least work at one size.

    ``read`` and ``written`` are bytes of device memory. The rest counts for all threads together: ``fma`` multiply-adds
    in float32, ``fp32`` single float32 operations (an addition takes the FMA pipe as long as a multiply-add does),
    ``int32`` integer operations, where a multiply-add counts as one, ``shared`` bytes read from or written to shared
    memory, ``issue`` instructions of a warp, and ``tensor`` the FLOPs of tensor cores by the type of their inputs:
    ``{"tf32": 2 * m * n * k}``.
    """

    read: int = 0
    written: int = 0
    fma: int = 0
    fp32: int = 0
    int32: int = 0
    shared: int = 0
    issue: int = 0
    tensor: Mapping[str, int] = field(default_factory=dict)

    @property
    def pipes(self) -> dict[str, int]:
        """The work of each pipe that has any, in the unit that its ceiling counts: see :data:`CEILING_OF`.

        Multiply-adds and multiply-adds of integers count as two operations there, as data sheets count them. A single
        operation occupies a lane of its pipe as long as a multiply-add, so it counts as two as well.
        """
        found = {
            "fma": 2 * (self.fma + self.fp32),
            "int32": 2 * self.int32,
            "shared": self.shared,
            "issue": self.issue,
            **{f"tensor_{kind}": flops for kind, flops in self.tensor.items()},
        }
        return {pipe: amount for pipe, amount in found.items() if amount}


#: The ceiling of each pipe; other ``tensor_<type>`` have ``tensor_<type>_tflop_s``.
CEILING_OF = {
    "fma": "fma_tflop_s",
    "int32": "int32_top_s",
    "shared": "shared_tb_s",
    "issue": "issue_ginst_s",
    "tensor_int8": "tensor_int8_top_s",
}
#: The pipes in words, for figures and tables.
PIPE_NAMES = {
    "fma": "FMA pipe",
    "int32": "integer multiply-adds",
    "shared": "shared memory",
    "issue": "issue slots",
}


def ceiling_of(pipe: str) -> str:
    """Return the ceiling of a pipe: ``fma_tflop_s`` for ``fma``."""
    return CEILING_OF.get(pipe, f"{pipe}_tflop_s")


def pipe_name(pipe: str) -> str:
    """Return the name of a pipe in words: ``FMA pipe``, ``tensor cores (tf32)``."""
    return PIPE_NAMES.get(pipe) or f"tensor cores ({pipe.removeprefix('tensor_')})"
