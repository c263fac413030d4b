// Each thread copies four neighbouring floats, one at a time.
constexpr int kEach = 4;

__global__ void neighbours(
    const float* __restrict__ source, float* __restrict__ target, size_t n)
{
    const size_t first =
        kEach * (static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x);
    if (first + kEach <= n) {
#pragma unroll
        for (int k = 0; k < kEach; ++k) {
            target[first + k] = source[first + k];
        }
    }
}
