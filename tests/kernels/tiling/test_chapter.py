"""The chapter on tiling: its exhibits fail in the way that it says, and the changes that it offers mend them."""

from __future__ import annotations

import numpy as np
import pytest

from climb import count_kernel, poisoned
from climb.emulator import AsyncRace, OutOfBounds, Race
from kernels.tiling.exercises import exhibit

#: The barrier at the end of a round of the tiled product.
LAST_BARRIER = "__syncthreads();  // all threads have read the tiles before they are replaced"


def _smooth(text: str, n: int = 512) -> np.ndarray:
    """The indices of the wrong outputs of the smoothing filter."""
    x = np.random.default_rng(0).random(n, dtype=np.float32)
    y = poisoned((n,), "float32")
    count_kernel(text, "smooth", (n // 128,), (128,), [x, y, np.int32(n)])
    right = np.convolve(x.astype(np.float64), np.full(5, 0.2), "same")
    return np.flatnonzero(~(np.abs(y - right) <= 1e-6))


def _product(text: str, n: int) -> bool:
    """Return whether the tiled product of two square matrices is right."""
    a, b = np.random.default_rng(0).random((2, n, n), dtype=np.float32)
    c = poisoned((n, n), "float32")
    count_kernel(text, "product", (-(-n // 16), -(-n // 16)), (16, 16), [a.copy(), b.copy(), c, np.int32(n)])
    return bool((np.abs(c - a.astype(np.float64) @ b) <= 1e-4).all())


def _changed(text: str, *pairs: str) -> str:
    for old, new in zip(pairs[::2], pairs[1::2], strict=True):
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text


def test_filter_without_halo_is_wrong_on_both_sides_of_each_inner_edge() -> None:
    assert [at % 128 for at in _smooth(exhibit("no_halo"))] == [126, 127, 0, 1] * 3


def test_filter_that_reads_missing_neighbours_from_global_memory_is_right() -> None:
    old = "sum += tile[at];\n        }"
    new = old + " else if (i + offset >= 0 && i + offset < n) { sum += source[i + offset]; }"
    assert _smooth(_changed(exhibit("no_halo"), old, new)).size == 0


def test_filter_that_reads_past_its_tile_is_stopped() -> None:
    with pytest.raises(OutOfBounds):
        _smooth(_changed(exhibit("no_halo"), "if (at >= 0 && at < kThreads) {", "{"))


@pytest.mark.parametrize(("n", "right"), [(16, True), (32, True), (40, False), (47, False), (8, False)])
def test_product_without_remainder_is_right_for_multiples_of_its_tile_only(n: int, right: bool) -> None:
    assert _product(exhibit("remainder"), n) == right


def test_rounding_the_steps_up_needs_both_guards() -> None:
    up = _changed(exhibit("remainder"), "step < n / kTile", "step < (n + kTile - 1) / kTile")
    with pytest.raises(OutOfBounds):
        _product(up, 40)
    guarded = _changed(
        up, "row < n ?", "row < n && step * kTile + threadIdx.x < n ?",
        "col < n ?", "col < n && step * kTile + threadIdx.y < n ?",
    )  # fmt: skip
    assert all(_product(guarded, n) for n in (8, 40, 47))


def test_product_without_its_last_barrier_races() -> None:
    with pytest.raises(Race):
        _product(_changed(exhibit("remainder"), LAST_BARRIER, ""), 32)


#: One stage less is in flight, so that none shares its buffer with the stage that is computed.
ONE_LESS = ("filled <= stage", "filled < stage")
NO_BARRIER = "// No barrier: the next stage fills another buffer."


def test_five_stages_in_four_buffers_overwrite_one_another() -> None:
    with pytest.raises(AsyncRace, match=r"this asynchronous copy writes byte 0 of a, which another .* still") as caught:
        _product(exhibit("stages"), 96)
    assert caught.value.where.line == caught.value.other.line
    assert caught.value.where.text.startswith("cuda::memcpy_async(&a[to][y][x]")


def test_four_stages_in_four_buffers_still_overwrite_what_slower_threads_read() -> None:
    with pytest.raises(Race, match=r"this write by an asynchronous copy of byte 0 of a, .* reads at") as caught:
        _product(_changed(exhibit("stages"), *ONE_LESS), 96)
    assert type(caught.value) is Race and caught.value.other.text.startswith("sum += a[from][y][k]")


@pytest.mark.parametrize(
    "mended", [(*ONE_LESS, NO_BARRIER, "__syncthreads();"), ("stage + kBuffers;", "stage + kBuffers - 2;")]
)
def test_a_barrier_or_a_free_buffer_mends_the_stages(mended: tuple[str, ...]) -> None:
    assert _product(_changed(exhibit("stages"), *mended), 96)
