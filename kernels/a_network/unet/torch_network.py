"""The same network in PyTorch, written with its functions: what a user of PyTorch runs, and our peer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kernels.a_network.unet.network import EPSILON, GROUPS, Block, Convolution, network

#: A convolution: input, weight, bias, stride, padding.
Convolve = Callable[[Any, Any, Any, int, int], Any]


def parameters_of(width: int, flat: Any) -> dict[str, Any]:
    """Views of all tensors in a flat torch tensor of parameters."""
    return {t.name: flat[t.offset : t.offset + t.size].view(t.shape) for t in network(width).tensors.values()}


def as_product(x: Any, weight: Any, bias: Any, stride: int, padding: int) -> Any:
    """``conv1d`` as a product of matrices: one has the rows' windows as rows, the other the filters as columns."""
    import torch

    outputs, inputs, taps = weight.shape
    windows = torch.nn.functional.pad(x, (padding, padding)).unfold(2, taps, stride)
    rows = windows.permute(0, 2, 1, 3).reshape(-1, inputs * taps)
    product = torch.addmm(bias, rows, weight.view(outputs, -1).t())
    return product.view(len(x), -1, outputs).transpose(1, 2)


def forward(
    width: int, p: dict[str, Any], sample: Any, timestep: Any, observation: Any, convolve: Convolve | None = None
) -> Any:
    """A pass: ``sample`` (batch, 16, 2), ``timestep`` (batch,), ``observation`` (batch, 10) to the noise.

    ``p`` are the parameters by name. ``convolve`` replaces ``torch.nn.functional.conv1d``.
    """
    import torch
    from torch.nn import functional as f

    conv1d = convolve or f.conv1d

    def conv(layer: Convolution, x: Any) -> Any:
        weight, bias = p[f"{layer.name}.weight"], p[f"{layer.name}.bias"]
        if layer.kind == "up":
            return f.conv_transpose1d(x, weight, bias, 2, 1)
        return conv1d(x, weight, bias, layer.stride, layer.taps // 2)

    def normalised(layer: Convolution, x: Any) -> Any:
        x = f.group_norm(conv(layer, x), GROUPS, p[f"{layer.name}.gamma"], p[f"{layer.name}.beta"], EPSILON)
        return f.mish(x)

    def linear(name: str, x: Any) -> Any:
        return f.linear(x, p[f"{name}.weight"], p[f"{name}.bias"])

    def block(layer: Block, x: Any) -> Any:
        scale, shift = linear(f"{layer.name}.film", condition).unsqueeze(-1).chunk(2, dim=1)
        y = normalised(layer.second, normalised(layer.first, x) * scale + shift)
        return y + (x if layer.residual is None else conv(layer.residual, x))

    net = network(width)
    half = width // 2
    steps = torch.arange(half, device=sample.device, dtype=torch.float32)
    angles = timestep[:, None] * torch.exp(steps * -(9.210340371976184 / (half - 1)))
    embedded = linear("step.1", f.mish(linear("step.0", torch.cat((angles.sin(), angles.cos()), dim=1))))
    condition = f.mish(torch.cat((embedded, observation), dim=1))
    x = sample.transpose(1, 2)
    stored: dict[int, Any] = {}
    for layer in net.layers:
        if isinstance(layer, Convolution):
            x = conv(layer, x)
            continue
        x = block(layer, x if layer.skip is None else torch.cat((x, stored[layer.skip]), dim=1))
        if layer.stores is not None:
            stored[layer.stores] = x
    return conv(net.out, normalised(net.last, x)).transpose(1, 2)
