// Idea: each thread has eight 16-byte loads in flight before it adds anything.
// From the rung before: 16-byte loads, all issued before the first is used.
// Requires: source aligned to 16 bytes; a block of kThreads threads; one block per
// chunk of kChunk floats.
constexpr int kThreads = 256;
constexpr int kChunk = 8192;
constexpr int kWidth = sizeof(float4) / sizeof(float);
constexpr int kUnroll = kChunk / (kThreads * kWidth);
static_assert(
    kUnroll * kThreads * kWidth == kChunk,
    "the threads' loads must cover the chunk exactly");

__global__ void read_vectorised(
    const float* __restrict__ source, float* __restrict__ sums, size_t n)
{
    __shared__ float partial[kThreads];
    const size_t start = static_cast<size_t>(blockIdx.x) * kChunk;
    float sum = 0.0f;
    if (start + kChunk <= n) {
        float4 value[kUnroll];
#pragma unroll
        for (int u = 0; u < kUnroll; ++u) {
            value[u] = reinterpret_cast<const float4*>(
                source + start)[threadIdx.x + u * kThreads];
        }
#pragma unroll
        for (int u = 0; u < kUnroll; ++u) {
            sum += (value[u].x + value[u].y) + (value[u].z + value[u].w);
        }
    } else {
        for (size_t i = start + threadIdx.x; i < n; i += kThreads) {
            sum += source[i];
        }
    }
    partial[threadIdx.x] = sum;
    for (int half = kThreads / 2; half > 0; half /= 2) {
        __syncthreads();  // the last step's sums are written before this one reads
        if (threadIdx.x < half) {
            partial[threadIdx.x] += partial[threadIdx.x + half];
        }
    }
    if (threadIdx.x == 0) {
        sums[blockIdx.x] = partial[0];
    }
}
