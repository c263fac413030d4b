"""The launches of each rung: the layers of the network in order, and the arrays between them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache

import numpy as np

from climb.bench.problem import Launch, Size, ceil_div
from kernels.a_network.unet.network import ACTION, GROUPS, OBSERVATION, STEPS, Block, Convolution, Network, network

Shapes = Mapping[str, tuple[tuple[int, ...], str]]

PLAIN_THREADS = 128
FUSED_THREADS = 256
FILMS = 64  # scales and shifts that a block makes
WARP = 32
SAME, DOWN, UP, POINT = range(4)
KINDS = {"same": SAME, "down": DOWN, "up": UP}

#: The persistent kernel: blocks for one channel of the first level, threads; shared memory for rows of weights on their
#: way and for what channels have of their own.
BLOCKS_A_CHANNEL = 0.5
PERSISTENT_THREADS = 512
PERSISTENT_BYTES = 16 * 4 * 2560 + 4 * 8192
#: Slots of the ring of output_stationary.
OUTPUT_STATIONARY_SLOTS = 8


class PerOperation:
    """A kernel for each operation; each result is an array of its own."""

    def __init__(self, size: Size) -> None:
        self.batch, self.net = size["batch"], network(size["width"])
        self.launches: list[Launch] = []
        self.shapes: dict[str, tuple[tuple[int, ...], str]] = {}
        net, width = self.net, self.net.width
        embedded = self._new(width)
        self._launch(f"unet_embed<{width}>", width, "timestep", embedded)
        hidden = self._mish(self._linear("step.0", embedded, width, 4 * width), 4 * width)
        embedded = self._linear("step.1", hidden, 4 * width, width)
        self.condition = self._mish(self._concatenate(embedded, width, "observation", OBSERVATION), width + OBSERVATION)
        x = self._new(ACTION * STEPS)
        self._launch("unet_transpose", STEPS * ACTION, "sample", x, np.int32(STEPS), np.int32(ACTION))
        stored: dict[int, str] = {}
        for layer in net.layers:
            if isinstance(layer, Convolution):
                x = self._convolve(layer, x)
                continue
            if layer.skip is not None:
                x = self._concatenate(x, layer.i * layer.length // 2, stored[layer.skip], layer.i * layer.length // 2)
            x = self._block(layer, x)
            if layer.stores is not None:
                stored[layer.stores] = x
        last = self._convolve(net.out, self._normalised(net.last, x))
        self._launch("unet_transpose", ACTION * STEPS, last, "noise", np.int32(ACTION), np.int32(STEPS))

    def _new(self, floats: int) -> str:
        name = f"result{len(self.shapes)}"
        self.shapes[name] = ((self.batch, floats), "float32")
        return name

    def _launch(self, kernel: str, threads: int, *args: str | np.generic, samples: int | None = None) -> None:
        grid = (ceil_div(threads, PLAIN_THREADS), self.batch if samples is None else samples)
        self.launches.append(Launch(kernel, grid, (PLAIN_THREADS,), args))

    def _parameters(self, layer: str, *names: str) -> tuple[str | np.generic, ...]:
        return ("parameters", *(np.int32(self.net.offset(f"{layer}.{name}")) for name in names))

    def _linear(self, name: str, x: str, inputs: int, outputs: int) -> str:
        to = self._new(outputs)
        own = self._parameters(name, "weight", "bias")
        self._launch("unet_linear", WARP * outputs, *own, x, to, np.int32(inputs), np.int32(outputs))
        return to

    def _mish(self, x: str, floats: int) -> str:
        to = self._new(floats)
        self._launch("unet_mish", self.batch * floats, x, to, np.int32(self.batch * floats), samples=1)
        return to

    def _concatenate(self, one: str, first: int, other: str, second: int) -> str:
        to = self._new(first + second)
        self._launch("unet_concatenate", first + second, one, np.int32(first), other, np.int32(second), to)
        return to

    def _convolve(self, layer: Convolution, x: str) -> str:
        to = self._new(layer.o * layer.length_out)
        kind = POINT if layer.taps == 1 else KINDS[layer.kind]
        kernel = f"unet_convolve<{kind}, {layer.length}>"
        own = self._parameters(layer.name, "weight", "bias")
        self._launch(kernel, WARP * layer.o, *own, x, to, np.int32(layer.i), np.int32(layer.o))
        return to

    def _normalised(self, layer: Convolution, x: str) -> str:
        x, to = self._convolve(layer, x), self._new(layer.o * layer.length)
        own = self._parameters(layer.name, "gamma", "beta")
        extents = np.int32(layer.o // GROUPS), np.int32(layer.length)
        self._launch("unet_norm", GROUPS * PLAIN_THREADS, *own, x, to, *extents)
        return self._mish(to, layer.o * layer.length)

    def _block(self, layer: Block, x: str) -> str:
        floats = layer.o * layer.length
        y = self._normalised(layer.first, x)
        film = self._linear(f"{layer.name}.film", self.condition, self.net.condition, 2 * layer.o)
        scaled, to = self._new(floats), self._new(floats)
        self._launch("unet_film", floats, y, film, scaled, np.int32(layer.o), np.int32(layer.length))
        y = self._normalised(layer.second, scaled)
        around = x if layer.residual is None else self._convolve(layer.residual, x)
        self._launch("unet_add", self.batch * floats, y, around, to, np.int32(self.batch * floats), samples=1)
        return to


class Before:
    """The input of a fused convolution and what is done to it first: offsets in the activations, -1 for none."""

    def __init__(self, sums: int, channels: int, length: int) -> None:
        self.sums, self.channels, self.length = sums, channels, length
        self.norm = ""
        self.film = self.residual = self.result = self.skip = -1


class Fused:
    """A kernel for each convolution; all results lie in one array."""

    def __init__(self, size: Size, pdl: bool) -> None:
        self.batch, self.net, self.pdl = size["batch"], network(size["width"]), pdl
        self.launches: list[Launch] = []
        self.floats = 0
        net, width = self.net, self.net.width
        hidden, self.embedded = self._new(4 * width), self._new(width)
        step = "parameters", "timestep", "activations", *self._parameters("step.0", "weight", "bias")
        self._launch(f"unet_step<{width}>", 4 * width // GROUPS, *step, np.int32(hidden))
        own = self._parameters("step.1", "weight", "bias")
        embedded = "parameters", "activations", np.int32(hidden), *own, np.int32(self.embedded)
        self._launch(f"unet_embedded<{width}>", width // GROUPS, *embedded)
        stored: dict[int, int] = {}
        x = self._first(net.blocks[0])
        for layer in net.layers[1:]:
            if isinstance(layer, Convolution):
                x = self._stage(layer, x)
                continue
            x.skip = -1 if layer.skip is None else stored[layer.skip]
            x = self._block(layer, x)
            if layer.stores is not None:
                x.result = stored[layer.stores] = self._new(layer.o * layer.length)
        x = self._normalised(net.last, x)
        norm = self._parameters(net.last.name, "gamma", "beta")
        args = np.int32(x.sums), *norm, *self._parameters(net.out.name, "weight", "bias")
        self._launch(f"unet_last<{width}>", 1, "parameters", "activations", "noise", *args)

    def _new(self, floats: int) -> int:
        at = self.floats
        self.floats += self.batch * floats
        return at

    def _launch(self, kernel: str, blocks: int, *args: str | np.generic) -> None:
        early = self.pdl and bool(self.launches)
        self.launches.append(Launch(kernel, (blocks, self.batch), (FUSED_THREADS,), args, pdl=early))

    def _parameters(self, layer: str, *names: str) -> tuple[np.int32, ...]:
        return tuple(np.int32(self.net.offset(f"{layer}.{name}")) for name in names)

    def _films(self, block: Block, to: int) -> tuple[np.int32, ...]:
        return np.int32(self.embedded), *self._parameters(f"{block.name}.film", "weight", "bias"), np.int32(to)

    def _first(self, block: Block) -> Before:
        """The first block: its first convolution has two inputs, and a kernel of its own."""
        sums, around, film = (self._new(floats) for floats in (block.o * STEPS, block.o * STEPS, 2 * block.o))
        assert block.residual is not None
        args = (
            *self._parameters(block.first.name, "weight", "bias"),
            np.int32(sums),
            *self._parameters(block.residual.name, "weight", "bias"),
            np.int32(around),
            *self._films(block, film),
        )
        blocks = block.o // 16 + 2 * block.o // FILMS
        self._launch(f"unet_first<{block.o}>", blocks, "parameters", "sample", "observation", "activations", *args)
        second = Before(sums, block.o, STEPS)
        second.norm, second.film = block.first.name, film
        x = self._normalised(block.second, second)
        x.residual = around
        return x

    def _block(self, block: Block, x: Before) -> Before:
        film = self._new(2 * block.o)
        if block.residual is None:
            if x.result < 0:
                x.result = self._new(block.o * block.length)
            around = x.result
        else:
            around = self._new(block.o * block.length)
        second = self._normalised(block.first, x, block, around, film)
        second.film = film
        result = self._normalised(block.second, second)
        result.residual = around
        return result

    def _normalised(
        self, layer: Convolution, x: Before, block: Block | None = None, around: int = -1, film: int = -1
    ) -> Before:
        after = self._stage(layer, x, block, around, film)
        after.norm = layer.name
        return after

    def _stage(
        self, layer: Convolution, x: Before, block: Block | None = None, around: int = -1, film: int = -1
    ) -> Before:
        """A convolution of `x`; the first of a block also makes the residual's, and FiLM's values."""
        width, rows = self.net.width, max(1, 2 * layer.o // self.net.width)
        to, none = self._new(layer.o * layer.length_out), np.int32(-1)
        kernel = (
            f"unet_stage<{width}, {KINDS[layer.kind]}, {x.channels}, {layer.length}, {layer.i // x.channels}, {rows}>"
        )
        norm = self._parameters(x.norm, "gamma", "beta") if x.norm else (none, none)
        point, films, blocks = (none,) * 3, (none,) * 4, layer.o // rows
        if block is not None:
            films, blocks = self._films(block, film), blocks + 2 * block.o // FILMS
            if block.residual is not None:
                point = *self._parameters(block.residual.name, "weight", "bias"), np.int32(around)
        args = (
            np.int32(x.sums),
            *norm,
            *(np.int32(offset) for offset in (x.film, x.residual, x.result, x.skip)),
            np.int32(layer.o),
            *self._parameters(layer.name, "weight", "bias"),
            np.int32(to),
            *point,
            *films,
        )
        self._launch(kernel, blocks, "parameters", "observation", "activations", *args)
        return Before(to, layer.o, layer.length_out)


@cache
def _per_operation(batch: int, width: int) -> PerOperation:
    return PerOperation({"batch": batch, "width": width})


@cache
def _fused(batch: int, width: int, pdl: bool) -> Fused:
    return Fused({"batch": batch, "width": width}, pdl)


def per_operation(size: Size) -> tuple[Launch, ...]:
    """The launches of the rung per_operation."""
    return tuple(_per_operation(size["batch"], size["width"]).launches)


def results(size: Size) -> Shapes:
    """The arrays between its launches."""
    return _per_operation(size["batch"], size["width"]).shapes


def fused(size: Size) -> tuple[Launch, ...]:
    """The launches of the rung fused."""
    return tuple(_fused(size["batch"], size["width"], False).launches)


def graph(size: Size) -> tuple[Launch, ...]:
    """The launches of the rung fused, in a graph."""
    return _in_a_graph(fused(size))


def dependent(size: Size) -> tuple[Launch, ...]:
    """The same, and each may start early."""
    return _in_a_graph(_fused(size["batch"], size["width"], True).launches)


def _in_a_graph(launches: Sequence[Launch]) -> tuple[Launch, ...]:
    return tuple(replace(launch, graph=True) for launch in launches)


def activations(size: Size) -> Shapes:
    """The array of all results between their launches."""
    return {"activations": ((_fused(size["batch"], size["width"], False).floats,), "float32")}


def _exchange_floats(net: Network, parts: int = GROUPS) -> int:
    """The number of values that blocks of a persistent kernel exchange: program.cuh adds them up in its order.

    A sum of a convolution is handed over in ``parts`` parts.
    """
    linears = sum(outputs for _, outputs in net.linears)
    first = net.blocks[0]
    sums = sum(
        parts * c.o * c.length_out for c in net.convolutions if c.name not in (first.first.name, f"{first.name}.r")
    )
    return linears + sums


def exchange(size: Size) -> Shapes:
    """The places of the persistent kernel."""
    return {"exchange": ((_exchange_floats(network(size["width"])),), "float32")}


def persistent(size: Size) -> tuple[Launch, ...]:
    """All places are emptied, then one launch does everything."""
    width = size["width"]
    quads = _exchange_floats(network(width)) // 4
    args = ("sample", "timestep", "observation", "parameters", "noise", "exchange")
    launches = (
        Launch("unet_empty", (min(132, ceil_div(quads, 1024)),), (1024,), ("exchange", np.int32(quads))),
        Launch(
            f"unet_persistent<{width}>",
            (int(width * BLOCKS_A_CHANNEL),),
            (PERSISTENT_THREADS,),
            args,
            shared_mem=PERSISTENT_BYTES,
            pdl=True,
        ),
    )
    return _in_a_graph(launches)


def whole_sums(size: Size) -> Shapes:
    """The places of output_stationary: one of each sum."""
    return {"exchange": ((_exchange_floats(network(size["width"]), 1),), "float32")}


def output_stationary(size: Size, kernel: str = "unet_output_stationary", rows: int = 3) -> tuple[Launch, ...]:
    """One launch that empties all places, and one that does everything; its threads and ring grow with the width.

    Behind the ring it keeps ``rows`` rows of 16 * width floats: its input and two stored tensors.
    """
    width = size["width"]
    quads = _exchange_floats(network(width), 1) // 4
    args = ("sample", "timestep", "observation", "parameters", "noise", "exchange")
    ring, inputs = OUTPUT_STATIONARY_SLOTS * (20 * width + 64), rows * 16 * width
    launches = (
        Launch("unet_empty", (min(132, ceil_div(quads, 256)),), (256,), ("exchange", np.int32(quads))),
        Launch(
            f"{kernel}<{width}>",
            (int(width * BLOCKS_A_CHANNEL),),
            (2 * width + WARP,),
            args,
            shared_mem=4 * (ring + inputs),
            pdl=True,
        ),
    )
    return _in_a_graph(launches)


def in_registers(size: Size) -> tuple[Launch, ...]:
    """The same launches, of a kernel whose input stays in registers: it keeps the stored tensors alone."""
    return output_stationary(size, "unet_in_registers", 2)
