"""The launches of a foreign program as the bench describes launches, and its buffers by name."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import numpy as np

from climb.bench.problem import Launch
from climb.toolchain import Compiled
from climb.validation.agreement import code_sha256
from climb.validation.foreign.program import Empty, Steps


def buffers(steps: Steps) -> dict[str, np.ndarray | Empty]:
    """Return the buffers of a program by name, in the order in which the launches first use them."""
    found: dict[int, np.ndarray | Empty] = {}
    for one in steps.launches:
        found |= {id(arg): arg for arg in one.args if isinstance(arg, np.ndarray | Empty) and id(arg) not in found}
    return {f"buffer {number}": each for number, each in enumerate(found.values())}


def contents(held: dict[str, np.ndarray | Empty]) -> dict[str, np.ndarray]:
    """Return the buffers as arrays; those that are uninitialised before the first launch are zeros."""
    return {name: np.zeros(each.shape, each.dtype) if isinstance(each, Empty) else each for name, each in held.items()}


def launches(steps: Steps) -> list[Launch]:
    """Return the launches; their arguments name the buffers, and numbers have the types of the kernels' parameters."""
    names = {id(each): name for name, each in buffers(steps).items()}
    return [
        Launch(
            one.kernel,
            *(tuple(size) if isinstance(size, tuple) else (size,) for size in (one.grid, one.block)),
            tuple(names[id(arg)] if id(arg) in names else _number(arg) for arg in one.args),
            one.shared,
        )
        for one in steps.launches
    ]


def _number(value: object) -> np.generic:
    if isinstance(value, np.generic):
        return value
    return np.float32(value) if isinstance(value, float) else np.int32(value)


def codes(steps: Steps, compiled: Compiled) -> list[str]:
    """Return a hash of what the counts of each launch depend on: PTX, launch configuration and inputs."""
    inputs = contents(buffers(steps))
    return [code_sha256(compiled, one, inputs) for one in launches(steps)]


def outputs_sha256(outputs: Iterable[np.ndarray]) -> str:
    """Return the hash of the bytes of a program's results, in the order of ``Steps.expected``."""
    digest = hashlib.sha256()
    for each in outputs:
        digest.update(np.ascontiguousarray(each).tobytes())
    return digest.hexdigest()
