"""Check results: outputs are poisoned before the run and compared with the reference so that NaN fails.

The error of an output is ``max |out - reference| / max |reference|``, a normwise error. An element must be NaN exactly
where the reference is NaN. Infinities must agree; a value whose reference overflows the output's type may be that
infinity. If a problem has a ``reference_magnitude``, the componentwise error can be computed as well: the largest
``|out - reference| / magnitude`` of any element, ``|AB - C| / (|A| |B|)`` for a matrix product (Higham, "Accuracy and
Stability of Numerical Algorithms", 2nd edition, section 3.5).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from climb import emulator
from climb.bench.cuda import backend, cp
from climb.bench.device_reference import DeviceReference, poisoned_on_device
from climb.bench.differences import component_errors, largest_finite, relative_errors
from climb.bench.ladder import BoundRung, Ladder
from climb.bench.problem import Peer, Problem, Size, size_label
from climb.bench.threads import on_all_cores

#: Elements compared at a time; the float64 temporaries of one chunk stay below 100 MB.
CHUNK = 1 << 20

#: Quiet NaNs with payloads that no computation produces: they distinguish unwritten elements from computed NaNs.
_NAN_PATTERNS = {2: 0x7E5A, 4: 0x7FE5A5A5, 8: 0x7FFCA5A5A5A5A5A5}


class WrongResult(AssertionError):
    """A kernel's output differs from the reference; the message says where it first differs, by how much and how
    often."""


@dataclass(frozen=True)
class Comparison:
    """One output against its reference; ``first_wrong`` and ``first_unwritten`` are flat indices or None."""

    error: float
    wrong: int = 0
    unwritten: int = 0
    first_wrong: int | None = None
    first_unwritten: int | None = None


@dataclass(frozen=True)
class Verification:
    """A correct result: the error of each output, and the tolerance that it meets.

    ``component_errors`` has the componentwise errors, if they were requested and the problem has magnitudes.
    """

    name: str
    size: dict[str, Any]
    errors: dict[str, float]
    tolerance: float
    component_errors: Mapping[str, float] = field(default_factory=dict)

    @property
    def max_rel_error(self) -> float:
        """The largest error of any output, relative to the largest reference value of that output."""
        return max(self.errors.values(), default=0.0)

    @property
    def max_component_error(self) -> float | None:
        """The largest componentwise error of any output; None without such errors."""
        return max(self.component_errors.values(), default=None)


@dataclass(frozen=True)
class Case:
    """A problem at one size: the inputs on the device, and the reference outputs on the host."""

    problem: Problem
    size: dict[str, Any]
    device_inputs: dict[str, Any]
    reference: dict[str, np.ndarray]
    magnitudes: Callable[[], dict[str, np.ndarray]] = dict
    on_device: DeviceReference = field(default_factory=DeviceReference, repr=False)

    @classmethod
    def make(
        cls,
        ladder: Ladder,
        size: Size,
        seed: int = 0,
        inputs: Mapping[str, np.ndarray] | None = None,
        ahead: Mapping[str, dict[str, np.ndarray]] | None = None,
    ) -> Case:
        """Make the inputs (random, or those given), copy them to the device and compute the reference.

        ``ahead`` is the part of the case that ``climb.bench.cases_ahead`` has made already.
        """
        if ahead is not None:
            device = {a.name: cp.asarray(ahead["inputs"][a.name]) for a in ladder.problem.inputs}
            return cls(ladder.problem, dict(size), device, ahead["reference"], lambda: ahead["magnitudes"])
        host = dict(inputs) if inputs is not None else ladder.inputs(size, seed)
        with np.errstate(all="ignore"):
            reference = ladder.problem.reference(host, size)
        device = {a.name: cp.asarray(host[a.name]) for a in ladder.problem.inputs}
        given = ladder.problem.reference_magnitude
        # They cost as much as the reference, so they are computed at their first use.
        magnitudes = functools.cache(lambda: given(host, size) if given else {})
        return cls(ladder.problem, dict(size), device, reference, magnitudes)

    def arrays(self) -> dict[str, Any]:
        """Return every argument by name on the device, with new, poisoned outputs."""
        outputs = {a.name: _poisoned_there(a.extents(self.size), a.dtype) for a in self.problem.outputs}
        return {**self.device_inputs, **outputs}

    def check(
        self, arrays: Mapping[str, Any], name: str, tolerance: float, *, componentwise: bool = False
    ) -> Verification:
        """Compare the outputs in ``arrays`` with the reference. Raises :class:`WrongResult`."""
        errors = {}
        by_terms = {}
        magnitudes = self.magnitudes() if componentwise else {}
        for argument in self.problem.outputs:
            found = self._check_one(argument.name, arrays[argument.name], name, tolerance, magnitudes)
            errors[argument.name] = found[0]
            if found[1] is not None:
                by_terms[argument.name] = found[1]
        return Verification(name, dict(self.size), errors, tolerance, by_terms)

    def _check_one(
        self, output: str, there: Any, name: str, tolerance: float, magnitudes: Mapping[str, np.ndarray]
    ) -> tuple[float, float | None]:
        """Return the error of an output, and its componentwise error if there are magnitudes. Raises WrongResult."""
        expected = np.asarray(self.reference[output])
        error = self.on_device.error(output, there, expected, tolerance)
        component = None
        if output in magnitudes and error is not None:
            component = self.on_device.component_error(output, there, expected, magnitudes[output])
        if error is not None and (component is not None or output not in magnitudes):
            return error, component
        out = cp.asnumpy(there)
        if expected.shape != out.shape:
            raise WrongResult(
                f"{self.problem.name}: the reference of '{output}' has shape {expected.shape}, the output {out.shape}"
            )
        found = compare(out, expected, tolerance)
        if found.wrong or not (found.error <= tolerance):
            where = f"{self.problem.name} '{name}' at {size_label(self.size)}"
            raise WrongResult(f"{where}: {_explain(output, out, expected, found, tolerance)}")
        return found.error, component_error(out, expected, magnitudes[output]) if output in magnitudes else None


def verify(
    candidate: BoundRung | Peer,
    size: Size,
    seed: int = 0,
    *,
    ladder: Ladder | None = None,
    inputs: Mapping[str, np.ndarray] | None = None,
) -> Verification:
    """Run a rung, or a peer of ``ladder``, once on poisoned outputs and compare it with the reference.

    ``inputs`` replaces the random inputs (host arrays by name). Raises :class:`WrongResult`, and
    ArgumentError when the rung does not take the size.
    """
    ladder = candidate.ladder if isinstance(candidate, BoundRung) else ladder
    if ladder is None:
        raise TypeError("verify needs ladder=... to check a peer")
    case = Case.make(ladder, size, seed, inputs)
    arrays = case.arrays()
    launch = candidate.prepare(arrays, size)
    return run_and_check(case, candidate, arrays, launch)


def run_and_check(
    case: Case,
    candidate: BoundRung | Peer,
    arrays: Mapping[str, Any],
    launch: Callable[[], None],
    *,
    componentwise: bool = False,
) -> Verification:
    """Launch once and check; with ``componentwise``, also compute errors element by element.

    Raises :class:`WrongResult`, and on the emulator its errors, races included.
    """
    with emulator.checking(emulator.ALL_CHECKS):
        launch()
    own = (candidate if isinstance(candidate, Peer) else candidate.rung).tolerance
    tolerance = (own or case.problem.tolerance)(case.size)
    return case.check(arrays, candidate.name, tolerance, componentwise=componentwise)


def poisoned(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """Return an array full of the value that means "never written": a NaN for floats, bytes 0xA5 for the rest."""
    kind = np.dtype(dtype)
    return np.full(shape, _pattern(kind), dtype=f"u{kind.itemsize}").view(kind)


def _poisoned_there(shape: tuple[int, ...], dtype: str) -> Any:
    """Like ``poisoned``, but on the device."""
    kind = np.dtype(dtype)
    if backend == "cupy" and kind.itemsize in (1, 2, 4, 8):
        return poisoned_on_device(shape, kind, _pattern(kind))
    return cp.asarray(poisoned(shape, dtype))


def poison(array: Any) -> None:
    """Fill an array of the device, in place, with what ``poisoned`` is full of."""
    array.view(f"u{array.dtype.itemsize}").fill(_pattern(array.dtype))


def is_poisoned(array: np.ndarray) -> bool:
    """Return whether every element of an array still has the value that ``poisoned`` fills it with."""
    unsigned = array.view(f"u{array.itemsize}") if array.itemsize in (1, 2, 4, 8) else array
    return array.size > 0 and array.dtype.kind in "iuf" and bool((unsigned == _pattern(array.dtype)).all())


def compare(out: np.ndarray, reference: np.ndarray, tolerance: float) -> Comparison:
    """Compare an output with its reference of the same shape, chunk by chunk.

    An element is wrong when it is off by more than ``tolerance`` times the largest finite reference value, or when only
    one of it and its reference is NaN or infinite.
    """
    flat, expected = out.reshape(-1), reference.reshape(-1)

    def differs(start: int) -> bool:
        return not np.array_equal(flat[start : start + CHUNK], expected[start : start + CHUNK])

    def look(start: int) -> Comparison:
        got, want = flat[start : start + CHUNK], expected[start : start + CHUNK]
        errors = relative_errors(np, got, want, scale)
        bad = ~(errors <= tolerance)
        never = bad & (got.view(f"u{got.itemsize}") == _pattern(got.dtype))
        return Comparison(
            float(errors.max()),
            int(bad.sum()),
            int(never.sum()),
            start + int(bad.argmax()) if bad.any() else None,
            start + int(never.argmax()) if never.any() else None,
        )

    # An output may have hundreds of millions of elements.
    starts = range(0, flat.size, CHUNK)
    apart = [start for start, other in zip(starts, on_all_cores(differs, starts, most=16), strict=True) if other]
    # The scale takes a pass over the whole reference; a bit-equal output does not need it.
    scale = _scale(expected, out.dtype) if apart else 0.0
    found = on_all_cores(look, apart, most=16)
    return Comparison(
        max((c.error for c in found), default=0.0),
        sum(c.wrong for c in found),
        sum(c.unwritten for c in found),
        next((c.first_wrong for c in found if c.first_wrong is not None), None),
        next((c.first_unwritten for c in found if c.first_unwritten is not None), None),
    )


def component_error(out: np.ndarray, reference: np.ndarray, magnitude: np.ndarray) -> float:
    """Return the largest ``|out - reference| / magnitude`` of any finite element; inf if only the magnitude is zero.

    All three have one shape. ``magnitude`` is the sum of the absolute values of the terms that make each element.
    """
    flat, expected, terms = out.reshape(-1), reference.reshape(-1), magnitude.reshape(-1)

    def largest(start: int) -> float:
        return float(component_errors(np, *(array[start : start + CHUNK] for array in (flat, expected, terms))).max())

    return max(on_all_cores(largest, range(0, flat.size, CHUNK), most=16), default=0.0)


def _pattern(dtype: np.dtype) -> int:
    if dtype.kind == "f":
        return _NAN_PATTERNS[dtype.itemsize]
    return int.from_bytes(b"\xa5" * dtype.itemsize, "little")


def _scale(expected: np.ndarray, dtype: np.dtype) -> float:
    """Return the largest absolute reference value that is finite in the output's type."""
    return max((largest_finite(np, chunk, dtype) for chunk in _chunks(expected)), default=0.0)


def _chunks(array: np.ndarray) -> Iterator[np.ndarray]:
    for start in range(0, array.size, CHUNK):
        yield array[start : start + CHUNK]


def _explain(name: str, out: np.ndarray, expected: np.ndarray, found: Comparison, tolerance: float) -> str:
    first = found.first_wrong
    where = _index(first, out.shape)
    text = (
        f"output '{name}' is wrong in {found.wrong} of {out.size} elements (error {found.error:.3g}, "
        f"tolerance {tolerance:.3g}); "
        f"first at {name}[{where}]: got {out.flat[first]!s}, expected {expected.flat[first]!s}"
    )
    if found.unwritten:
        where = _index(found.first_unwritten, out.shape)
        text += f"; {found.unwritten} of them were never written, first {name}[{where}]"
    return text


def _index(flat: int | None, shape: tuple[int, ...]) -> str:
    return ", ".join(str(int(i)) for i in np.unravel_index(flat or 0, shape))
