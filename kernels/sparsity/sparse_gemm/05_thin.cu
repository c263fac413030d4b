// Idea: for few columns, small tiles with many copies in flight.
// From the rung before: mma.sp again, as in `pipelined`. A warp has 16 x 32 sums and a
// block 64 x 32, so that all SMs read weights, kStages - 1 slabs ahead.
// Requires: m a multiple of 16, n of 8, k of 64; blocks of kThreads threads, kStages
// times kBytes of shared memory; sm_80.
#include "../../common/mma.cuh"
#include "../../common/mma_sparse.cuh"
#include "format.cuh"

constexpr int kThreads = 128;
constexpr int kHeight = 64, kWidth = 32;
constexpr int kStages = 8;

// Both tiles have rows of 64 bytes, whose 16-byte pieces are permuted so that ldmatrix
// reads eight neighbours of a column from different banks.
struct alignas(128) Stage {
    Half values[kHeight * kSlab / 2];
    Half b[kSlab * kWidth];
    unsigned metadata[kHeight / kHigh * kWords];
};
constexpr int kBytes = sizeof(Stage);

__device__ __forceinline__ int place(int row, int piece)
{
    return row * 32 + (piece ^ row / 2 % 4) * 8;
}
__device__ __forceinline__ void copy_piece(void* to, const void* from, bool wanted)
{
    copy_async<4>(static_cast<float*>(to), static_cast<const float*>(from), wanted);
}

__device__ __forceinline__ void fill(Stage& stage, const Half* values,
                                     const unsigned* metadata, const Half* B, int m,
                                     int n, int k, int row, int col, int k0)
{
#pragma unroll
    for (int i = threadIdx.x; i < kHeight * 4; i += kThreads) {
        const bool in = row + i / 4 < m;
        const size_t at = in ? static_cast<size_t>(row + i / 4) * (k / 2) + k0 / 2 : 0;
        copy_piece(stage.values + place(i / 4, i % 4), values + at + i % 4 * 8, in);
    }
#pragma unroll
    for (int i = threadIdx.x; i < kSlab * 4; i += kThreads) {
        const bool in = col + i % 4 * 8 < n;
        const size_t at = static_cast<size_t>(k0 + i / 4) * n + col + i % 4 * 8;
        copy_piece(stage.b + place(i / 4, i % 4), B + (in ? at : 0), in);
    }
    if (threadIdx.x < kHeight / kHigh * 8) {  // past the end, metadata of the last rows
        const int tile = min(row / kHigh + static_cast<int>(threadIdx.x) / 8,
                             m / kHigh - 1);
        copy_piece(
            stage.metadata + threadIdx.x * 4,
            metadata_of(metadata, k0 / kSlab, tile, m / kHigh) + threadIdx.x % 8 * 4,
            true);
    }
}

extern "C" __global__ void __launch_bounds__(kThreads)
    sparse_thin(const Half* __restrict__ values, const unsigned* __restrict__ metadata,
                const Half* __restrict__ B, float* __restrict__ C, int m, int n, int k)
{
    extern __shared__ __align__(128) Stage ring[];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int row = blockIdx.y * kHeight, col = blockIdx.x * kWidth;
    for (int s = 0; s < kStages - 1; ++s) {
        if (s * kSlab < k)
            fill(ring[s], values, metadata, B, m, n, k, row, col, s * kSlab);
        close_group();
    }
    float d[kWidth / 8][4] = {};
    for (int slab = 0; slab < k / kSlab; ++slab) {
        wait_for_groups<kStages - 2>();
        __syncthreads();  // this slab has arrived; reads of the previous one are done
        const int next = slab + kStages - 1;
        if (next * kSlab < k)
            fill(ring[next % kStages], values, metadata, B, m, n, k, row, col,
                 next * kSlab);
        close_group();
        const Stage& stage = ring[slab % kStages];
        const unsigned e = stage.metadata[warp * kWords + lane];
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            unsigned a[4];
            load_matrices(a, stage.values + place(warp * kHigh + lane % 16,
                                                  2 * half + lane / 16));
#pragma unroll
            for (int j = 0; j < kWidth / 8; ++j) {
                unsigned b[4];
                load_transposed(b, stage.b + place(32 * half + lane, j));
                if (half == 0)
                    mma_sparse_f16<0>(d[j], a, b, e);
                else
                    mma_sparse_f16<1>(d[j], a, b, e);
            }
        }
    }
#pragma unroll
    for (int h = 0; h < 2; ++h) {
        const int y = row + warp * kHigh + 8 * h + lane / 4;
        float* const to = C + static_cast<size_t>(y) * n;
#pragma unroll
        for (int j = 0; j < kWidth / 8; ++j) {
            const int x = col + 8 * j + lane % 4 * 2;
            if (y < m && x < n)
                *reinterpret_cast<float2*>(to + x) = {d[j][2 * h], d[j][2 * h + 1]};
        }
    }
}
