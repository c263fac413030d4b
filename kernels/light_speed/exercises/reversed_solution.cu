// A block takes the same floats as before. In each of its kEach steps, neighbouring
// lanes take neighbouring floats.
constexpr size_t kEach = 8;

__global__ void reversed(
    const float* __restrict__ source, float* __restrict__ target, size_t n)
{
    const size_t first =
        static_cast<size_t>(blockIdx.x) * blockDim.x * kEach + threadIdx.x;
    for (size_t k = 0; k < kEach; ++k) {
        const size_t i = first + k * blockDim.x;
        if (i < n) {
            target[i] = source[n - 1 - i];
        }
    }
}
