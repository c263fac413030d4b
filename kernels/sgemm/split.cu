// Idea: where tiles are few, several blocks share one: each adds up a part of k, and a second kernel adds the parts.
// From the rung before: blockIdx.y is the part, of `part` steps of k; with several parts C is scratch, M rows for each.
// Requires: as tuned; `part` is a multiple of the tile's depth. sgemm_gather has a thread for each quad of C.
#include "pipeline.cuh"

template <class T, int kWidth, bool kWhole>
__global__ void __launch_bounds__(T::kThreads, T::kBlocks)
sgemm_split(int M, int N, int K, int part, float alpha, const float* __restrict__ A, int lda,
            const float* __restrict__ B, int ldb, float beta, float* __restrict__ C, int ldc)
{
    extern __shared__ __align__(16) float shared[];
    constexpr bool kAhead = true;
    const int first = blockIdx.y * part, last = min(K, first + part);
    Multiplication<T, kWidth, kWhole, kAhead> tile(M, N, A, lda, B, ldb, place_of_block<T>(M, N), first, last, shared);
    tile.run((last - first + T::kDepth - 1) / T::kDepth);
    tile.store(C + blockIdx.y * static_cast<size_t>(M) * ldc, ldc, alpha, beta);
}

// C = alpha times the sum of the parts, always in the same order, plus beta C.
template <int kWidth>
__global__ void sgemm_gather(int M, int N, int count, float alpha, const float* __restrict__ parts, float beta,
                             float* __restrict__ C, int ldc)
{
    const int across = (N + 3) / 4;
    const size_t quad = blockIdx.x * static_cast<size_t>(blockDim.x) + threadIdx.x;
    const size_t row = quad / across;
    const int col = quad % across * 4;
    if (row < M) {
        float sum[4] = {};
        for (int p = 0; p < count; ++p) {
            const float4 more = load_quad<kWidth>(parts + (static_cast<size_t>(p) * M + row) * N + col, N - col);
            sum[0] += more.x;
            sum[1] += more.y;
            sum[2] += more.z;
            sum[3] += more.w;
        }
        blend_quad<kWidth>(C + row * ldc + col, sum, alpha, beta, N - col);
    }
}
