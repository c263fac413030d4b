// Idea: lane i reads element i * stride, so a warp's 32 loads spread over up to 32 sectors.
// From the rung before: the first rung; there is one, and the stride is swept.
// Requires: source holds n * stride floats.
__global__ void copy_strided(const float* __restrict__ source, float* __restrict__ target, size_t n, size_t stride)
{
    const size_t i = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < n) {
        target[i] = source[i * stride];
    }
}
