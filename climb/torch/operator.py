"""The operator: registration, dispatch, gradients.

``conv1d`` has the signature of ``torch.nn.functional.conv1d``. Layers of the U-Net at one sample run the book's kernel,
on the current stream and without a copy; ``climb.torch.dispatch`` has the rule, and PyTorch's own kernel computes
everything else. It is differentiable, compiles with ``torch.compile`` without a graph break, and can be captured into a
CUDA graph after one call of the same shape. Under autocast, PyTorch casts a convolution's operands, and computes it.
Where there is no GPU, a small layer runs on the emulator. To install it in a clone: ``pip install '.[torch]'``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from climb.bench.cuda import backend, cp
from climb.torch.dispatch import Call, plain_numbers, prepared, refusal

__all__ = ["conv1d"]

_NAMES = "input", "weight", "bias", "output"


def conv1d(
    input: torch.Tensor,  # PyTorch's names
    weight: torch.Tensor,
    bias: torch.Tensor | None = None,
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] | str = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
) -> torch.Tensor:
    """Compute a convolution: ``input`` (batch, i, l) or (i, l), ``weight`` (o, i / groups, k), ``bias`` (o,).

    Takes the same arguments, and raises the same errors, as ``torch.nn.functional.conv1d``.
    """
    if _fits_the_operator(input, weight, bias):
        numbers = plain_numbers(weight.shape[2], stride, padding, dilation, groups)
        if numbers is not None:
            return torch.ops.climb.conv1d(input, weight, bias, *numbers)
    return torch.nn.functional.conv1d(input, weight, bias, stride, padding, dilation, groups)


def _fits_the_operator(input: Any, weight: Any, bias: Any) -> bool:
    """Return whether the operator has values and gradients of these operands as they are.

    Under autocast, PyTorch's function casts the operands of a convolution; it also keeps the weights that it has cast.
    """
    operands = (input, weight) if bias is None else (input, weight, bias)
    return (
        all(isinstance(each, torch.Tensor) and not each.is_complex() for each in operands)
        and weight.dim() == 3
        and input.device.type in ("cpu", "cuda")
        and not torch.is_autocast_enabled(input.device.type)
    )


@torch.library.custom_op("climb::conv1d", mutates_args=())
def _conv1d(
    input: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None,
    stride: int,
    padding: int,
    dilation: int,
    groups: int,
) -> torch.Tensor:
    tensors = [each for each in (input, weight, bias) if each is not None]
    if all(each.dim() == dims for each, dims in zip(tensors[1:], (3, 1), strict=False)) and input.dim() in (2, 3):
        call = Call(
            tuple(input.shape),
            tuple(weight.shape),
            tuple(str(each.dtype).removeprefix("torch.") for each in tensors),
            stride,
            padding,
            dilation,
            groups,
        )
        fits = bias is None or tuple(bias.shape) == (weight.shape[0],)
        if fits and _is_ours(call, tensors):
            return _run(call, input, weight, bias)
    return _pytorch(input, weight, bias, stride, padding, dilation, groups)


@_conv1d.register_fake
def _shape(input: Any, weight: Any, bias: Any, stride: int, padding: int, dilation: int, groups: int) -> Any:
    return _pytorch(input, weight, bias, stride, padding, dilation, groups)


def _pytorch(input: Any, weight: Any, bias: Any, stride: int, padding: int, dilation: int, groups: int) -> Any:
    """Run PyTorch's own convolution, in the operator's layout: an operator's layout must not depend on the
    implementation."""
    return torch.nn.functional.conv1d(input, weight, bias, stride, padding, dilation, groups).contiguous()


def _is_ours(call: Call, tensors: list[torch.Tensor]) -> bool:
    devices = {each.device for each in tensors}
    on_gpu = next(iter(devices)).type == "cuda"
    return (
        len(devices) == 1
        and on_gpu == (backend == "cupy")
        and (on_gpu or next(iter(devices)).type == "cpu")
        and refusal(
            call,
            on_gpu=on_gpu,
            offsets=[each.data_ptr() for each in tensors] if on_gpu else (),
            contiguous=all(each.is_contiguous() for each in tensors),
        )
        is None
    )


def _run(call: Call, input: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
    size = call.size
    added = input.new_zeros(size["o"]) if bias is None else bias
    output = input.new_empty((*call.input[:-2], size["o"], size["l"]))
    flat = (input.view(size["i"], size["l"]), weight, added, output.view(size["o"], size["l"]))
    given = [each.detach() for each in flat]
    if backend == "cupy":
        with cp.cuda.Device(input.device.index), cp.cuda.ExternalStream(torch.cuda.current_stream().cuda_stream):
            prepared(size, dict(zip(_NAMES, (cp.from_dlpack(each) for each in given), strict=True)))()
        return output
    arrays = dict(zip(_NAMES, (cp.asarray(each.numpy()) for each in given), strict=True))
    prepared(size, arrays)()
    np.copyto(given[-1].numpy(), cp.asnumpy(arrays["output"]))
    return output


def _save(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:
    input, weight, bias, *ctx.how = inputs
    ctx.save_for_backward(input, weight)
    ctx.has_bias = bias is not None


def _gradients(ctx: Any, gradient: torch.Tensor) -> tuple[Any, ...]:
    """Return PyTorch's gradients of a convolution."""
    input, weight = ctx.saved_tensors
    stride, padding, dilation, groups = ctx.how
    batched = input if input.dim() == 3 else input[None]
    mask = [ctx.needs_input_grad[0], ctx.needs_input_grad[1], ctx.has_bias and ctx.needs_input_grad[2]]
    of_input, of_weight, of_bias = torch.ops.aten.convolution_backward(
        gradient if input.dim() == 3 else gradient[None], batched, weight, [weight.shape[0]],
        [stride], [padding], [dilation], False, [0], groups, mask,
    )  # fmt: skip
    if of_input is not None and input.dim() == 2:
        of_input = of_input[0]
    return of_input, of_weight, of_bias, None, None, None, None


_conv1d.register_autograd(_gradients, setup_context=_save)
