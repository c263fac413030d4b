// Idea: a thread computes kOut elements of a column; one float of B serves all.
// From the rung before: the first rung; with kOut = 1 it is the kernel with one element
// per thread.
// Requires: a block of kThreads threads.
constexpr int kWide = 32;
constexpr int kDepth = 32;
constexpr int kThreads = 256;
constexpr int kWarps = kThreads / kWide;
static_assert(
    kDepth == kWide, "a warp loads a row of A's tile, or of B's, in one access");

template <int kOut>
__global__ void __launch_bounds__(kThreads) coarse_matmul_register_column(
    const float* __restrict__ A, const float* __restrict__ B, float* __restrict__ C,
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
            a[line][lane] =
                inside ? A[static_cast<size_t>(first_row + line) * K + k0 + lane]
                       : 0.0f;
        }
#pragma unroll
        for (int line = warp; line < kDepth; line += kWarps) {
            const bool inside = k0 + line < K && col < N;
            b[line][lane] = inside ? B[static_cast<size_t>(k0 + line) * N + col] : 0.0f;
        }
        __syncthreads();  // both tiles are loaded before any thread reads them

#pragma unroll
        for (int k = 0; k < kDepth; k += 4) {
            const float above[] = {
                b[k][lane], b[k + 1][lane], b[k + 2][lane], b[k + 3][lane]};
#pragma unroll
            for (int o = 0; o < kOut; ++o) {
                const float4 left =
                    *reinterpret_cast<const float4*>(&a[warp * kOut + o][k]);
                sum[o] += left.x * above[0];
                sum[o] += left.y * above[1];
                sum[o] += left.z * above[2];
                sum[o] += left.w * above[3];
            }
        }
        __syncthreads();  // all threads have read the tiles before they are replaced
    }
#pragma unroll
    for (int o = 0; o < kOut; ++o) {
        const int row = first_row + warp * kOut + o;
        if (row < M && col < N) {
            C[static_cast<size_t>(row) * N + col] = sum[o];
        }
    }
}
