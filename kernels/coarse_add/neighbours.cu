// Idea: a thread adds kOut neighbouring elements.
// From the rung before: the first rung; kOut = 1 is the kernel with one element a thread.
// Requires: a block of kThreads threads.
constexpr int kThreads = 256;

template <int kOut>
__global__ void __launch_bounds__(kThreads)
coarse_add_neighbours(const float* __restrict__ x, const float* __restrict__ y, float* __restrict__ z, size_t n)
{
    const size_t first = (static_cast<size_t>(blockIdx.x) * kThreads + threadIdx.x) * kOut;
#pragma unroll
    for (int o = 0; o < kOut; ++o) {
        const size_t i = first + o;
        if (i < n) {
            z[i] = x[i] + y[i];
        }
    }
}
