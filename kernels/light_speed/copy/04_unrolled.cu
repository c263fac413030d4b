// Idea: each thread issues four 16-byte loads before its first store.
// From the rung before: kUnroll independent loads per thread, for more bytes in flight;
// a quarter of the blocks.
// Requires: both arrays aligned to 16 bytes; a block of kThreads threads.
constexpr size_t kWidth = sizeof(float4) / sizeof(float);
constexpr int kThreads = 256;
constexpr int kUnroll = 4;

__global__ void copy_unrolled(
    const float* __restrict__ source, float* __restrict__ target, size_t n)
{
    const size_t quads = n / kWidth;
    const size_t first =
        static_cast<size_t>(blockIdx.x) * kThreads * kUnroll + threadIdx.x;
    float4 value[kUnroll];
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {
        const size_t i = first + u * kThreads;
        if (i < quads) {
            value[u] = reinterpret_cast<const float4*>(source)[i];
        }
    }
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {
        const size_t i = first + u * kThreads;
        if (i < quads) {
            reinterpret_cast<float4*>(target)[i] = value[u];
        }
    }
    const size_t tail =
        quads * kWidth + static_cast<size_t>(blockIdx.x) * kThreads + threadIdx.x;
    if (tail < n) {
        target[tail] = source[tail];
    }
}
