"""The network: the U-Net of Diffusion Policy, layer by layer, with the place of each parameter, and its reference.

It is ``ConditionalUnet1D`` of github.com/real-stanford/diffusion_policy (diffusion_policy/model/diffusion/
conditional_unet1d.py and conv1d_components.py; Chi et al., Diffusion Policy, RSS 2023, arXiv:2303.04137) as its
notebook for states builds it: ``input_dim=2``, ``global_cond_dim=10``, ``down_dims=(256, 512, 1024)``,
``kernel_size=5``, ``n_groups=8``, scale and shift predicted by FiLM, 16 steps. Of the three skip connections that it
stores it reads two, and it samples up after both blocks of the way up.

``width`` is the channels of the first level, 256 in the paper; a narrower network has the same layers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

import numpy as np

ACTION = 2  # numbers of an action
STEPS = 16  # of the sequence of actions
OBSERVATION = 10  # numbers of two observations
GROUPS = 8  # of a norm
TAPS = 5
EPSILON = 1e-5  # PyTorch's, added to the variance
ALIGNED = 32  # floats: each tensor of parameters starts at a multiple


@dataclass(frozen=True)
class Tensor:
    """A tensor of parameters: its name, its shape, PyTorch's fan-in for its random values, where it starts."""

    name: str
    shape: tuple[int, ...]
    fan_in: int
    offset: int

    @property
    def size(self) -> int:
        return int(np.prod(self.shape))


@dataclass(frozen=True)
class Convolution:
    """A convolution: ``kind`` is same (stride 1), down (stride 2) or up (transposed, stride 2); lengths in and out."""

    name: str
    kind: str
    i: int
    o: int
    taps: int
    length: int

    @property
    def stride(self) -> int:
        return 2 if self.kind == "down" else 1

    @property
    def length_out(self) -> int:
        return {"same": self.length, "down": self.length // 2, "up": self.length * 2}[self.kind]

    @property
    def shape(self) -> tuple[int, int, int]:
        """The weights' shape, as PyTorch has it: a transposed convolution has the inputs first."""
        return (self.i, self.o, self.taps) if self.kind == "up" else (self.o, self.i, self.taps)

    @property
    def products(self) -> int:
        """Products of a pass of one sample, those with zeros beyond the row left out."""
        along = {"same": self.length, "down": self.length_out, "up": self.length}[self.kind] * self.taps
        reach = self.taps // 2
        outside = {"same": reach * (reach + 1), "down": 1, "up": 2}[self.kind]
        return self.i * self.o * (along - outside)


@dataclass(frozen=True)
class Block:
    """A residual block: convolution, norm, Mish, FiLM, convolution, norm, Mish, plus its input.

    The input goes through a convolution with one tap where it has other channels. ``skip`` is the number of the stored
    tensor that is concatenated to it, if any; ``stores`` that under which the result is kept.
    """

    name: str
    i: int
    o: int
    length: int
    skip: int | None = None
    stores: int | None = None

    @property
    def first(self) -> Convolution:
        return Convolution(f"{self.name}.0", "same", self.i, self.o, TAPS, self.length)

    @property
    def second(self) -> Convolution:
        return Convolution(f"{self.name}.1", "same", self.o, self.o, TAPS, self.length)

    @property
    def residual(self) -> Convolution | None:
        return None if self.i == self.o else Convolution(f"{self.name}.r", "same", self.i, self.o, 1, self.length)


class Network:
    """The layers in order, and the offsets of all parameters in one flat array of float32."""

    def __init__(self, width: int) -> None:
        self.width = width
        self.condition = width + OBSERVATION
        one, two, four = width, 2 * width, 4 * width
        #: Blocks and, between them, the convolutions that change the length.
        self.layers: tuple[Block | Convolution, ...] = (
            Block("down0.0", ACTION, one, STEPS),
            Block("down0.1", one, one, STEPS),
            Convolution("down0.sample", "down", one, one, 3, STEPS),
            Block("down1.0", one, two, STEPS // 2),
            Block("down1.1", two, two, STEPS // 2, stores=0),
            Convolution("down1.sample", "down", two, two, 3, STEPS // 2),
            Block("down2.0", two, four, STEPS // 4),
            Block("down2.1", four, four, STEPS // 4, stores=1),
            Block("mid.0", four, four, STEPS // 4),
            Block("mid.1", four, four, STEPS // 4),
            Block("up0.0", 2 * four, two, STEPS // 4, skip=1),
            Block("up0.1", two, two, STEPS // 4),
            Convolution("up0.sample", "up", two, two, 4, STEPS // 4),
            Block("up1.0", 2 * two, one, STEPS // 2, skip=0),
            Block("up1.1", one, one, STEPS // 2),
            Convolution("up1.sample", "up", one, one, 4, STEPS // 2),
        )
        self.last = Convolution("last.0", "same", one, one, TAPS, STEPS)
        self.out = Convolution("last.1", "same", one, ACTION, 1, STEPS)
        self.tensors: dict[str, Tensor] = {}
        self.size = 0
        self._linear("step.0", width, four)
        self._linear("step.1", four, width)
        for layer in self.layers:
            if isinstance(layer, Convolution):
                self._convolution(layer)
                continue
            self._convolution(layer.first, norm=True)
            self._linear(f"{layer.name}.film", self.condition, 2 * layer.o)
            if layer.residual is not None:
                self._convolution(layer.residual)
            self._convolution(layer.second, norm=True)
        self._convolution(self.last, norm=True)
        self._convolution(self.out)

    @property
    def blocks(self) -> tuple[Block, ...]:
        return tuple(layer for layer in self.layers if isinstance(layer, Block))

    @property
    def convolutions(self) -> tuple[Convolution, ...]:
        """All convolutions, in order."""
        found: list[Convolution] = []
        for layer in self.layers:
            parts = (layer.first, layer.residual, layer.second) if isinstance(layer, Block) else (layer,)
            found += [part for part in parts if part is not None]
        return (*found, self.last, self.out)

    @property
    def linears(self) -> tuple[tuple[int, int], ...]:
        """Inputs and outputs of all linear layers."""
        film = tuple((self.condition, 2 * block.o) for block in self.blocks)
        return ((self.width, 4 * self.width), (4 * self.width, self.width), *film)

    @property
    def products(self) -> int:
        """Products of one pass of one sample."""
        return sum(c.products for c in self.convolutions) + sum(i * o for i, o in self.linears)

    @property
    def parameters(self) -> int:
        """Parameters, without what fills the gaps between tensors."""
        return sum(tensor.size for tensor in self.tensors.values())

    def offset(self, name: str) -> int:
        """The offset of a tensor in the flat array, in floats."""
        return self.tensors[name].offset

    def split(self, flat: np.ndarray) -> dict[str, np.ndarray]:
        """Views of all tensors in a flat array."""
        return {t.name: flat[t.offset : t.offset + t.size].reshape(t.shape) for t in self.tensors.values()}

    def random(self, rng: np.random.Generator) -> np.ndarray:
        """Random parameters: PyTorch's uniform ones by fan-in, norms around one and zero so that mistakes show."""
        flat = np.zeros(self.size, np.float32)
        for name, values in self.split(flat).items():
            tensor = self.tensors[name]
            bound = tensor.fan_in**-0.5 if tensor.fan_in else 0.25
            values[...] = (2 * rng.random(tensor.shape, dtype=np.float32) - 1) * np.float32(bound)
            if name.endswith(".gamma"):
                values += 1
        return flat

    def _add(self, name: str, shape: tuple[int, ...], fan_in: int) -> None:
        tensor = Tensor(name, shape, fan_in, self.size)
        self.tensors[name] = tensor
        self.size += -(-tensor.size // ALIGNED) * ALIGNED

    def _linear(self, name: str, i: int, o: int) -> None:
        self._add(f"{name}.weight", (o, i), i)
        self._add(f"{name}.bias", (o,), i)

    def _convolution(self, conv: Convolution, norm: bool = False) -> None:
        fan_in = conv.shape[1] * conv.taps
        self._add(f"{conv.name}.weight", conv.shape, fan_in)
        self._add(f"{conv.name}.bias", (conv.o,), fan_in)
        if norm:
            self._add(f"{conv.name}.gamma", (conv.o,), 0)
            self._add(f"{conv.name}.beta", (conv.o,), 0)


@cache
def network(width: int) -> Network:
    """The network of a width."""
    return Network(width)


def reference(
    width: int, parameters: np.ndarray, sample: np.ndarray, timestep: np.ndarray, observation: np.ndarray
) -> np.ndarray:
    """A pass in float64: ``sample`` (batch, 16, 2), ``timestep`` (batch,), ``observation`` (batch, 10) to the noise."""
    net = network(width)
    p = net.split(parameters)
    cond = mish(_condition(net, p, timestep, observation))
    x = np.swapaxes(sample, 1, 2).astype(np.float64)
    stored: dict[int, np.ndarray] = {}
    for layer in net.layers:
        if isinstance(layer, Convolution):
            x = _convolve(p, layer, x)
            continue
        if layer.skip is not None:
            x = np.concatenate((x, stored[layer.skip]), axis=1)
        film = (cond @ _double(p, f"{layer.name}.film.weight").T + _double(p, f"{layer.name}.film.bias"))[..., None]
        y = _normalised(p, layer.first, x)
        y = _normalised(p, layer.second, y * film[:, : layer.o] + film[:, layer.o :])
        x = y + (x if layer.residual is None else _convolve(p, layer.residual, x))
        if layer.stores is not None:
            stored[layer.stores] = x
    return np.swapaxes(_convolve(p, net.out, _normalised(p, net.last, x)), 1, 2)


def mish(x: np.ndarray) -> np.ndarray:
    """x tanh(log(1 + exp(x))), Misra 2019 (arXiv:1908.08681)."""
    return x * np.tanh(np.logaddexp(0.0, x))


def embedding(width: int, timestep: np.ndarray) -> np.ndarray:
    """The sines, then the cosines, of the time step at ``width / 2`` frequencies from 1 to 1 / 10000: float64."""
    half = width // 2
    angles = timestep[:, None] * np.exp(np.arange(half) * -(np.log(10000.0) / (half - 1)))
    return np.concatenate((np.sin(angles), np.cos(angles)), axis=1)


def _condition(net: Network, p: Mapping[str, np.ndarray], step: np.ndarray, observation: np.ndarray) -> np.ndarray:
    hidden = mish(embedding(net.width, step) @ _double(p, "step.0.weight").T + _double(p, "step.0.bias"))
    embedded = hidden @ _double(p, "step.1.weight").T + _double(p, "step.1.bias")
    return np.concatenate((embedded, observation.astype(np.float64)), axis=1)


def _normalised(p: Mapping[str, np.ndarray], conv: Convolution, x: np.ndarray) -> np.ndarray:
    """Convolution, group norm, Mish."""
    x = _convolve(p, conv, x)
    grouped = x.reshape(len(x), GROUPS, -1)
    grouped = grouped - grouped.mean(axis=2, keepdims=True)
    grouped /= np.sqrt((grouped**2).mean(axis=2, keepdims=True) + EPSILON)
    gamma, beta = (_double(p, f"{conv.name}.{one}")[:, None] for one in ("gamma", "beta"))
    return mish(grouped.reshape(x.shape) * gamma + beta)


def _convolve(p: Mapping[str, np.ndarray], conv: Convolution, x: np.ndarray) -> np.ndarray:
    weight = p[f"{conv.name}.weight"]
    total = np.zeros((len(x), conv.o, conv.length_out)) + _double(p, f"{conv.name}.bias")[:, None]
    for t in range(conv.taps):
        taps = weight[:, :, t].astype(np.float64)
        if conv.kind == "up":  # position p adds to 2 p + t - 1
            first = 1 if t == 0 else 0
            last = conv.length - 1 if t == 3 else conv.length
            total[:, :, 2 * first + t - 1 : 2 * last + t - 2 : 2] += taps.T @ x[:, :, first:last]
        else:
            padded = np.pad(x, ((0, 0), (0, 0), (conv.taps // 2,) * 2))
            total += taps @ padded[:, :, t : t + conv.length : conv.stride]
    return total


def _double(p: Mapping[str, np.ndarray], name: str) -> np.ndarray:
    return p[name].astype(np.float64)
