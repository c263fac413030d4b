"""Texture reads: compare with the formulas of the CUDA C++ Programming Guide, one texel at a time, and with a GPU's."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from harness import Device

from climb.emulator import OutOfBounds, Texture, UnsupportedInstruction
from climb.emulator.runtime.textures import sample

SOURCE = r"""
extern "C" __global__ void k(cudaTextureObject_t a, const float* x, const float* y, const float* z, V* o) {
    int t = threadIdx.x;
    o[t] = READ;
}
"""
READS = {1: "tex1D<V>(a, x[t])", 2: "tex2D<V>(a, x[t], y[t])", 3: "tex3D<V>(a, x[t], y[t], z[t])"}


def texel(texture: Texture, place: tuple[int, ...], modes: list[str]) -> np.ndarray:
    """The texel at x, y, z, which may be outside the texture."""
    index = []
    for i, n, mode in zip(place, texture.data.shape[-2::-1], modes, strict=True):
        if mode == "border" and not 0 <= i < n:
            return np.array(texture.border[: texture.data.shape[-1]])
        index.append(i % n if mode == "wrap" else min(max(i, 0), n - 1))
    return texture.data[tuple(index[::-1])].astype(np.float64)


def expected(texture: Texture, place: tuple[float, ...]) -> np.ndarray:
    """The value of a read, by the appendix on texture fetching of the CUDA C++ Programming Guide."""
    modes, scaled = [], []
    for x, n, mode in zip(map(float, place), texture.data.shape[-2::-1], texture.addressing, strict=False):
        if texture.normalised:
            if mode == "wrap":
                x = x - math.floor(x)
            if mode == "mirror":
                x = x - math.floor(x) if math.floor(x) % 2 == 0 else 1 - (x - math.floor(x))
            x *= n
        modes.append("clamp" if mode == "mirror" or (mode == "wrap" and not texture.normalised) else mode)
        scaled.append(x)
    if texture.filtering == "point":
        return texel(texture, tuple(math.floor(x) for x in scaled), modes)
    total = np.zeros(texture.data.shape[-1])
    for corner in range(1 << len(scaled)):
        weight, where = 1.0, []
        for axis, x in enumerate(scaled):
            side, low = corner >> axis & 1, math.floor(x - 0.5)
            share = math.floor((x - 0.5 - low) * 256 + 0.5) / 256
            weight *= share if side else 1 - share
            where.append(low + side)
        total += weight * texel(texture, tuple(where), modes)
    return total


@pytest.mark.parametrize("mode", ["wrap", "clamp", "mirror", "border"])
@pytest.mark.parametrize("normalised", [False, True])
@pytest.mark.parametrize("filtering", ["point", "linear"])
@pytest.mark.parametrize("shape", [(7, 1), (5, 6, 1), (5, 6, 4), (3, 4, 5, 2)])
def test_reads_match_the_formulas_of_the_guide(shape, filtering, normalised, mode):
    rng = np.random.default_rng(0)
    data = rng.normal(size=shape).astype(np.float32)
    other = {"wrap": "mirror", "clamp": "border", "mirror": "wrap", "border": "clamp"}[mode]
    texture = Texture(data, (mode, other, mode), filtering, normalised, (9.0, 8.0, 7.0, 6.0))
    places = [rng.uniform(-1.5, 2.5, 96).astype(np.float32) * np.float32(1 if normalised else n) for n in (7, 6, 3)]
    kind = {1: "float", 2: "float2", 4: "float4"}[shape[-1]]
    device = Device(SOURCE.replace("READ", READS[len(shape) - 1]).replace("V", kind))
    out = np.zeros((96, shape[-1]), np.float32)
    device.launch("k", 1, 96, np.uint64(texture.handle), *places, out)
    want = np.array([expected(texture, place) for place in zip(*places[: len(shape) - 1], strict=True)])
    # The guide multiplies the weights of the axes exactly. A GPU rounds two products of 256ths in two dimensions, six
    # in three, each of which moves weight between two texels; what it does in one dimension is the guide's.
    rounded = {1: 0, 2: 2, 3: 6}[len(shape) - 1] if filtering == "linear" else 0
    width = max(data.max(), *texture.border) - min(data.min(), *texture.border)
    assert (np.abs(out - want) <= rounded * width / 512 + np.abs(want) * 2.0**-23).all()
    assert rounded or (out != want.astype(np.float32)).mean() < 0.02  # halves are rounded away from zero


H200 = np.load(Path(__file__).parent / "data" / "textures.npz")
EXTENTS = {"t1": (64,), "t2": (24, 40), "t3": (10, 12, 20), "a2": (5, 24, 40), "cube": (6, 16, 16)}


@pytest.mark.parametrize("picture", ["random", "large"])
@pytest.mark.parametrize("how", ["absolute", "normalised"])
@pytest.mark.parametrize("name", EXTENTS)
def test_linear_filtering_gives_the_bits_of_an_h200(name, how, picture):
    """Reads of random texels, in [0, 1) and of either sign up to some thousands."""
    if name == "cube" and how == "absolute":
        pytest.skip("the coordinates of a cube are a direction")
    if picture == "random":
        data = np.random.default_rng(5).random(EXTENTS[name], np.float32)
    else:
        data = (np.random.default_rng(6).standard_normal(EXTENTS[name]) * 1000).astype(np.float32)
    texture = Texture(data[..., None], filtering="linear", normalised=how == "normalised",
                      layered=name == "a2", cube=name == "cube")  # fmt: skip
    axes = H200[f"{name}_{how}_coordinates"][: {"t1": 1, "t2": 2, "a2": 2}.get(name, 3)]
    layer = H200[f"{name}_{how}_layer"] if name == "a2" else None
    found = sample(texture, tuple(axes), layer)[0]
    assert np.array_equal(found.view(np.uint32), H200[f"{name}_{how}_{picture}"])


def launch(handle: int, read: str = READS[2]) -> np.ndarray:
    out = np.zeros(32, np.float32)
    device = Device(SOURCE.replace("READ", read).replace("V", "float"))
    device.launch("k", 1, 32, np.uint64(handle), *[np.zeros(32, np.float32)] * 3, out)
    return out


def test_a_texture_reflects_its_data_and_dies_with_it():
    data = np.full((4, 4, 1), 3, np.float32)
    texture = Texture(data)
    assert (launch(texture.handle) == 3).all()
    data[:] = 4
    assert (launch(texture.handle) == 4).all()
    handle = texture.handle
    del texture
    with pytest.raises(OutOfBounds, match="is not a live texture object") as caught:
        launch(handle)
    assert caught.value.where.line == 4


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32"])
@pytest.mark.parametrize("channels", [1, 2, 4])
def test_integers_are_read_as_they_are(dtype, channels):
    names = {"int8": "char", "uint8": "uchar", "int16": "short", "uint16": "ushort", "int32": "int", "uint32": "uint"}
    kind = f"{names[dtype]}{channels}"
    info = np.iinfo(dtype)
    data = np.random.default_rng(1).integers(info.min, info.max, (5, 8, channels), dtype, endpoint=True)
    texture = Texture(data)
    device = Device(SOURCE.replace("READ", "tex2D<V>(a, x[t], y[t])").replace("V", kind))
    x, y = (np.arange(96) % 8 + 0.5).astype(np.float32), (np.arange(96) // 8 % 5 + 0.5).astype(np.float32)
    out = np.zeros((96, channels), dtype)
    device.launch("k", 1, 96, np.uint64(texture.handle), x, y, x, out)
    assert (out == data[np.arange(96) // 8 % 5, np.arange(96) % 8]).all()


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16"])
@pytest.mark.parametrize("filtering", ["point", "linear"])
def test_integers_are_read_as_fractions(dtype, filtering):
    info = np.iinfo(dtype)
    data = np.array([info.min, info.min + 1, 0, 1, 5, info.max], dtype).reshape(-1, 1)
    texture = Texture(data, ("clamp",), filtering, as_fractions=True)
    device = Device(SOURCE.replace("READ", "tex1D<float>(a, x[t])").replace("V", "float"))
    out, x = np.zeros(32, np.float32), np.linspace(-1, 7, 32).astype(np.float32)
    device.launch("k", 1, 32, np.uint64(texture.handle), x, x, x, out)
    floats = np.maximum(data.astype(np.float64) / info.max, -1)
    assert floats.min() == (-1 if dtype[0] == "i" else 0) and floats.max() == 1
    same = Texture(floats.astype(np.float32), ("clamp",), filtering)
    want = [expected(same, (v,))[0] for v in x]
    assert np.allclose(out, want, rtol=0, atol=1e-7 if filtering == "linear" else 0)


def test_halves_are_read_as_floats_and_level_zero_is_accepted():
    data = np.random.default_rng(2).normal(size=(4, 4, 1)).astype(np.float16)
    texture = Texture(data)
    device = Device(SOURCE.replace("READ", "tex2DLod<V>(a, x[t], y[t], 0.0f)").replace("V", "float"))
    out, x = np.zeros(32, np.float32), (np.arange(32) % 4 + 0.5).astype(np.float32)
    y = (np.arange(32) // 4 % 4 + 0.5).astype(np.float32)
    device.launch("k", 1, 32, np.uint64(texture.handle), x, y, x, out)
    assert (out == data[np.arange(32) // 4 % 4, np.arange(32) % 4, 0]).all()


def test_linear_memory_is_read_by_index():
    data = np.arange(40, dtype=np.int32).reshape(20, 2)
    texture = Texture(data, linear=True)
    device = Device(SOURCE.replace("READ", "tex1Dfetch<V>(a, t - 4)").replace("V", "int2"))
    out, x = np.ones((32, 2), np.int32), np.zeros(32, np.float32)
    device.launch("k", 1, 32, np.uint64(texture.handle), x, x, x, out)
    assert out.tolist() == [[0, 0]] * 4 + data.tolist() + [[0, 0]] * 8
    with pytest.raises(UnsupportedInstruction, match="linear memory is fetched by index"):
        floats = Texture(np.zeros((9, 1), np.float32), linear=True)
        launch(floats.handle, READS[1])


def test_unsupported_textures_are_refused():
    texture = Texture(np.zeros((4, 4, 1), np.float32))
    with pytest.raises(UnsupportedInstruction, match="of geometry 2d read as 3d"):
        launch(texture.handle, READS[3])
    with pytest.raises(UnsupportedInstruction, match="of geometry 2d read as a2d"):
        launch(texture.handle, "tex2DLayered<float>(a, x[t], y[t], 0)")
    with pytest.raises(UnsupportedInstruction, match=r"a texture of float32, read as they are, is fetched as s32"):
        launch(texture.handle, "tex2D<int>(a, x[t], y[t])")
    with pytest.raises(ValueError, match="textures of float64 are not supported"):
        Texture(np.zeros((4, 1), np.float64))
    with pytest.raises(ValueError, match="only integers of 8 or 16 bits"):
        Texture(np.zeros((4, 1), np.int32), as_fractions=True)
    with pytest.raises(ValueError, match="linear filtering returns floats"):
        Texture(np.zeros((4, 1), np.int8), filtering="linear")
    with pytest.raises(ValueError, match="linear memory has one dimension"):
        Texture(np.zeros((4, 4, 1), np.float32), linear=True)
