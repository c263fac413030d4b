"""Mistakes of published kernels, rewritten as small exhibits: the emulator finds them, or verification does."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from harness import Device

from climb.bench.checking import compare, poisoned
from climb.emulator import ALL_CHECKS, Misaligned, OutOfBounds, Race, Uninitialised, WarpMismatch, checking

KERNELS = Path(__file__).resolve().parents[2] / "kernels"


def source(name: str) -> str:
    chapter, _, short = name.partition("_")
    return (KERNELS / chapter / "exhibits" / f"{short}.cu").read_text(encoding="utf-8")


def device(text: str, *options: str) -> Device:
    return Device(text, options=options)


def random(*shape: int) -> np.ndarray:
    return np.random.default_rng(1).random(shape, dtype=np.float32)


def convolved(image: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The correlation with zeros outside, float64; image (rows, cols), weights (K, K)."""
    rows, cols = image.shape
    size = weights.shape[0]
    wide = np.pad(image.astype(np.float64), size // 2 + size % 2)
    start = size % 2
    return sum(
        weights[i, j] * wide[start + i : start + i + rows, start + j : start + j + cols]
        for i in range(size)
        for j in range(size)
    )


def replaced(text: str, old: str, new: str) -> str:
    assert text.count(old) == 1
    return text.replace(old, new)


def test_every_exhibit_names_its_source_and_is_tested() -> None:
    """Here, or in the tests of the chapter that shows it."""
    texts = {path: path.read_text(encoding="utf-8") for path in KERNELS.glob("*/exhibits/*.cu")}
    published = [path for path, text in texts.items() if text.startswith("// Exhibit. ")]
    here = Path(__file__).read_text(encoding="utf-8")
    assert len(published) >= 9
    for path in published:
        folder, rest = path.parts[-3], path.stem
        chapter = Path(__file__).parent / folder / "test_chapter.py"
        there = chapter.read_text(encoding="utf-8") if chapter.exists() else ""
        assert texts[path].startswith("// Exhibit. Source: ")
        assert f'source("{folder}_{rest}")' in here or f'exhibit("{rest}")' in there, path


def test_conv1d_stages_its_input_past_the_allocation() -> None:
    text, data = source("conv1d_padding"), random(4096)
    with pytest.raises(OutOfBounds, match="right after the end of the 16384 bytes of shared memory") as caught:
        device(text).launch("load_padded", 1, 128, data, np.zeros(4096, np.float32))
    # In the last step thread t stores element 3584 + 4 t at 3584 + 4 t + 112 + t / 8, which is 4096 for t = 97.
    assert caught.value.where.thread == (97, 0, 0) and caught.value.where.lanes == 31
    assert caught.value.where.text == "at[0] = four.x;"
    mended, out = replaced(text, "[kChannels * kRowLength]", "[kChannels * kRowLength * 33 / 32]"), np.zeros_like(data)
    with checking(ALL_CHECKS):
        device(mended).launch("load_padded", 1, 128, data, out)
    assert np.array_equal(out, data)


def test_conv1d_shuffles_with_lanes_that_a_block_of_two_does_not_have() -> None:
    text, data, out = source("conv1d_full_mask"), random(64), np.zeros(2, np.float32)
    with pytest.raises(WarpMismatch, match="reads the value of lane 16, which takes no part") as caught:
        device(text).launch("channel_sum", 2, 2, data, out)
    assert caught.value.where.text == "sum += __shfl_down_sync(0xffffffffu, sum, offset);"
    device(text).launch("channel_sum", 2, 32, data, out)
    assert compare(out, data.reshape(2, 32).sum(axis=1, dtype=np.float64), 1e-6).wrong == 0


def test_conv1d_adds_to_an_uninitialised_output() -> None:
    text, parts, bias = source("conv1d_bias"), random(3, 2), random(3)
    on = device(text)
    fresh = on.memory.allocate(12, "output", initialised=False)
    with pytest.raises(Uninitialised, match="an atomic reads byte 0 of output in global memory") as caught:
        on.launch("add_parts", 3, 64, parts, bias, fresh)
    assert caught.value.where.text == "atomicAdd(&output[blockIdx.x], bias[blockIdx.x]);"
    # Where the emulator is told that the memory holds something, the comparison with the reference finds it.
    want, out = bias + parts.sum(axis=1, dtype=np.float64), poisoned((3,), "float32")
    device(text).launch("add_parts", 3, 64, parts, bias, out)
    assert compare(out, want, 1e-5).wrong == 3
    out = np.zeros(3, np.float32)
    with checking(ALL_CHECKS):
        device(text).launch("add_parts", 3, 64, parts, bias, out)
    assert compare(out, want, 1e-6).wrong == 0


def test_classifier_races_between_blocks() -> None:
    text = source("classifier_sum")
    data, weights = np.arange(64, dtype=np.int32), np.arange(64 * 40, dtype=np.int32).reshape(64, 40) % 7
    says = "race in global memory: this write of byte 0 of argument 2, which"
    with pytest.raises(Race, match=says) as caught, checking(ALL_CHECKS):
        device(text).launch("classifier", (2, 4), 32, data, weights, np.zeros(40, np.int32), 64, 40)
    error = caught.value
    assert error.where.text == error.other.text == "output[neuron] += sum;"
    assert error.other.block != error.where.block and error.allocation.name == "argument 2"
    mended, out = replaced(text, "output[neuron] += sum;", "atomicAdd(&output[neuron], sum);"), np.zeros(40, np.int32)
    with checking(ALL_CHECKS):
        device(mended).launch("classifier", (2, 4), 32, data, weights, out, 64, 40)
    assert np.array_equal(out, data @ weights)


@pytest.mark.parametrize("size", [3, 7, 9, 11, 8])
def test_conv3d_never_reads_four_weights_at_once(size: int) -> None:
    """The result is right and the claim is not: the counters say that no lane executed a 16-byte load."""
    text, image, weights = source("conv3d_float4"), random(20, 20), random(size, size)
    out = np.zeros_like(image)
    with checking(ALL_CHECKS):
        counters = device(text).launch("row_of_weights", (1, 20), 32, image, weights, out, 20, size)
    assert compare(out, convolved(image, weights), 1e-5).wrong == 0
    wide = sum(line.requests for line in counters.lines if line.width == 16)
    assert (wide == 0) == (size % 4 != 0)


@pytest.mark.parametrize("size", [7, 9, 11])
def test_conv3d_without_its_guard_reads_misaligned_weights(size: int) -> None:
    image, weights, out = random(20, 20), random(size, size), np.zeros((20, 20), np.float32)
    with pytest.raises(Misaligned, match=f"16-byte load .* byte {4 * size} of argument 1") as caught:
        unguarded = device(source("conv3d_float4"), "-DUNGUARDED")
        unguarded.launch("row_of_weights", (1, 20), 32, image, weights, out, 20, size)
    assert "reinterpret_cast<const float4*>(&weights[row * K + k])" in caught.value.where.text


def test_conv2d_loads_only_part_of_its_halo() -> None:
    text, image, weights = source("conv2d_halo"), random(70, 50), random(3, 3)
    out = np.zeros_like(image)
    with pytest.raises(Uninitialised, match="a load reads byte 128 of tile in shared memory") as caught:
        device(text).launch("convolve", (2, 3), (32, 32), image, weights, out, 70, 50)
    # tile[0][32] is the first element that was not loaded: thread 31 reads it with the filter's column 1, thread 30
    # with column 2.
    assert caught.value.where.text == "sum += tile[threadIdx.y + i][threadIdx.x + j] * filter[i * kKernel + j];"
    mended = text.replace("kTile / kBlock;", "(kTile + kBlock - 1) / kBlock;")
    with checking(ALL_CHECKS):
        device(mended).launch("convolve", (2, 3), (32, 32), image, weights, out, 70, 50)
    assert compare(out, convolved(image, weights), 1e-6).wrong == 0


def test_conv2d_by_shuffles_is_wrong_in_the_last_lanes_and_an_image_of_ones_hides_it() -> None:
    text, weights = source("conv2d_shuffle"), random(3, 3)
    wrong = {}
    for name, image in (("ones", np.ones((8, 96), np.float32)), ("random", random(8, 96))):
        out = poisoned((8, 96), "float32")
        with checking(ALL_CHECKS):
            device(text).launch("convolve_row", (3, 8), 32, image, weights, out, 8, 96)
        error = np.abs(out - convolved(image, weights)) > 1e-5
        wrong[name] = set(np.flatnonzero(error[:, :95].any(axis=0)))
    # The last column, where the halo is outside the image, is left out: there even ones show the mistake.
    assert wrong["ones"] == set()
    assert wrong["random"] == {30, 31, 62, 63, 94}
