// Idea: lane i reads element i * stride: a warp's loads touch up to 32 sectors.
// From the rung before: the first rung, and the only one; the benchmark varies stride.
// Requires: a source of n * stride floats.
__global__ void copy_strided(
    const float* __restrict__ source, float* __restrict__ target, size_t n,
    size_t stride)
{
    const size_t i = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < n) {
        target[i] = source[i * stride];
    }
}
