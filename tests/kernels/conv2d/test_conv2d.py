"""The 2D convolution: its borders, filters of all sizes, what it refuses; arrays that go by value or as textures."""

from __future__ import annotations

import numpy as np
import pytest
from tools.thorough import choose, sparse, thorough

from climb import ArgumentError, cp, verify
from climb.bench.binding import by_value
from climb.bench.problem import ByValue, Launch, Textured
from climb.toolchain.sass import resources
from kernels.conv2d.conv2d import beyond, ladder, problem, strip_height

RUNGS = pytest.mark.parametrize("rung", list(ladder), ids=lambda rung: rung.name)
MODES = {"zero": ("constant", 3), "clamp": ("edge", 9), "reflect": ("reflect", 3)}


def size(rows: int, cols: int, k: int, k_cols: int, border: str) -> dict[str, object]:
    return {"rows": rows, "cols": cols, "k": k, "k_cols": k_cols, "border": border}


@pytest.mark.parametrize("border", MODES)
@pytest.mark.parametrize("n", [1, 2, 3, 7])
def test_borders_equal_numpys_padding_modes(border: str, n: int) -> None:
    mode, reach = MODES[border]
    axis = np.arange(1, n + 1)
    where = beyond(np.arange(-reach, n + reach), n, border)
    assert np.where(where < 0, 0, axis[where]).tolist() == np.pad(axis, reach, mode).tolist()


@pytest.mark.parametrize("border", MODES)
def test_reference_equals_the_sum_written_out(border: str) -> None:
    """Filters lie as in cuDNN, with row 0 over the pixels above: a filter turned over would differ."""
    at = size(5, 8, 3, 7, border)
    inputs = ladder.inputs(at, seed=3)
    wide = np.pad(inputs["image"].astype(np.float64), ((1, 1), (3, 3)), MODES[border][0])
    expected = sum(inputs["filter"][i, j] * wide[i : i + 5, j : j + 8] for i in range(3) for j in range(7))
    assert np.allclose(problem.reference(inputs, at)["result"], expected, rtol=1e-12)


@pytest.mark.parametrize("rung", sparse(ladder), ids=lambda rung: rung.name)
@pytest.mark.parametrize(
    "at",
    [thorough((20, 40, 7, 7, "zero")), (21, 37, 9, 9, "clamp"), thorough((9, 36, 11, 11, "reflect")),
     thorough((19, 20, 1, 11, "reflect")), thorough((40, 33, 11, 1, "clamp")), thorough((1, 300, 5, 3, "zero")),
     thorough((300, 1, 3, 5, "clamp"))],
)  # fmt: skip
def test_filters_of_every_size_are_right(rung, at: tuple[int, int, int, int, str]) -> None:
    verify(rung, size(*at))


@RUNGS
def test_even_and_large_filters_are_refused(rung) -> None:
    for k, k_cols, says in ((4, 3, "k must be odd"), (3, 2, "k_cols must be odd"), (3, 13, "k_cols may be at most 11")):
        with pytest.raises(ArgumentError, match=says):
            rung.launches(size(8, 8, k, k_cols, "zero"))


def test_unknown_border_is_refused_by_name() -> None:
    image, weights = cp.zeros((4, 4), cp.float32), cp.ones((3, 3), cp.float32)
    with pytest.raises(ArgumentError, match="'border' is 'wrap'; expected one of zero, clamp, reflect"):
        ladder["naive"](image, weights, border="wrap")
    assert cp.asnumpy(ladder["naive"](image + 1, weights))[0, 0] == 4  # zeros beyond the border, unless it is said


def test_image_wider_than_a_texture_is_refused() -> None:
    with pytest.raises(ArgumentError, match="cols may be at most 131072"):
        ladder["texture"].launches(size(1, 131073, 3, 3, "zero"))


def test_image_smaller_than_the_filter_is_reflected_repeatedly() -> None:
    for rows, cols, kernel in ((5, 6, "kReflect,"), (2, 9, "kReflectOften,"), (9, 1, "kReflectOften,")):
        (launch,) = ladder["prefetched"].launches(size(rows, cols, 5, 5, "reflect"))
        assert kernel in launch.kernel
        verify(ladder["prefetched"], size(rows, cols, 5, 5, "reflect"))


def test_strip_height_lets_all_blocks_be_resident_at_once() -> None:
    for k, resident in ((3, 8), (5, 8), (7, 8), (9, 6), (11, 4))[:: choose(4, thorough=1)]:
        at = size(8192, 8192, k, k, "zero")
        (launch,) = ladder["prefetched"].launches(at)
        assert 0.9 * 132 * resident < launch.grid[0] * launch.grid[1] <= 132 * resident
        assert launch.grid[1] * strip_height(at) >= 8192
        registers = resources(ladder["prefetched"].compiled(at), launch.kernel).registers
        assert resident * 64 * registers <= 65536
    assert strip_height(size(64, 64, 11, 11, "zero")) == 22


def test_filter_by_value_keeps_its_values_of_when_the_rung_was_prepared() -> None:
    at = size(4, 4, 3, 3, "zero")
    arrays = {"image": cp.ones((4, 4), cp.float32), "filter": cp.ones((3, 3), cp.float32)}
    arrays["result"] = cp.zeros((4, 4), cp.float32)
    launch = ladder["constant"].prepare(arrays, at)
    arrays["filter"].fill(2.0)
    launch()
    assert cp.asnumpy(arrays["result"])[1, 1] == 9


def test_array_by_value_is_one_structure() -> None:
    values = np.arange(6, dtype=np.float32).reshape(2, 3)
    structure = by_value(values)
    assert structure.shape == (1,) and structure.tobytes() == values.tobytes()


def test_arguments_by_value_and_textures_are_named_in_records() -> None:
    launch = Launch("f", (1,), (32,), (ByValue("filter"), Textured("image", "clamp"), "result", np.int32(4)))
    assert launch.as_json()["args"] == ["filter by value", "image as a texture, clamp", "result", "int32(4)"]


def test_structure_of_another_size_is_refused() -> None:
    from climb import fake_cupy

    kernel = fake_cupy.RawKernel(
        'struct S { float at[4]; }; extern "C" __global__ void f(S s, float* out) { out[0] = s.at[3]; }', "f"
    )
    out = fake_cupy.zeros(1, np.float32)
    kernel((1,), (1,), (by_value(np.arange(4, dtype=np.float32)), out))
    assert out.get()[0] == 3
    with pytest.raises(TypeError, match=r"argument 1 .* is a structure of 12 bytes, but the kernel takes S"):
        kernel((1,), (1,), (by_value(np.zeros(3, np.float32)), out))
