// Idea: a thread's kOut elements lie kThreads apart, so that a warp's lanes stay side by side in every access.
// From the rung before: the block's elements are dealt out to its threads one by one, not kOut by kOut.
// Requires: a block of kThreads threads.
constexpr int kThreads = 256;

template <int kOut>
__global__ void __launch_bounds__(kThreads)
coarse_add_strided(const float* __restrict__ x, const float* __restrict__ y, float* __restrict__ z, size_t n)
{
    const size_t first = static_cast<size_t>(blockIdx.x) * kThreads * kOut + threadIdx.x;
#pragma unroll
    for (int o = 0; o < kOut; ++o) {
        const size_t i = first + o * kThreads;
        if (i < n) {
            z[i] = x[i] + y[i];
        }
    }
}
