// Correct, but one float at a time. Let each thread load, combine and store four
// neighbouring floats as one float4.
constexpr size_t kWidth = sizeof(float4) / sizeof(float);

__global__ void triad(
    const float* __restrict__ x, const float* __restrict__ y, float* __restrict__ z,
    float a, size_t n)
{
    // Enough for n / kWidth quads and the tail.
    const size_t threads = static_cast<size_t>(gridDim.x) * blockDim.x;
    for (size_t i = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < n;
         i += threads) {
        z[i] = fmaf(a, x[i], y[i]);
    }
}
