"""Check arguments before a launch. If a check fails, nothing runs; the error names the argument and what it expects."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from climb.bench.problem import Argument, Problem, Rung, Size, size_label


class ArgumentError(ValueError):
    """An argument that a rung does not take; the message describes it and says what was expected."""


def solve_size(problem: Problem, inputs: Mapping[str, Any], parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Find the problem's size from the shapes of its inputs and the parameters given by keyword.

    The shapes do not show which kind of data the inputs hold: such a key gets the problem's first name, unless it is a
    parameter and given. Raises :class:`ArgumentError` when a shape has the wrong number of dimensions, when two inputs
    disagree about a size key, and when a parameter is missing, unknown, not a whole number or too small.
    """
    size: dict[str, Any] = {key: names[0] for key, names in problem.kinds.items()}
    said_by: dict[str, str] = {}
    for key, value in parameters.items():
        if key not in problem.parameters:
            known = ", ".join(problem.parameters) or "none"
            raise ArgumentError(f"{problem.name} has no parameter '{key}' (parameters: {known})")
        if key in problem.kinds:
            if value not in problem.kinds[key]:
                raise ArgumentError(f"parameter '{key}' is {value!r}; expected one of {', '.join(problem.kinds[key])}")
            size[key] = value
            continue
        least = 0 if key in problem.may_be_zero else 1
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
            raise ArgumentError(f"parameter '{key}' is {value!r}; expected a whole number of at least {least}")
        size[key], said_by[key] = int(value), f"parameter '{key}'"
    for key in problem.parameters:
        if key not in size:
            raise ArgumentError(f"parameter '{key}' is missing; pass it by keyword: {key}=...")
    for argument in problem.inputs:
        shape = tuple(inputs[argument.name].shape)
        if len(shape) != len(argument.shape):
            raise ArgumentError(
                f"argument '{argument.name}' has shape {shape}; expected {len(argument.shape)} dimension(s), "
                f"{_spelled(argument)}"
            )
        for extent, key in zip(shape, argument.shape, strict=True):
            if not isinstance(key, str):
                continue
            if size.setdefault(key, extent) != extent:
                raise ArgumentError(
                    f"argument '{argument.name}' has shape {shape}, so {key} = {extent}, "
                    f"but {said_by[key]} says {key} = {size[key]}"
                )
            said_by.setdefault(key, f"argument '{argument.name}'")
    return {key: size[key] for key in problem.size_keys}


def check_device(name: str, array: Any, ndarray: type, namespace: str) -> None:
    """Raise :class:`ArgumentError` unless ``array`` is in memory that kernels can access."""
    if isinstance(array, ndarray):
        return
    kind = f"{type(array).__module__.split('.')[0]}.{type(array).__name__}"
    where = "host memory" if isinstance(array, np.ndarray) else "another place"
    raise ArgumentError(
        f"argument '{name}' is a {kind}, in {where}; expected an array on the device: "
        f"{namespace}.asarray({name}) copies it there"
    )


def check_array(problem: Problem, rung: Rung, argument: Argument, array: Any, size: Size) -> None:
    """Check dtype, shape, emptiness, contiguity and alignment of one array for one rung.

    Raises :class:`ArgumentError`. The alignment is the element type's, or what the rung requires.
    """
    name = argument.name
    if np.dtype(array.dtype) != np.dtype(argument.dtype):
        raise ArgumentError(f"argument '{name}' is {array.dtype}; expected {argument.dtype}")
    expected = argument.extents(size)
    if tuple(array.shape) != expected:
        raise ArgumentError(
            f"argument '{name}' has shape {tuple(array.shape)}; expected {expected}, {_spelled(argument)}"
        )
    if 0 in expected and not problem.accepts_empty:
        raise ArgumentError(f"argument '{name}' is empty, shape {expected}; {problem.name} needs at least one element")
    if not array.flags.c_contiguous:
        raise ArgumentError(
            f"argument '{name}' is not C-contiguous (strides {array.strides} bytes for shape {expected}); copy it first"
        )
    needed = rung.alignment.get(name, np.dtype(argument.dtype).itemsize)
    off_by = array.data.ptr % needed
    if off_by:
        raise ArgumentError(
            f"argument '{name}' starts {off_by} byte(s) past a multiple of {needed}; "
            f"rung '{rung.name}' needs {needed}-byte alignment"
        )


def check_supported(problem: Problem, rung: Rung, size: Size) -> None:
    """Raise :class:`ArgumentError` when the rung does not take this size, or the size names an unknown kind of data."""
    for key, names in problem.kinds.items():
        if size.get(key) not in names:
            raise ArgumentError(f"{problem.name}: {key} is {size.get(key)!r}; expected one of {', '.join(names)}")
    reason = rung.requires(size)
    if reason is not None:
        raise ArgumentError(f"rung '{rung.name}' of {problem.name} does not take {size_label(size)}: {reason}")


def check_no_overlap(arrays: Mapping[str, Any], outputs: tuple[Argument, ...]) -> None:
    """Raise :class:`ArgumentError` when an output overlaps another array in memory, which ``__restrict__`` forbids."""
    spans = {name: (a.data.ptr, a.data.ptr + a.nbytes) for name, a in arrays.items()}
    for output in outputs:
        start, end = spans[output.name]
        for name, (other_start, other_end) in spans.items():
            if name != output.name and start < other_end and other_start < end:
                raise ArgumentError(
                    f"output '{output.name}' overlaps argument '{name}' in memory; expected separate arrays"
                )


def _spelled(argument: Argument) -> str:
    return "(" + ", ".join(e if isinstance(e, str) else "..." for e in argument.shape) + ")"
