"""hgemm: the grid that balances rounds of tiles, and the width of tiles."""

from __future__ import annotations

import pytest

from climb import load_ladder
from kernels.tensor_cores.hgemm.launches import SMS

LADDER = load_ladder("hgemm")


@pytest.mark.parametrize(
    ("size", "blocks"),
    [((4096, 4096, 4096), 128), ((512, 11008, 4096), 86), ((16384, 768, 768), 128), ((4352, 3072, 64), 102)],
)
def test_balanced_takes_the_fewest_clusters_for_as_many_rounds(size: tuple[int, int, int], blocks: int) -> None:
    (launch,) = LADDER["balanced"].launches(dict(zip("mnk", size, strict=True)))
    tiles = size[0] // 128 * (size[1] // 256)
    rounds = -(-tiles // SMS)
    assert launch.grid == (blocks,)
    assert -(-tiles // blocks) == rounds < -(-tiles // (blocks - 2))


@pytest.mark.parametrize(
    ("size", "cols", "blocks"), [((512, 11008, 4096), 192, 116), ((4096, 4096, 4096), 256, 128), ((8, 8, 8), None, 1)]
)
def test_two_widths_takes_the_width_whose_rounds_are_shorter(
    size: tuple[int, int, int], cols: int | None, blocks: int
) -> None:
    (launch,) = LADDER["two_widths"].launches(dict(zip("mnk", size, strict=True)))
    assert (launch.kernel == f"hgemm_overlapped<{cols}>") == (cols is not None)
    assert launch.grid == (blocks,)


def test_balanced_leaves_small_products_to_small_tiles() -> None:
    size = {"m": 1024, "n": 1024, "k": 1024}
    assert LADDER["balanced"].launches(size) == LADDER["small_tiles"].launches(size)


@pytest.mark.parametrize(
    ("edges", "kernel", "blocks"),
    [
        ((1024, 1024, 1024), "hgemm_small<128, 8>", 128),
        ((2048, 2048, 2048), "hgemm_pingpong<128>", 128),
        ((16384, 768, 768), "hgemm_pingpong<128>", 128),
        ((4096, 4096, 4096), "hgemm_overlapped<256>", 128),
        ((512, 11008, 4096), "hgemm_pingpong<192>", 116),
        ((8192, 8192, 8192), "hgemm_pingpong<192>", 132),
    ],
)
def test_pingpong_takes_the_tile_with_the_fewest_columns_in_all_rounds(
    edges: tuple[int, int, int], kernel: str, blocks: int
) -> None:
    (launch,) = LADDER["pingpong"].launches(dict(zip("mnk", edges, strict=True)))
    assert (launch.kernel, launch.grid) == (kernel, (blocks,))
