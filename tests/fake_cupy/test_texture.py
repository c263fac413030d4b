"""Textures, created as in CuPy."""

from __future__ import annotations

import numpy as np
import pytest

from climb import fake_cupy as cp
from climb.fake_cupy.cuda import texture

SOURCE = r"""
extern "C" __global__ void blur(cudaTextureObject_t image, float* out, int n) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= n || y >= n) return;
    float sum = 0.0f;
    for (int dy = -1; dy <= 1; ++dy)
        for (int dx = -1; dx <= 1; ++dx) sum += tex2D<float>(image, x + dx + 0.5f, y + dy + 0.5f);
    out[y * n + x] = sum;
}
"""


def image(values: np.ndarray, mode: int, filtering: int = 0) -> texture.TextureObject:
    runtime = cp.cuda.runtime
    desc = texture.ChannelFormatDescriptor(32, 0, 0, 0, runtime.cudaChannelFormatKindFloat)
    array = texture.CUDAarray(desc, values.shape[1], values.shape[0])
    array.copy_from(cp.asarray(values))
    resource = texture.ResourceDescriptor(runtime.cudaResourceTypeArray, cuArr=array)
    return texture.TextureObject(
        resource, texture.TextureDescriptor((mode, mode), filtering, runtime.cudaReadModeElementType)
    )


@pytest.mark.parametrize("filtering", [0, 1])
@pytest.mark.parametrize("mode,padding", [("cudaAddressModeClamp", "edge"), ("cudaAddressModeBorder", "constant")])
def test_stencil_reads_padding_beyond_the_edges(mode, padding, filtering):
    """At the centre of a texel, linear filtering gives the texel itself."""
    n = 19
    values = np.random.default_rng(0).integers(0, 9, (n, n)).astype(np.float32)
    out = cp.zeros((n, n), cp.float32)
    kernel = cp.RawKernel(SOURCE, "blur")
    kernel((2, 2), (16, 16), (image(values, getattr(cp.cuda.runtime, mode), filtering), out, np.int32(n)))
    wide = np.pad(values, 1, padding)
    want = sum(wide[dy : dy + n, dx : dx + n] for dy in range(3) for dx in range(3))
    assert (out.get() == want).all()


def test_array_copies_in_and_out_and_refuses_other_shapes():
    desc = texture.ChannelFormatDescriptor(32, 32, 0, 0, 2)
    array = texture.CUDAarray(desc, 4, 3, 2)
    values = np.arange(48, dtype=np.float32).reshape(2, 3, 8)
    array.copy_from(values)
    out = cp.zeros((2, 3, 8), cp.float32)
    array.copy_to(out)
    assert (out.get() == values).all() and array.ndim == 3
    with pytest.raises(ValueError, match="expected float32"):
        array.copy_from(values.ravel())


FETCH = r"""
extern "C" __global__ void fetch(cudaTextureObject_t memory, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = tex1Dfetch<KIND>(memory, i + 2)MEMBER;
}
"""


@pytest.mark.parametrize("mode", [0, 1])
def test_texture_of_linear_memory_sees_later_changes(mode):
    """Texels of two bytes, read as integers or as fractions; the array changes after the texture is made."""
    runtime = cp.cuda.runtime
    values = cp.arange(64, dtype=cp.uint8)
    desc = texture.ChannelFormatDescriptor(8, 8, 0, 0, runtime.cudaChannelFormatKindUnsigned)
    resource = texture.ResourceDescriptor(
        runtime.cudaResourceTypeLinear, arr=values, chDesc=desc, sizeInBytes=values.nbytes
    )
    made = texture.TextureObject(resource, texture.TextureDescriptor((), 0, mode))
    values += 100
    kind = "float2" if mode else "uchar2"
    source = FETCH.replace("KIND", kind).replace("MEMBER", ".y")
    out = cp.zeros(32, cp.float32)
    cp.RawKernel(source, "fetch")((1,), (32,), (made, out, np.int32(32)))
    want = [101 + 2 * (i + 2) if i < 30 else 0 for i in range(32)]
    assert np.allclose(out.get(), np.array(want) / (255 if mode else 1), rtol=1e-7, atol=0)


def test_texture_of_pitched_memory_reads_its_rows() -> None:
    runtime = cp.cuda.runtime
    values = cp.asarray(np.arange(5 * 16, dtype=np.float32).reshape(5, 16))
    desc = texture.ChannelFormatDescriptor(32, 0, 0, 0, runtime.cudaChannelFormatKindFloat)
    rows = {"arr": values, "chDesc": desc, "width": 13, "height": 5, "pitchInBytes": 64}
    resource = texture.ResourceDescriptor(runtime.cudaResourceTypePitch2D, **rows)
    made = texture.TextureObject(resource, texture.TextureDescriptor((1, 1)))
    values += 1000
    source = """extern "C" __global__ void corner(cudaTextureObject_t t, float* out) {
    out[threadIdx.x] = tex2D<float>(t, 11.5f + threadIdx.x, 3.5f + threadIdx.x);
}"""
    out = cp.zeros(3, cp.float32)
    cp.RawKernel(source, "corner")((1,), (3,), (made, out))
    assert out.get().tolist() == [1000 + 3 * 16 + 11, 1000 + 4 * 16 + 12, 1000 + 4 * 16 + 12]
    with pytest.raises(runtime.CUDARuntimeError, match="the pitch is a multiple of 32"):
        texture.ResourceDescriptor(runtime.cudaResourceTypePitch2D, **(rows | {"pitchInBytes": 60}))


def test_unsupported_texture_is_refused_with_a_reason():
    with pytest.raises(NotImplementedError, match="1, 2 or 4 equal channels"):
        texture.ChannelFormatDescriptor(8, 16, 0, 0, 1)
    with pytest.raises(NotImplementedError, match="no textures of mipmapped arrays"):
        texture.ResourceDescriptor(cp.cuda.runtime.cudaResourceTypeMipmappedArray)
    with pytest.raises(ValueError, match="arr must be a C-contiguous device array"):
        texture.ResourceDescriptor(cp.cuda.runtime.cudaResourceTypePitch2D)
    with pytest.raises(ValueError, match="arr must be a device array, and chDesc a"):
        texture.ResourceDescriptor(cp.cuda.runtime.cudaResourceTypeLinear)
    with pytest.raises(NotImplementedError, match="no textures with sRGB"):
        texture.TextureDescriptor(sRGB=1)
    values = np.zeros((4, 4), np.float32)
    with pytest.raises(TypeError, match="is a TextureObject, but the kernel takes float"):
        cp.RawKernel(SOURCE, "blur")((1, 1), (4, 4), (image(values, 1), image(values, 1), np.int32(4)))
