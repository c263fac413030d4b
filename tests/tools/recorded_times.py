"""The figures behind the book's promises: times, rates and shares of the limit, read from a record."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from climb import Record, limit, load_ladder, occupancy_of
from climb.bench.problem import Size
from kernels.conv1d.conv1d import UNET_COUNTS
from kernels.conv_layers.convlayer.layer import VGG


def best(record: Record) -> float:
    """The shortest cold time of any rung at the first headline size, in seconds."""
    size = load_ladder(record.ladder).problem.headline[0]
    names = load_ladder(record.ladder).names
    points = [record.find(name, size, "cold") for name in names]
    return min(point.median_s for point in points if point is not None)


def best_peer(record: Record) -> float:
    """The shortest cold time of any peer at the first headline size, in seconds."""
    size = load_ladder(record.ladder).problem.headline[0]
    return min(p.median_s for p in record.points if (p.kind, p.size, p.regime) == ("peer", dict(size), "cold"))


def of(record: Record, name: str) -> float:
    """The cold time of one rung or peer at the first headline size, in seconds."""
    point = record.find(name, load_ladder(record.ladder).problem.headline[0], "cold")
    assert point is not None, f"the record of {record.ladder} has no point for {name}"
    return point.median_s


def with_warps(record: Record, name: str, warps: int) -> float:
    """The cold time of a rung with blocks of 128 threads whose shared memory lets ``warps`` warps fit on an SM."""
    points = [p for p in record.points if p.name == name and p.regime == "cold" and p.size["threads"] == 128]
    (found,) = (p for p in points if occupancy_of(32, p.size["shared"], 128).warps == warps)
    return found.median_s


def rate(record: Record, work: str) -> float:
    """Bytes or FLOPs per second of the best rung at the first headline size."""
    problem = load_ladder(record.ladder).problem
    return getattr(problem, work)(problem.headline[0]) / best(record)


def share(record: Record, name: str | None = None, size: Size | None = None) -> float:
    """The share of the limit of the best rung, or of the one named, at the first headline size or another."""
    ladder = load_ladder(record.ladder)
    size = ladder.problem.headline[0] if size is None else size
    points = [record.find(n, size, "cold") for n in ([name] if name else ladder.names)]
    found = limit(ladder.problem, size, record.ceilings)
    return max(found.share(point) for point in points if point is not None)


def histograms(record: Record) -> list[tuple[float, float, float]]:
    """For each kind of data: the limit, the time of the best rung, and that of CUB, in seconds."""
    ladder = load_ladder("histogram")
    found = []
    for size in ladder.problem.headline:
        points = {p.name: p.median_s for p in record.points if p.size == size and p.regime == "cold"}
        least = limit(ladder.problem, size, record.ceilings).seconds
        found.append((least, min(points[name] for name in ladder.names if name in points), points["CUB"]))
    return found


def against_cudnn(record: Record, shape: tuple[int, int, int]) -> float:
    """The speed of the best rung on a 3x3 layer of VGG-16, relative to cuDNN in float32 in its better layout."""
    size = {**dict(zip(("n", "c_in", "c_out"), shape, strict=True)), "k": 3}
    times = {p.name: p.median_s for p in record.points if p.size == size and p.regime == "cold"}
    names = load_ladder(record.ladder).names
    return min(times[f"cuDNN fp32 {layout}"] for layout in ("NCHW", "NHWC")) / min(
        seconds for name, seconds in times.items() if name in names
    )


def layer_time(record: Record, name: str, shape: tuple[int, int, int], batch: int = 1) -> float:
    """The cold time of one rung or peer on a batch of a 3x3 layer, infinity if it has none, in seconds."""
    size = {**dict(zip(("n", "c_in", "c_out"), shape, strict=True)), "k": 3, "batch": batch}
    point = record.find(name, size, "cold")
    return float("inf") if point is None else point.median_s


def best_layer(record: Record, shape: tuple[int, int, int], batch: int = 1) -> float:
    """The shortest cold time of any rung on a batch of a 3x3 layer, in seconds."""
    return min(layer_time(record, name, shape, batch) for name in load_ladder(record.ladder).names)


def thirteen(seconds: Callable[[tuple[int, int, int]], float]) -> float:
    """The sum over the thirteen layers of VGG-16 of the time of each shape, in seconds."""
    return sum(count * seconds(shape) for shape, count in VGG.items())


def time_of(record: Record, name: str, **changed: int | str) -> float:
    """The cold time of one rung at the headline size with some keys changed, in seconds."""
    point = record.find(name, {**load_ladder(record.ladder).problem.headline[0], **changed}, "cold")
    assert point is not None, f"the record of {record.ladder} has no point for {name} at {changed}"
    return point.median_s


def filters(k: int) -> Size:
    """The first headline size of conv2d with a filter of k x k."""
    return {**load_ladder("conv2d").problem.headline[0], "k": k, "k_cols": k}


def convolved(record: Record, k: int) -> float:
    """The shortest cold time of conv2d with a filter of k x k, in seconds."""
    points = [record.find(name, filters(k), "cold") for name in load_ladder("conv2d").names]
    return min(point.median_s for point in points if point is not None)


def best_setting(record: Record, rung: str, wanted: dict[str, int]) -> int:
    """The number of outputs a thread with the shortest cold time, among the sizes that have what is wanted."""
    points = [p for p in record.points if p.name == rung and p.regime == "cold" and wanted.items() <= p.size.items()]
    return min(points, key=lambda p: p.median_s).size["outputs"]


#: Products with 1, 8 and 64 outputs a thread.
COARSER = ("tiled", "register_column", "register_tile")


def coarsest_and_fastest(record: Record, edge: int) -> tuple[str, str]:
    """Of the products in ``COARSER``: the last that has a block for every SM, and the one that takes the least time."""
    size, ladder = {"m": edge, "n": edge, "k": edge}, load_ladder(record.ladder)
    blocks = {name: prod(ladder[name].launches(size)[-1].grid) for name in COARSER}
    points = {p.name: p.median_s for p in record.points if p.size == size and p.regime == "cold"}
    enough = [name for name in COARSER if blocks[name] >= record.device["sm_count"]]
    return enough[-1], min(COARSER, key=points.__getitem__)


def of_cublas(record: Record, *extents: int, peer: str = "cuBLAS fp32") -> float:
    """The time of cuBLAS over that of the best rung, at m, n and k; where data have kinds, on normal data."""
    size = dict(zip(("m", "n", "k"), extents, strict=True))
    sizes = (size, {**size, "data": "normal"})
    points = {p.name: p.median_s for p in record.points if p.size in sizes and p.regime == "cold"}
    return points[peer] / min(points[name] for name in load_ladder(record.ladder).names if name in points)


def errors(record: Record, name: str, edge: int) -> list[tuple[float, float]]:
    """The normwise and the componentwise error of a rung or peer on a square product, for each kind of data."""
    kinds = load_ladder(record.ladder).problem.kinds["data"]
    points = [record.find(name, {"m": edge, "n": edge, "k": edge, "data": kind}, "cold") for kind in kinds]
    return [(point.max_rel_error, point.max_component_error) for point in points if point is not None]


def classifier(record: Record, layer: int) -> tuple[float, float]:
    """The shortest time of any rung of the classifier at a headline size, and that of cuBLAS in float32, in seconds."""
    ladder = load_ladder("classifier")
    size = ladder.problem.headline[layer]
    points = {p.name: p.median_s for p in record.points if p.size == dict(size) and p.regime == "cold"}
    return min(points[name] for name in ladder.names if name in points), points["cuBLAS fp32"]


def layers(record: Record, peer: str) -> list[float]:
    """The speed of the best rung relative to a peer, for each layer of the U-Net, as often as the U-Net has it."""
    found: list[float] = []
    for size, count in UNET_COUNTS:
        points = {p.name: p.median_s for p in record.points if p.size == size and p.regime == "cold"}
        ours = min(points[name] for name in load_ladder("conv1d").names if name in points)
        found += [points[peer] / ours] * count
    return found


def seconds_of(record: Record, n: int) -> float:
    """The shortest cold time of any rung at a size of one key, in seconds."""
    points = [record.find(name, {"n": n}, "cold") for name in load_ladder(record.ladder).names]
    return min(point.median_s for point in points if point is not None)


def cube(record: Record, n: int, k: int, name: str | None = None) -> float:
    """The cold time of one rung or peer of conv3d at a size, or of the best rung, in seconds."""
    points = {p.name: p.median_s for p in record.points if p.size == {"n": n, "k": k} and p.regime == "cold"}
    return points[name] if name else min(points[r] for r in load_ladder("conv3d").names if r in points)
