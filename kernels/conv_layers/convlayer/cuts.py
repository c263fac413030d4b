"""The cuts of a layer by ``direct`` and ``split_k``: a thread's work, the threads of a block, the number of parts."""

from __future__ import annotations

from dataclasses import dataclass

from climb.bench.problem import Size, ceil_div

FLOAT = 4
#: The kernels' kMaps and kStages.
MAPS, STAGES = 4, 3


def _up(value: int, step: int) -> int:
    return ceil_div(value, step) * step


@dataclass(frozen=True)
class Cut:
    """Sums of a thread: ``outs`` maps x ``high`` x ``wide`` pixels. Threads of a block: ``groups`` of output maps,
    ``down`` x ``across`` of pixels. ``pad`` floats are added to a row of the tile, against bank conflicts; ``blocks``
    fit an SM; ``unroll`` input maps are unrolled.
    """

    outs: int
    high: int
    wide: int
    groups: int
    down: int
    across: int
    pad: int = 0
    blocks: int = 3
    unroll: int = 1

    @property
    def threads(self) -> int:
        return self.groups * self.down * self.across

    @property
    def tile_outs(self) -> int:
        """Output maps of a block."""
        return self.outs * self.groups

    def pitch(self, k: int) -> int:
        """Floats from a row of the tile to the next."""
        window = self.wide + k - 1
        apart = self.across * _up(window, 4)
        return (apart if self.wide % 4 else _up(self.wide * self.across + k - 1, 4)) + self.pad

    def shared_bytes(self, k: int) -> int:
        """Shared memory of a block: a ring of stages with the weights and pieces of ``MAPS`` input maps."""
        weights = k * k * (_up(self.tile_outs, 32) + 8)
        plane = (self.high * self.down + k - 1) * self.pitch(k)
        return FLOAT * STAGES * MAPS * (weights + plane)

    def reads_past(self, k: int) -> bool:
        """Return whether a thread loads four floats for its window's last three; maybe no copy wrote the fourth."""
        return (self.wide + k - 1) % 4 == 3

    def tiles(self, size: Size) -> tuple[int, int]:
        """Blocks over the pixels, blocks over the output maps; at least one of each."""
        beside = ceil_div(size["n"], self.wide * self.across) * ceil_div(size["n"], self.high * self.down)
        return max(1, beside), max(1, ceil_div(size["c_out"], self.tile_outs))

    def arguments(self, size: Size, parts: int) -> str:
        """The kernel's template arguments: those of the cut, and what of its shortcuts this size allows."""
        k = size["k"]
        whole = size["c_in"] == parts * self.maps(size, parts)
        quads = size["n"] % 4 == 0 and self.wide % 4 == 0
        cut = (self.outs, self.high, self.wide, self.groups, self.down, self.across, self.pitch(k), self.blocks)
        return ", ".join(map(str, (k, *cut, self.unroll, *(str(flag).lower() for flag in (whole, quads)))))

    def maps(self, size: Size, parts: int) -> int:
        """Input maps of a part: a multiple of ``MAPS``."""
        return _up(ceil_div(size["c_in"], parts), MAPS)

    @property
    def factor_bytes(self) -> int:
        """Shared memory of ``winograd`` beside the ring: four factors of each row of three taps of ``MAPS`` maps."""
        return FLOAT * MAPS * 3 * 4 * (_up(self.tile_outs, 32) + 8)


#: What ``direct`` has for every layer: the best for conv1, whose tiles are three for each of 132 SMs, less four.
DIRECT = Cut(outs=4, high=4, wide=4, groups=8, down=2, across=8, unroll=2)
#: What ``winograd`` has for every layer.
WINOGRAD = Cut(outs=4, high=2, wide=4, groups=8, down=2, across=8, unroll=2)

_NARROW = Cut(outs=4, high=2, wide=4, groups=8, down=4, across=4, pad=4, unroll=2)
_LOW = Cut(outs=4, high=4, wide=2, groups=16, down=2, across=4, pad=4, unroll=2)
_SMALL = Cut(outs=4, high=1, wide=7, groups=8, down=14, across=2, blocks=2, unroll=4)
#: The cut and the parts of ``split_k`` by (n, c_in, c_out), the fastest of those that were tried on an H200.
TABLE: dict[tuple[int, int, int], tuple[Cut, int]] = {
    (224, 3, 64): (Cut(outs=4, high=2, wide=4, groups=16, down=2, across=8), 1),
    (224, 64, 64): (DIRECT, 1),
    (112, 64, 128): (_NARROW, 1),
    (112, 128, 128): (_NARROW, 1),
    (56, 128, 256): (_LOW, 2),
    (56, 256, 256): (_LOW, 2),
    (28, 256, 512): (Cut(outs=4, high=4, wide=4, groups=16, down=2, across=7, blocks=1, unroll=2), 4),
    (28, 512, 512): (Cut(outs=4, high=4, wide=4, groups=16, down=1, across=7, unroll=2), 7),
    (14, 512, 512): (_SMALL, 8),
}
#: Blocks that a GPU of 132 SMs has room for, two on each, and the fewest input maps that are worth a part.
RESIDENT_BLOCKS, FEWEST = 264, 16


def choose(size: Size) -> tuple[Cut, int]:
    """The cut and the parts of ``split_k``: those of the table, else parts enough to fill the GPU."""
    known = TABLE.get((size["n"], size["c_in"], size["c_out"]))
    if known is not None and size["k"] == 3:
        return known
    cut = _SMALL if size["n"] <= 14 else _NARROW if size["n"] < 112 else DIRECT
    if cut.reads_past(size["k"]):
        cut = _NARROW
    beside, maps = cut.tiles(size)
    return cut, max(1, min(RESIDENT_BLOCKS // (beside * maps), size["c_in"] // FEWEST))
