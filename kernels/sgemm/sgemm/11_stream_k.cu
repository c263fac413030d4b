// Idea: stream-K: split the last wave's tiles along k into equal shares for all SMs.
// From the rung before: full waves as before (sgemm_whole); then one range of slices
// per block (sgemm_portion); then the sums of the split tiles (sgemm_gather).
// Requires: as tuned; tiles from `whole` on are split into portions of `portion`
// slices, at most a tile's number; parts holds two tiles per portion. sgemm_gather: one
// row of blocks per split tile, of any length.
#include "pipeline.cuh"

template <class T, int kWidth, bool kWhole>
__global__ void __launch_bounds__(T::kThreads, T::kBlocks)
    sgemm_whole(int M, int N, int K, float alpha, const float* __restrict__ A, int lda,
                const float* __restrict__ B, int ldb, float beta, float* __restrict__ C,
                int ldc)
{
    extern __shared__ __align__(16) float shared[];
    constexpr bool kAhead = true;
    const int2 place = place_of_tile<T>(blockIdx.x, M, N);
    Multiplication<T, kWidth, kWhole, kAhead> tile(M, N, A, lda, B, ldb, place, 0, K,
                                                   shared);
    tile.run(slices_of<T>(K));
    tile.store(C, ldc, alpha, beta);
}

template <class T, int kWidth, bool kWhole>
__global__ void __launch_bounds__(T::kThreads, T::kBlocks)
    sgemm_portion(int M, int N, int K, int whole, int portion, float alpha,
                  const float* __restrict__ A, int lda, const float* __restrict__ B,
                  int ldb, float beta, float* __restrict__ C, int ldc,
                  float* __restrict__ parts)
{
    extern __shared__ __align__(16) float shared[];
    constexpr bool kAhead = true;
    // Slices are numbered consecutively over all split tiles.
    const int slices = slices_of<T>(K);
    int at = blockIdx.x * portion;
    const int end = min(at + portion, (tiles_of<T>(M, N) - whole) * slices);
#pragma unroll 1
    for (int piece = 0; at < end; ++piece) {
        const int tile = at / slices, first = at % slices,
                  last = min(slices, first + end - at);
        const int2 place = place_of_tile<T>(whole + tile, M, N);
        if (piece > 0) __syncthreads();  // all reads of the previous piece are done
        Multiplication<T, kWidth, kWhole, kAhead> sums(
            M, N, A, lda, B, ldb, place, first * T::kDepth, min(K, last * T::kDepth),
            shared);
        sums.run(last - first);
        if (first == 0 && last == slices) {
            sums.store(C, ldc, alpha, beta);
        } else {
            sums.keep(parts + (2 * static_cast<size_t>(blockIdx.x) + piece) *
                                  (T::kRows * T::kCols));
        }
        at += last - first;
    }
}

// C = alpha times the sum of a tile's parts, always in the same order, plus beta C.
template <class T, int kWidth>
__global__ void sgemm_gather(int M, int N, int K, int whole, int portion, float alpha,
                             float beta, float* __restrict__ C, int ldc,
                             const float* __restrict__ parts)
{
    const int slices = slices_of<T>(K), tile = blockIdx.y;
    const int first = tile * slices / portion,
              last = ((tile + 1) * slices - 1) / portion;
    const int quad = blockIdx.x * blockDim.x + threadIdx.x;
    const int row = quad / (T::kCols / 4), col = quad % (T::kCols / 4) * 4;
    const int2 place = place_of_tile<T>(whole + tile, M, N);
    // A tile that one block computed alone is already stored.
    if (first == last || row >= T::kRows || place.x + row >= M || place.y + col >= N)
        return;
    float sum[4] = {};
    for (int worker = first; worker <= last; ++worker) {
        const int piece = worker * portion / slices == tile ? 0 : 1;
        const float* from =
            parts + (2 * static_cast<size_t>(worker) + piece) * (T::kRows * T::kCols);
        const float4 more =
            *reinterpret_cast<const float4*>(from + row * T::kCols + col);
        sum[0] += more.x;
        sum[1] += more.y;
        sum[2] += more.z;
        sum[3] += more.w;
    }
    float* to = C + static_cast<size_t>(place.x + row) * ldc + place.y + col;
    blend_quad<kWidth>(to, sum, alpha, beta, N - place.y - col);
}
