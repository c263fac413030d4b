"""Layered textures, cube maps, gathers and surfaces, compared with NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from harness import Device

from climb import fake_cupy as cp
from climb.emulator import Misaligned, OutOfBounds, Surface, Texture, UnsupportedInstruction

SOURCE = r"""
typedef cudaTextureObject_t T;
typedef cudaSurfaceObject_t S;
extern "C" __global__ void layers(T lines, T planes, const float* x, const float* y, float* out) {
    int t = threadIdx.x;
    out[t] = tex1DLayered<float>(lines, x[t], t % 5);
    out[64 + t] = tex2DLayered<float>(planes, x[t], y[t], t % 4);
    out[128 + t] = tex2DLayeredLod<float>(planes, x[t], y[t], t % 3, 0.f)
                 - tex2DLayeredGrad<float>(planes, x[t], y[t], t % 3, make_float2(1, 0), make_float2(0, 1));
}
extern "C" __global__ void cubes(T cube, T cubes, const float3* v, float* out) {
    int t = threadIdx.x;
    out[t] = texCubemap<float>(cube, v[t].x, v[t].y, v[t].z);
    out[64 + t] = texCubemapLayered<float>(cubes, v[t].x, v[t].y, v[t].z, t % 2);
}
extern "C" __global__ void gathers(T plane, const float* x, const float* y, float4* out) {
    int t = threadIdx.x;
    out[t] = tex2Dgather<float4>(plane, x[t], y[t], 0);
    out[64 + t] = tex2Dgather<float4>(plane, x[t], y[t], 1);
}
// Each thread moves one element through surfaces of several shapes.
extern "C" __global__ void copies(S line, S plane, S volume, S layers, int* out) {
    int t = threadIdx.x, x = t % 8, y = t / 8 % 4, z = t / 32;
    surf1Dwrite(10 * t, line, 4 * t);
    surf2Dwrite(make_short2(t, -t), plane, 4 * x, y + 4 * z);
    surf3Dwrite((unsigned char)(3 * t), volume, x, y, z);
    surf2DLayeredwrite((long long)t << 40, layers, 8 * x, y, z);
    out[t] = surf1Dread<int>(line, 4 * t) + surf3Dread<unsigned char>(volume, x, y, z);
    short2 both = surf2Dread<short2>(plane, 4 * x, y + 4 * z);
    out[64 + t] = both.x - both.y + int(surf2DLayeredread<long long>(layers, 8 * x, y, z) >> 40);
}
extern "C" __global__ void edges(cudaSurfaceObject_t plane, int x, int y, int* out) {
    out[0] = surf2Dread<int>(plane, x, y, cudaBoundaryModeZero);
    out[1] = surf2Dread<int>(plane, x, y, cudaBoundaryModeClamp);
    surf2Dwrite(77, plane, x, y, cudaBoundaryModeZero);
    surf2Dwrite(99, plane, x, y, cudaBoundaryModeClamp);
}
extern "C" __global__ void outside(S plane, int x, int y, int* out) { out[0] = surf2Dread<int>(plane, x, y); }
extern "C" __global__ void sums(S line) {
    unsigned x = 4 * (threadIdx.x % 4), value = threadIdx.x;
    asm volatile("sured.b.add.1d.u32.trap [%0, {%1}], %2;" :: "l"(line), "r"(x), "r"(value));
    asm volatile("sured.b.max.1d.s32.clamp [%0, {%1}], %2;" :: "l"(line), "r"(x + 16), "r"(value));
}
"""


@pytest.fixture(scope="module")
def device() -> Device:
    return Device(SOURCE)


def handle(of: Texture | Surface) -> np.uint64:
    return np.uint64(of.handle)


def test_layers_of_a_texture_are_read_one_by_one(device: Device) -> None:
    rng = np.random.default_rng(1)
    lines, planes = rng.random((4, 9, 1), np.float32), rng.random((3, 5, 7, 1), np.float32)
    x, y = (rng.uniform(-1, 9, 64).astype(np.float32) for _ in range(2))
    out = np.zeros(192, np.float32)
    first, second = Texture(lines, layered=True), Texture(planes, layered=True)
    device.launch("layers", 1, 64, handle(first), handle(second), x, y, out)
    i, j = np.clip(np.floor(x), 0, 8).astype(int), np.clip(np.floor(y), 0, 4).astype(int)
    t = np.arange(64)
    assert (out[:64] == lines[np.minimum(t % 5, 3), i, 0]).all()  # a layer beyond the last is the last
    assert (out[64:128] == planes[np.minimum(t % 4, 2), j, np.minimum(i, 6), 0]).all()
    assert (out[128:] == 0).all()  # with one level of detail, level and gradients change nothing


def test_a_direction_chooses_the_face_of_a_cube_map(device: Device) -> None:
    faces = np.arange(12 * 4 * 4, dtype=np.float32).reshape(12, 4, 4, 1)
    v = np.random.default_rng(2).uniform(-1, 1, (64, 3)).astype(np.float32)
    one, two = Texture(faces[:6], normalised=True, cube=True), Texture(faces, normalised=True, cube=True, layered=True)
    out = np.zeros(128, np.float32)
    device.launch("cubes", 1, 64, handle(one), handle(two), v, out)
    for t, (x, y, z) in enumerate(v.astype(float)):
        m = max(abs(x), abs(y), abs(z))
        face, s, r = next(
            (face, s, r)
            for face, main, s, r in ((0, x, -z, -y), (1, -x, z, -y), (2, y, x, z), (3, -y, x, -z), (4, z, x, -y),
                                     (5, -z, -x, -y))
            if main == m
        )  # fmt: skip
        column, row = (min(int((each / m + 1) / 2 * 4), 3) for each in (s, r))
        assert out[t] == faces[face, row, column, 0]
        assert out[64 + t] == faces[face + 6 * (t % 2), row, column, 0]


def test_gather_returns_the_four_texels_of_linear_filtering(device: Device) -> None:
    rng = np.random.default_rng(3)
    plane = rng.random((6, 5, 2), np.float32)
    x, y = (rng.uniform(0, 6, 64).astype(np.float32) for _ in range(2))
    out, texture = np.zeros((128, 4), np.float32), Texture(plane)
    device.launch("gathers", 1, 64, handle(texture), x, y, out)
    for t in range(64):
        i, j = int(np.floor(x[t] - 0.5)), int(np.floor(y[t] - 0.5))
        for n, (a, b) in enumerate(((i, j + 1), (i + 1, j + 1), (i + 1, j), (i, j))):
            for channel in range(2):
                assert out[64 * channel + t, n] == plane[np.clip(b, 0, 5), np.clip(a, 0, 4), channel]


def test_surfaces_of_every_shape_are_written_and_read(device: Device) -> None:
    line, plane = Surface(np.zeros((64, 1), np.int32)), Surface(np.zeros((8, 8, 2), np.int16))
    volume = Surface(np.zeros((2, 4, 8, 1), np.uint8))
    layers = Surface(np.zeros((2, 4, 8, 2), np.int32), layered=True)
    out = np.zeros(128, np.int32)
    device.launch("copies", 1, 64, *map(handle, (line, plane, volume, layers)), out)
    t = np.arange(64)
    assert (line.data[:, 0] == 10 * t).all()
    assert (plane.data.reshape(64, 2) == np.stack([t, -t], axis=1)).all()
    assert (volume.data.reshape(64) == 3 * t % 256).all()
    assert (layers.data.reshape(64, 2)[:, 1] == t << 8).all()
    assert (out[:64] == 10 * t + 3 * t % 256).all() and (out[64:] == 3 * t).all()


@pytest.mark.parametrize(("x", "y", "near"), [(-4, 2, (2, 0)), (40, 1, (1, 7)), (8, 9, (3, 2)), (28, -1, (0, 7))])
def test_outside_a_surface_modes_clamp_or_read_zero(device: Device, x: int, y: int, near: tuple[int, int]) -> None:
    given = np.arange(100, 132, dtype=np.int32).reshape(4, 8, 1)
    plane, out = Surface(given.copy()), np.zeros(2, np.int32)
    device.launch("edges", 1, 1, handle(plane), x, y, out)
    assert out.tolist() == [0, given[near][0]]
    given[near] = 99
    assert (plane.data == given).all()


def test_an_access_outside_a_surface_is_a_fault(device: Device) -> None:
    plane, out = Surface(np.zeros((4, 8, 1), np.int32)), np.zeros(1, np.int32)
    with pytest.raises(OutOfBounds, match="4 bytes at y 2, x 32 of a surface of 4 x 32 bytes") as caught:
        device.launch("outside", 1, 1, handle(plane), 32, 2, out)
    assert "surf2Dread<int>(plane, x, y)" in caught.value.where.text
    with pytest.raises(Misaligned, match="4 bytes at x 6 of a surface"):
        device.launch("outside", 1, 1, handle(plane), 6, 2, out)
    with pytest.raises(UnsupportedInstruction, match="a surface of geometry 1d accessed as 2d"):
        line = Surface(np.zeros((8, 1), np.int32))
        device.launch("outside", 1, 1, handle(line), 0, 0, out)
    with pytest.raises(OutOfBounds, match="is not a live surface object"):
        device.launch("outside", 1, 1, np.uint64(77), 0, 0, out)


def test_reductions_on_surfaces_are_atomic(device: Device) -> None:
    line = Surface(np.zeros((8, 1), np.int32))
    device.launch("sums", 1, 64, handle(line))
    assert line.data[:, 0].tolist() == [sum(range(t, 64, 4)) for t in range(4)] + [60, 61, 62, 63]


def test_surface_objects_are_made_as_in_cupy() -> None:
    texture, runtime = cp.cuda.texture, cp.cuda.runtime
    channels = texture.ChannelFormatDescriptor(32, 0, 0, 0, runtime.cudaChannelFormatKindSigned)
    array = texture.CUDAarray(channels, 8, 4, flags=runtime.cudaArraySurfaceLoadStore)
    surface = texture.SurfaceObject(texture.ResourceDescriptor(runtime.cudaResourceTypeArray, cuArr=array))
    out, values = cp.zeros(2, dtype=cp.int32), np.arange(32, dtype=np.int32).reshape(4, 8)
    array.copy_from(values)
    kernel = cp.RawKernel(SOURCE, "edges")
    kernel((1,), (1,), (surface, 12, 2, out))
    assert out.get().tolist() == [values[2, 3]] * 2
    array.copy_to(values)
    assert values[2, 3] == 99
    plain = texture.CUDAarray(channels, 8, 4)
    with pytest.raises(runtime.CUDARuntimeError, match="cudaArraySurfaceLoadStore"):
        texture.SurfaceObject(texture.ResourceDescriptor(runtime.cudaResourceTypeArray, cuArr=plain))
    with pytest.raises(TypeError, match="is a SurfaceObject, but the kernel takes int"):
        kernel((1,), (1,), (surface, surface, 2, out))
