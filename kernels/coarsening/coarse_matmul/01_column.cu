// Idea: a thread computes kOut elements of one column of C: a float of B, read once, serves kOut products.
// From the rung before: the first rung; kOut = 1 is the kernel with one element a thread.
// Requires: a block of kThreads threads.
constexpr int kWide = 32;  // columns of C in a block's tile: one for each lane of a warp
constexpr int kDepth = 32;
constexpr int kThreads = 256;
constexpr int kWarps = kThreads / kWide;
static_assert(kDepth == kWide, "a warp loads a row of A's tile, or of B's, in one access");

template <int kOut>
__global__ void __launch_bounds__(kThreads)
coarse_matmul_column(const float* __restrict__ A, const float* __restrict__ B, float* __restrict__ C,
                     int M, int N, int K)
{
    constexpr int kHigh = kWarps * kOut;
    __shared__ __align__(16) float a[kHigh][kDepth];
    __shared__ float b[kDepth][kWide];
    const int lane = threadIdx.x % kWide, warp = threadIdx.x / kWide;
    const int first_row = blockIdx.y * kHigh;
    const int col = blockIdx.x * kWide + lane;
    float sum[kOut] = {};
    for (int k0 = 0; k0 < K; k0 += kDepth) {
#pragma unroll
        for (int line = warp; line < kHigh; line += kWarps) {
            const bool inside = first_row + line < M && k0 + lane < K;
            a[line][lane] = inside ? A[static_cast<size_t>(first_row + line) * K + k0 + lane] : 0.0f;
        }
#pragma unroll
        for (int line = warp; line < kDepth; line += kWarps) {
            const bool inside = k0 + line < K && col < N;
            b[line][lane] = inside ? B[static_cast<size_t>(k0 + line) * N + col] : 0.0f;
        }
        __syncthreads();  // both tiles are whole before any thread reads what another has loaded

#pragma unroll
        for (int k = 0; k < kDepth; k += 4) {
            const float above[] = {b[k][lane], b[k + 1][lane], b[k + 2][lane], b[k + 3][lane]};
#pragma unroll
            for (int o = 0; o < kOut; ++o) {
                const float4 left = *reinterpret_cast<const float4*>(&a[warp * kOut + o][k]);
                sum[o] += left.x * above[0];
                sum[o] += left.y * above[1];
                sum[o] += left.z * above[2];
                sum[o] += left.w * above[3];
            }
        }
        __syncthreads();  // every thread has read these tiles before any overwrites them with the next
    }
#pragma unroll
    for (int o = 0; o < kOut; ++o) {
        const int row = first_row + warp * kOut + o;
        if (row < M && col < N) {
            C[static_cast<size_t>(row) * N + col] = sum[o];
        }
    }
}
