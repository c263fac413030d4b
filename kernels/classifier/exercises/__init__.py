"""The exercises and exhibits of the chapter on the classifier."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from climb.bench.exercise import Claim, Exercise, Finding, at_most, exhibit_reader
from climb.bench.problem import Argument, Launch, Problem, Size, ceil_div

HERE = Path(__file__).parent
FLOAT, WARP, THREADS, SAMPLES = 4, 32, 128, 4


#: The source of an exhibit of the chapter, by name.
exhibit = exhibit_reader(__file__)


def no_atomics() -> Claim:
    """Claim that nothing is added by an atomic."""

    def test(counters: Any) -> Finding:
        found = [a for a in counters.lines if a.kind.endswith("atomic")]
        return Finding(not found, f"an atomic in line {found[0].line}: {found[0].text.strip()}" if found else "none")

    return Claim("atomics", "none", test)


def weights_once(per_input: int) -> Claim:
    """Claim that lanes load at most ``per_input`` floats from global memory for each weight."""

    def test(counters: Any) -> Finding:
        lanes = sum(a.lanes for a in counters.lines if a.kind == "global load")
        weights = int(np.prod([SIZES[-1]["inputs"], SIZES[-1]["outputs"]]))
        return Finding(lanes <= per_input * weights, f"{lanes / weights:.3g} floats are loaded for each weight")

    return Claim("global load", f"at most {per_input}", test)


SIZES = ({"inputs": 1, "outputs": 1}, {"inputs": 40, "outputs": 7}, {"inputs": 203, "outputs": 33})


def _tolerance(terms: int) -> float:
    """The ladder's tolerance: every addition rounds, and the errors add up like a random walk."""
    return 4 * 2.0**-24 * max(1.0, terms**0.5)


def _weights(size: Size, rng: np.random.Generator) -> np.ndarray:
    return rng.standard_normal((size["outputs"], size["inputs"]), dtype=np.float32)


def _bytes(size: Size, samples: int = 1) -> int:
    return FLOAT * (size["inputs"] * size["outputs"] + samples * (size["inputs"] + size["outputs"]))


gradient = Exercise(
    name="gradient",
    problem=Problem(
        name="layer_gradient",
        title="Gradient of a fully connected layer with respect to its input",
        size_keys=("inputs", "outputs"),
        arguments=(
            Argument("weights", "float32", ("outputs", "inputs")),
            Argument("error", "float32", ("outputs",)),
            Argument("gradient", "float32", ("inputs",), "output"),
        ),
        make_inputs=lambda size, rng: {
            "weights": _weights(size, rng),
            "error": rng.standard_normal(size["outputs"], dtype=np.float32),
        },
        reference=lambda inputs, size: {"gradient": inputs["error"].astype(np.float64) @ inputs["weights"]},
        tolerance=lambda size: _tolerance(size["outputs"]),
        flops=lambda size: 2 * size["inputs"] * size["outputs"],
        bytes=_bytes,
        headline=(),
        check=(),
    ),
    # Warps for the skeleton's warp per input: the solution's threads find more than they need.
    launches=lambda size: (
        Launch(
            "classifier_gradient",
            (ceil_div(size["inputs"] * WARP, THREADS),),
            (THREADS,),
            ("weights", "error", "gradient", np.int32(size["inputs"]), np.int32(size["outputs"])),
        ),
    ),
    sizes=SIZES,
    folder=HERE,
    claims=(at_most("global load", 5),),  # four, and one more where a row starts inside a sector
    hints=(
        "Which index of `weights` varies between neighbouring lanes, and how far apart are two neighbouring "
        "values of it?",
        "Let lanes differ in `i` instead of `row`. Each thread then walks down one column on its own, so the "
        "exchange between lanes is no longer needed.",
    ),
)

quarters = Exercise(
    name="quarters",
    problem=Problem(
        name="layer_quarters",
        title="Fully connected layer, a block per output",
        size_keys=("inputs", "outputs"),
        arguments=(
            Argument("weights", "float32", ("outputs", "inputs")),
            Argument("input", "float32", ("inputs",)),
            Argument("output", "float32", ("outputs",), "output"),
        ),
        make_inputs=lambda size, rng: {
            "weights": _weights(size, rng),
            "input": rng.standard_normal(size["inputs"], dtype=np.float32),
        },
        reference=lambda inputs, size: {"output": inputs["weights"].astype(np.float64) @ inputs["input"]},
        tolerance=lambda size: _tolerance(size["inputs"]),
        flops=lambda size: 2 * size["inputs"] * size["outputs"],
        bytes=_bytes,
        headline=(),
        check=(),
    ),
    launches=lambda size: (
        Launch(
            "classifier_quarters",
            (size["outputs"],),
            (THREADS,),
            ("weights", "input", "output", np.int32(size["inputs"])),
        ),
    ),
    sizes=SIZES,
    folder=HERE,
    claims=(no_atomics(),),
    hints=(
        "Four warps add to one word of global memory without waiting for each other. Which of them may run "
        "before the zero is stored, and which reads may another warp's store overtake?",
        "Give each warp a word of its own in shared memory. After a barrier, one thread adds the four words "
        "in a fixed order and stores the output once.",
    ),
)

samples = Exercise(
    name="samples",
    problem=Problem(
        name="layer_samples",
        title="Fully connected layer, four samples",
        size_keys=("inputs", "outputs"),
        arguments=(
            Argument("weights", "float32", ("outputs", "inputs")),
            Argument("input", "float32", (lambda size: SAMPLES, "inputs")),
            Argument("output", "float32", (lambda size: SAMPLES, "outputs"), "output"),
        ),
        make_inputs=lambda size, rng: {
            "weights": _weights(size, rng),
            "input": rng.standard_normal((SAMPLES, size["inputs"]), dtype=np.float32),
        },
        reference=lambda inputs, size: {"output": inputs["input"].astype(np.float64) @ inputs["weights"].T},
        tolerance=lambda size: _tolerance(size["inputs"]),
        flops=lambda size: 2 * SAMPLES * size["inputs"] * size["outputs"],
        bytes=lambda size: _bytes(size, SAMPLES),
        headline=(),
        check=(),
    ),
    launches=lambda size: (
        Launch(
            "classifier_samples",
            (ceil_div(size["outputs"] * WARP, THREADS),),
            (THREADS,),
            ("weights", "input", "output", np.int32(size["inputs"]), np.int32(size["outputs"])),
        ),
    ),
    sizes=SIZES,
    folder=HERE,
    claims=(weights_once(1 + SAMPLES),),
    hints=(
        "The loop over samples is the outer one. Which of the two loaded values does not depend on the sample?",
        "Swap the two loops. Each thread then needs one sum per sample, in a small array whose loops are "
        "unrolled so that it stays in registers.",
    ),
)
