"""The convolutions that the operator gives to the book's kernel: a rule that needs no PyTorch."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from climb import cp
from climb.torch.dispatch import Call, kernel, plain_numbers, prepared, refusal

UNET_LAYER = Call((1, 1024, 4), (1024, 1024, 5), ("float32",) * 3, 1, 2, 1, 1)
SMALL = Call((1, 8, 12), (4, 8, 3), ("float32",) * 3, 1, 1, 1, 1)


def test_layers_of_the_unet_are_ours_on_a_gpu() -> None:
    assert refusal(UNET_LAYER, on_gpu=True, offsets=(256, 512, 1024)) is None
    assert refusal(replace(UNET_LAYER, input=(1024, 4)), on_gpu=True) is None


def test_small_layers_are_ours_on_the_emulator_alone() -> None:
    assert refusal(SMALL, on_gpu=False) is None
    assert refusal(SMALL, on_gpu=True) == "nobody has measured a layer of this shape"
    assert refusal(UNET_LAYER, on_gpu=False) == "it is too large for the emulator"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"dtypes": ("float32", "float16")}, "it is not float32 throughout"),
        ({"input": (2, 8, 12)}, "it has more than one sample, or none"),
        ({"stride": 2}, "stride, dilation and groups are not all 1"),
        ({"dilation": 2}, "stride, dilation and groups are not all 1"),
        ({"groups": 2}, "stride, dilation and groups are not all 1"),
        ({"input": (1, 7, 12)}, "input and weight do not fit"),
        ({"padding": 0}, "the output is not as long as the input"),
        ({"weight": (4, 8, 4)}, "the output is not as long as the input"),
        ({"input": (1, 8, 0)}, "it is empty"),
    ],
)
def test_everything_else_is_pytorchs(change: dict, reason: str) -> None:
    assert refusal(replace(SMALL, **change), on_gpu=False) == reason


def test_what_the_kernel_cannot_load_is_pytorchs() -> None:
    assert refusal(SMALL, on_gpu=False, contiguous=False) == "a tensor is not contiguous"
    assert refusal(UNET_LAYER, on_gpu=True, offsets=(256, 260)) == "a tensor is not aligned to 16 bytes"


def test_taps_that_the_rung_refuses_are_pytorchs() -> None:
    many = Call((1, 2, 80), (2, 2, 65), ("float32",) * 2, 1, 32, 1, 1)
    assert refusal(many, on_gpu=False) == kernel().rung.requires(many.size) is not None


@pytest.mark.parametrize(
    ("given", "numbers"),
    [
        ((1, 0, 1, 1), (1, 0, 1, 1)),
        (((2,), [3], (4,), 5), (2, 3, 4, 5)),
        ((2, "valid", (3,), 1), (2, 0, 3, 1)),
        ((1, "same", 1, 1), (1, 2, 1, 1)),
        (((1,), "same", [3], 1), (1, 6, 3, 1)),
    ],
)
def test_every_form_of_an_argument_is_one_number(given: tuple, numbers: tuple[int, int, int, int]) -> None:
    assert plain_numbers(5, *given) == numbers


@pytest.mark.parametrize(
    ("taps", "given"),
    [
        (4, (1, "same", 1, 1)),  # three zeros: one end gets one more than the other
        (5, (2, "same", 1, 1)),
        (5, (1, "same", 0, 1)),
        (5, (1, "full", 1, 1)),
        (5, ((1, 1), 0, 1, 1)),
        (5, (1, (), 1, 1)),
        (5, (1, ("same",), 1, 1)),
        (5, (1, 0, 1.0, 1)),
        (5, (True, 0, 1, 1)),
        (5, (1, 0, 1, (1,))),
        (5, (1, None, 1, 1)),
    ],
)
def test_what_no_number_says_is_left_to_pytorch(taps: int, given: tuple) -> None:
    assert plain_numbers(taps, *given) is None


def test_prepared_launch_convolves() -> None:
    inputs = kernel().ladder.inputs(SMALL.size)
    arrays = {name: cp.asarray(value) for name, value in inputs.items()}
    arrays["output"] = cp.empty((4, 12), dtype=np.float32)
    prepared(SMALL.size, arrays)()
    expected = kernel().ladder.problem.reference(inputs, SMALL.size)["output"]
    np.testing.assert_allclose(cp.asnumpy(arrays["output"]), expected, rtol=1e-5, atol=1e-5)
