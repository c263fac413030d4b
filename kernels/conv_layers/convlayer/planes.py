"""The cuts of a layer by ``winograd_2d``: output maps and tiles of a block, and the number of parts of input maps."""

from __future__ import annotations

from dataclasses import dataclass

from climb.bench.problem import Size, ceil_div

FLOAT, WARP = 4, 32
#: The kernel's kTile, kDepth, kProducts and kTaps.
TILE, MAPS, PRODUCTS, TAPS = 2, 8, 16, 9


@dataclass(frozen=True)
class Plane:
    """A block's ``outs`` output maps x ``tiles`` tiles of 2 x 2 outputs, by ``warps`` warps; of each of its products a
    thread has ``quads_out`` x ``quads_tile`` squares of 4 x 4 sums. ``blocks`` fit an SM. The transforms for the next
    stage are ``spread`` between the products of this one, or come before them.
    """

    outs: int
    tiles: int
    quads_out: int
    quads_tile: int
    warps: int
    blocks: int
    spread: bool

    @property
    def threads(self) -> int:
        return WARP * self.warps

    @property
    def shared_bytes(self) -> int:
        """Shared memory of a block: two stages of factors and windows and two of weights, or, later, all sums."""
        stage = PRODUCTS * MAPS * (self.outs + 4 + self.tiles) + MAPS * TAPS * self.outs
        return FLOAT * max(2 * stage, PRODUCTS * self.outs * (self.tiles + 4))

    def grid(self, size: Size, parts: int) -> tuple[int, int, int]:
        """Blocks over the tiles, over the output maps and over parts of the input maps; at least one of each."""
        tiles = ceil_div(size["n"], TILE) ** 2
        return max(1, ceil_div(tiles, self.tiles)), max(1, ceil_div(size["c_out"], self.outs)), parts

    def arguments(self, size: Size) -> str:
        """The kernel's template arguments: those of the cut, and how wide this size allows to copy and to store."""
        cut = (self.outs, self.tiles, self.quads_out, self.quads_tile, self.warps, self.blocks)
        width, pairs = 4 if size["c_in"] % 4 == 0 else 1, size["n"] % 2 == 0
        return ", ".join(map(str, (*cut, str(self.spread).lower(), width, str(pairs).lower())))


def maps_of_part(size: Size, parts: int) -> int:
    """Input maps of a part: a multiple of ``MAPS``, and at least that many, where there are none as well."""
    return max(1, ceil_div(ceil_div(size["c_in"], parts), MAPS)) * MAPS


WIDE = Plane(outs=64, tiles=32, quads_out=2, quads_tile=2, warps=8, blocks=1, spread=True)
_SMALL = Plane(outs=32, tiles=32, quads_out=2, quads_tile=1, warps=8, blocks=2, spread=False)
#: The cut and the parts by (n, c_in, c_out), where of those tried on an H200 another was the fastest than the rule has.
TABLE: dict[tuple[int, int, int], tuple[Plane, int]] = {(112, 64, 128): (_SMALL, 1), (112, 128, 128): (_SMALL, 1)}
#: SMs of the GPU that the parts are to fill, and the fewest input maps that are worth a part.
RESIDENT_BLOCKS, FEWEST = 132, 16


def choose_plane(size: Size) -> tuple[Plane, int]:
    """The cut and the parts of a layer: those of the table, else parts enough to fill the GPU."""
    known = TABLE.get((size["n"], size["c_in"], size["c_out"]))
    if known is not None:
        return known
    beside, maps, _ = WIDE.grid(size, 1)
    parts = max(1, min(RESIDENT_BLOCKS // (beside * maps), size["c_in"] // FEWEST))
    # A part has a whole number of stages; rounding that up can leave fewer parts.
    return WIDE, max(1, ceil_div(size["c_in"], maps_of_part(size, parts)))
