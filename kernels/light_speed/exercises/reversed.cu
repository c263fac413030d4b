// Correct, but each thread takes kEach neighbouring floats. Assign them so that no
// request touches more than 4 sectors.
constexpr size_t kEach = 8;

__global__ void reversed(
    const float* __restrict__ source, float* __restrict__ target, size_t n)
{
    const size_t first =
        (static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x) * kEach;
    for (size_t k = 0; k < kEach; ++k) {
        const size_t i = first + k;
        if (i < n) {
            target[i] = source[n - 1 - i];
        }
    }
}
