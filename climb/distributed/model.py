"""A model of the time on several GPUs: latency and bandwidth of messages, and how much of a message hides behind work.

A message of n bytes takes ``latency + n / bandwidth`` (the postal model with a rate; Hockney, "The communication
challenge for MPP", 1994). A slab of convolution takes a time that grows with its planes. Together with one GPU's times,
these give the times of any number of GPUs; times that have not been measured are predictions.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from climb.bench.records import Point, Record


@dataclass(frozen=True)
class Link:
    """The speed of a link: ``latency_s`` in seconds, ``bytes_per_s`` of one direction."""

    latency_s: float
    bytes_per_s: float

    def time(self, nbytes: float) -> float:
        """Time in seconds to send a message of this size."""
        return self.latency_s + nbytes / self.bytes_per_s

    @property
    def half(self) -> float:
        """The message size, in bytes, at which half of the bandwidth is reached: latency and transfer take as long."""
        return self.latency_s * self.bytes_per_s


def fit(samples: Iterable[tuple[float, float]]) -> Link:
    """Fit latency and bandwidth to pairs (bytes, seconds): least squares of the relative errors.

    Raises ValueError for fewer than two sizes, or for times that no such line describes.
    """
    pairs = np.array(sorted(samples), dtype=np.float64)
    if len(pairs) < 2 or len(set(pairs[:, 0])) < 2:
        raise ValueError("a line needs messages of two sizes at least")
    nbytes, seconds = pairs.T
    rows = np.stack([1 / seconds, nbytes / seconds], axis=1)
    (latency, per_byte), *_ = np.linalg.lstsq(rows, np.ones(len(pairs)), rcond=None)
    if per_byte <= 0 or latency < 0:
        raise ValueError(f"the times do not grow with the messages: {latency:.3g} s and {per_byte:.3g} s a byte")
    return Link(float(latency), float(1 / per_byte))


def link_of(record: Record, rung: str) -> Link:
    """Return the link as one rung of the ladder ``exchange`` sees it."""
    return fit((point.bytes, point.median_s) for point in record.points if (point.name, point.regime) == (rung, "cold"))


def worst_error(link: Link, samples: Iterable[tuple[float, float]]) -> float:
    """Return the largest deviation of the line from a time, relative to the time."""
    return max(abs(link.time(nbytes) / seconds - 1) for nbytes, seconds in samples)


@dataclass(frozen=True)
class Slabs:
    """A volume in slabs: seconds that a launch takes, ``fixed_s + planes * plane_s``, and the bytes of one plane."""

    fixed_s: float
    plane_s: float
    plane_bytes: int

    def compute(self, planes: float) -> float:
        """Time in seconds of one GPU for this number of planes."""
        return self.fixed_s + planes * self.plane_s if planes > 0 else 0.0

    def exchanged(self, planes: int, ranks: int, radius: int, link: Link) -> float:
        """Time in seconds to exchange, then compute. An inner slab sends to both sides at once, over a link for each
        direction whose bandwidth both messages share."""
        if ranks == 1:
            return self.compute(planes)
        sides = 1 if ranks == 2 else 2
        return link.time(sides * radius * self.plane_bytes) + self.compute(planes / ranks)

    def overlapped(self, planes: int, ranks: int, radius: int, link: Link) -> float:
        """Time in seconds to compute the interior while halos travel, then the boundary as soon as the halos have
        arrived."""
        if ranks == 1:
            return self.compute(planes)
        sides = 1 if ranks == 2 else 2
        message = link.time(sides * radius * self.plane_bytes)
        boundary = sides * radius * self.plane_s
        return max(self.compute(planes / ranks), message + self.fixed_s + boundary)


def slabs_of(points: Sequence[Point], plane_bytes: int) -> Slabs:
    """Fit the line through one GPU's times by planes; a fixed part below zero is taken as zero.

    Raises ValueError for fewer than two points.
    """
    if len(points) < 2:
        raise ValueError("a line needs two numbers of planes at least")
    planes = np.array([point.size["planes"] for point in points], dtype=np.float64)
    seconds = np.array([point.median_s for point in points])
    slope, start = np.polyfit(planes, seconds, 1)
    return Slabs(max(0.0, float(start)), float(slope), plane_bytes)
