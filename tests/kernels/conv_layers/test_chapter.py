"""The chapter on convolution layers: its exercises tell right from wrong, its exhibits fail in the way that it says,
the cuts of its kernels fit the GPU."""

from __future__ import annotations

import numpy as np
import pytest
from tools.thorough import choose as choose_sizes
from tools.thorough import thorough

from climb import count_kernel, load_ladder, verify
from climb.emulator import ALL_CHECKS, LateLoad, Race, checking, run
from climb.toolchain import resources
from kernels.async_copies.exercises import HEADERS
from kernels.conv_layers.convlayer.layer import reference
from kernels.conv_layers.convlayer.planes import Plane
from kernels.conv_layers.exercises import exhibit, extra_bytes, judge, parts_for
from kernels.conv_layers.report_layouts import unchunked

LAYER = load_ladder("convlayer")


def test_right_and_wrong_paper_answers_are_told_apart() -> None:
    assert judge(parts_for, extra_bytes)
    assert not judge(lambda n, c_out, multiprocessors: 1, extra_bytes)
    assert not judge(parts_for, lambda n, c_out, parts: 8 * parts * n * n * c_out)


def test_additions_of_several_blocks_race() -> None:
    ones, taps, out = np.ones((4, 16, 16), np.int32), np.ones((3, 4, 3, 3), np.int32), np.zeros((3, 16, 16), np.int32)
    text = exhibit("racing")
    with pytest.raises(Race, match="race in global memory"), checking(ALL_CHECKS):
        run(text, "layer", grid=(2, 2, 4), block=64, args=[ones, taps, out, 16, 4, 3])
    old = "output[(out * n + row) * n + col] += sum;"
    assert text.count(old) == 1
    out[:] = 0
    with checking(ALL_CHECKS):
        mended = text.replace(old, "atomicAdd(&output[(out * n + row) * n + col], sum);")
        run(mended, "layer", grid=(2, 2, 4), block=64, args=[ones, taps, out, 16, 4, 3])
    assert out[0, 0, 0] == 16 and out[2, 5, 5] == 36


def test_handed_back_exhibit_loads_from_a_slot_that_the_next_copy_may_overwrite() -> None:
    tiles, sums = np.random.default_rng(0).random((3, 4, 64), dtype=np.float32), np.zeros(64, np.float32)
    text, args = exhibit("handed_back"), [tiles, sums, np.int32(3)]
    with pytest.raises(LateLoad, match="may still be on its way"), checking(ALL_CHECKS):
        run(text, "add_tiles", grid=1, block=96, args=args, options=HEADERS)
    with checking(ALL_CHECKS):
        mended = text.replace("__syncwarp();", "fence_proxy_async();\n__syncwarp();")
        run(mended, "add_tiles", grid=1, block=96, args=args, options=HEADERS)
    np.testing.assert_allclose(sums, tiles.sum((0, 1)), rtol=1e-6)


def test_borders_exhibit_reads_the_end_of_the_row_above() -> None:
    image, taps = np.arange(144, dtype=np.float32).reshape(1, 12, 12), np.zeros((1, 1, 3, 3), np.float32)
    taps[0, 0, 1, 0] = 1.0  # the left neighbour
    out = np.zeros((1, 12, 12), np.float32)
    run(exhibit("borders"), "layer", grid=(5, 1), block=32, args=[image, taps, out, 12, 1, 1])
    assert np.array_equal(out[0, :, 1:], image[0, :, :-1])
    assert out[0, 0, 0] == 0 and np.array_equal(out[0, 1:, 0], image[0, :-1, -1])


#: What mends the published conv1, but for the halo: the text, and the mended text.
MENDED = (
    ("weights[map * (kTaps * kTaps) + i]", "weights[map * (kOuts * kTaps * kTaps) + i]"),
    ("kRow = kEdge / (kChunks / 2)", "kRow = 8"),
    ("output[out * kEdge * kEdge + t] += sum;",
     "atomicAdd(&output[out * kEdge * kEdge + blockIdx.x % kChunks * kChunk + t], sum);"),
)  # fmt: skip


def _run_conv1(text: str) -> tuple[np.ndarray, np.ndarray]:
    """The output of the exhibit on random maps in chunks, and what is right; both (maps, chunks, 8, 8)."""
    rng = np.random.default_rng(1)
    chunks, weights = rng.integers(1, 9, (2, 16, 64), dtype=np.int32), rng.integers(1, 9, (2, 3, 3, 3), dtype=np.int32)
    maps = unchunked(chunks.reshape(2, -1), 32, 8)
    size = {"n": 32, "c_in": 2, "c_out": 3, "k": 3}
    want = reference({"input": maps, "weights": weights.transpose(1, 0, 2, 3)}, size)["output"].astype(np.int64)
    out = np.zeros((3, 16, 64), np.int32)
    count_kernel(text, "conv1", (32,), (64,), [chunks, weights, out], checks=())
    apart = want.reshape(3, 4, 8, 4, 8).transpose(0, 1, 3, 2, 4).reshape(3, 16, 8, 8)
    return out.reshape(3, 16, 8, 8), apart


def test_published_conv1_writes_one_chunk_of_each_output_map() -> None:
    out, _ = _run_conv1(exhibit("conv1"))
    assert out[:, 0].all() and not out[:, 1:].any()


def test_mended_conv1_is_still_wrong_at_the_edges_of_every_chunk() -> None:
    text = exhibit("conv1")
    for old, new in MENDED:
        assert text.count(old) == 1
        text = text.replace(old, new)
    out, want = _run_conv1(text)
    assert np.array_equal(out[..., 1:-1, 1:-1], want[..., 1:-1, 1:-1])
    assert all((out[edge] != want[edge]).any() for edge in (np.s_[..., 0, :], np.s_[..., :, -1]))


@pytest.mark.parametrize("rung", ["direct", "split_k", "winograd"])
def test_the_fastest_kernels_spill_nothing_and_fit_an_sm_as_often_as_they_say(rung: str) -> None:
    for size in LAYER.problem.headline[: choose_sizes(1, thorough=9)]:
        compiled = LAYER[rung].compiled(size)
        launch = LAYER[rung].launches(size)[0]
        used = resources(compiled, launch.kernel)
        blocks = int(launch.kernel.removesuffix(">").split(", ")[8])
        assert used.spill_store_bytes == 0
        assert blocks * launch.block[0] * used.registers <= 65536
        assert blocks * (launch.shared_mem + 1024) <= 228 * 1024


@pytest.mark.thorough
def test_the_sixteen_products_spill_nothing_and_fit_an_sm_as_often_as_they_say() -> None:
    from kernels.conv_layers.convlayer.planes import choose_plane

    for size in LAYER.problem.recorded[:: choose_sizes(4, thorough=1)]:
        plane, _ = choose_plane(size)
        launch = LAYER["winograd_2d"].launches(size)[0]
        used = resources(LAYER["winograd_2d"].compiled(size), launch.kernel)
        assert used.spill_store_bytes == 0
        assert plane.blocks * launch.block[0] * used.registers <= 65536
        assert plane.blocks * (launch.shared_mem + 1024) <= 228 * 1024


@pytest.mark.parametrize(
    ("n", "c_in", "c_out"),
    [
        thorough(14, 100, 70),
        thorough(7, 9, 5),
        (1, 17, 65),
        thorough(2, 8, 3),
        (13, 40, 33),
        (0, 3, 2),
        (3, 0, 2),
        (3, 2, 0),
    ],
    ids=lambda value: str(value),
)
def test_sixteen_products_are_right_whatever_the_tiles_the_parts_and_the_stages(n: int, c_in: int, c_out: int) -> None:
    verify(LAYER["winograd_2d"], {"n": n, "c_in": c_in, "c_out": c_out, "k": 3})


def test_sixteen_products_err_no_more_than_nine_times_four() -> None:
    """Against float64, where an output sums as many maps as the record's smaller layer has in a part."""
    size = {"n": 14, "c_in": 64, "c_out": 64, "k": 3}
    direct, winograd = (verify(LAYER[name], size).errors["output"] for name in ("direct", "winograd_2d"))
    assert 0 < winograd < 2 * direct


def test_every_plane_of_the_table_is_that_of_its_layer() -> None:
    from kernels.conv_layers.convlayer.planes import TABLE, choose_plane, maps_of_part

    for (n, c_in, c_out), (plane, parts) in TABLE.items():
        size = {"n": n, "c_in": c_in, "c_out": c_out, "k": 3}
        assert choose_plane(size) == (plane, parts)
        assert (parts - 1) * maps_of_part(size, parts) < c_in <= parts * maps_of_part(size, parts)
        squares = plane.quads_out * plane.quads_tile * (16 // plane.warps)
        assert plane.outs * plane.tiles * 16 == plane.threads * 16 * squares


@pytest.mark.parametrize("shape", [(13, 20, 40), (14, 9, 33)], ids=["two parts", "odd maps"])
def test_every_plane_of_the_table_is_right(shape: tuple[int, int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    """At a small size, put in the table for it, in two parts."""
    from kernels.conv_layers.convlayer import planes

    for plane in {plane for plane, _ in planes.TABLE.values()}:
        monkeypatch.setitem(planes.TABLE, shape, (plane, 2))
        size = {**dict(zip(("n", "c_in", "c_out"), shape, strict=True)), "k": 3}
        name = f"convlayer_winograd_2d<{plane.arguments(size)}>"
        assert LAYER["winograd_2d"].launches(size)[0].kernel == name
        verify(LAYER["winograd_2d"], size)


def test_every_cut_of_the_table_computes_its_layer() -> None:
    """At few maps, for the emulator's sake; the cut and the parts are those of the layer, and its pixels too."""
    from kernels.conv_layers.convlayer.cuts import TABLE, choose

    for (n, c_in, c_out), (cut, parts) in TABLE.items():
        size = {"n": n, "c_in": c_in, "c_out": c_out, "k": 3}
        assert choose(size) == (cut, parts) and not cut.reads_past(3)
        assert cut.threads % 16 == 0 and cut.tile_outs % 4 == 0 and parts * cut.maps(size, parts) >= c_in
    verify(LAYER["split_k"], {"n": 14, "c_in": 40, "c_out": 33, "k": 3})


def test_split_adds_its_parts_in_the_same_order_each_time() -> None:
    from climb import cp

    size = {"n": 14, "c_in": 48, "c_out": 8, "k": 3}
    inputs = LAYER.inputs(size)
    assert len(LAYER["split_k"].launches(size)) == 2
    first, second = (
        cp.asnumpy(LAYER["split_k"](cp.asarray(inputs["input"]), cp.asarray(inputs["weights"]))) for _ in range(2)
    )
    assert np.array_equal(first.view(np.uint32), second.view(np.uint32))


def test_winograd_block_with_fewer_windows_than_threads_is_right(monkeypatch: pytest.MonkeyPatch) -> None:
    """16 tiles of 8 input maps are 128 windows for 256 threads: the last four warps load none."""
    plane = Plane(outs=32, tiles=16, quads_out=1, quads_tile=1, warps=8, blocks=1, spread=False)
    monkeypatch.setattr("kernels.conv_layers.convlayer.choose_plane", lambda size: (plane, 1))
    size = {"n": 9, "c_in": 9, "c_out": 33, "k": 3}
    assert LAYER["winograd_2d"].launches(size)[0].kernel.startswith("convlayer_winograd_2d<32, 16,")
    verify(LAYER["winograd_2d"], size)
