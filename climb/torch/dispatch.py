"""Choose between the book's kernel and PyTorch's for a convolution, and launch the former; needs no PyTorch.

The kernel is the fastest rung of the ladder ``conv1d`` that is recorded at all of its sizes: float32, one sample,
stride 1, and the padding that keeps the length.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from climb.bench.ladder import BoundRung
from climb.bench.registry import load_ladder

LADDER, RUNG = "conv1d", "skip_halo_taps"
#: The most products for the emulator: a layer of the narrowest network takes a moment, one of the real network a
#: minute.
MOST_PRODUCTS = 1 << 18
#: Bytes to which the kernel's loads of four floats are aligned.
ALIGNED = 16


@dataclass(frozen=True)
class Call:
    """The arguments of a call of ``torch.nn.functional.conv1d``; shapes as PyTorch has them."""

    input: tuple[int, ...]
    weight: tuple[int, ...]
    dtypes: tuple[str, ...]
    stride: int
    padding: int
    dilation: int
    groups: int

    @property
    def size(self) -> dict[str, int]:
        """The ladder's size: channels in and out, length, taps."""
        return {"i": self.input[-2], "o": self.weight[0], "l": self.input[-1], "k": self.weight[2]}


def refusal(call: Call, *, on_gpu: bool, offsets: Sequence[int] = (), contiguous: bool = True) -> str | None:
    """Explain why PyTorch's kernel computes this call; None if the book's kernel does.

    ``offsets`` are the addresses of the tensors. On a GPU, the book's kernel takes only layers at which the ladder is
    recorded: others were never measured.
    """
    if set(call.dtypes) != {"float32"}:
        return "it is not float32 throughout"
    if len(call.input) == 3 and call.input[0] != 1:
        return "it has more than one sample, or none"
    if (call.stride, call.dilation, call.groups) != (1, 1, 1):
        return "stride, dilation and groups are not all 1"
    if call.input[-2] != call.weight[1]:
        return "input and weight do not fit"
    size = call.size
    if 2 * call.padding != size["k"] - 1:
        return "the output is not as long as the input"
    if 0 in size.values():
        return "it is empty"
    if not contiguous:
        return "a tensor is not contiguous"
    if any(offset % ALIGNED for offset in offsets):
        return f"a tensor is not aligned to {ALIGNED} bytes"
    ladder = load_ladder(LADDER)
    if on_gpu and size not in ladder.problem.recorded:
        return "nobody has measured a layer of this shape"
    if not on_gpu and size["i"] * size["o"] * size["l"] * size["k"] > MOST_PRODUCTS:
        return "it is too large for the emulator"
    return ladder[RUNG].rung.requires(size)


def plain_numbers(taps: int, stride: Any, padding: Any, dilation: Any, groups: Any) -> tuple[int, int, int, int] | None:
    """Return stride, padding, dilation and groups as numbers, from any form that ``torch.nn.functional.conv1d`` takes.

    A sequence of one stands for its number, ``"valid"`` for no padding, ``"same"`` for the padding that keeps the
    length. None if a number cannot express the argument, e.g. a padding that differs at the two ends, or if PyTorch
    raises an error.
    """
    stride, dilation = (_alone(each) for each in (stride, dilation))
    if padding == "same" and stride == 1 and _is_number(dilation) and dilation > 0 and dilation * (taps - 1) % 2 == 0:
        padding = dilation * (taps - 1) // 2
    padding = 0 if padding == "valid" else _alone(padding)
    numbers = stride, padding, dilation, groups
    return numbers if all(map(_is_number, numbers)) else None


def _alone(value: Any) -> Any:
    """Return the only element of a list or tuple; everything else unchanged."""
    return value[0] if isinstance(value, list | tuple) and len(value) == 1 else value


def _is_number(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def kernel() -> BoundRung:
    """Return the rung that runs."""
    return load_ladder(LADDER)[RUNG]


def prepared(size: dict[str, int], arrays: dict[str, Any]) -> Callable[[], None]:
    """Return the rung's launch on arrays of the device: ``input`` (i, l), ``weight``, ``bias``, ``output`` (o, l)."""
    return kernel().prepare(arrays, size)
