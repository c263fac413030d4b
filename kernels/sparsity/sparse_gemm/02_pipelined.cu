// Idea: asynchronous copies fill a ring of tiles; ldmatrix loads the fragments.
// From the rung before: a block of 128 x 128 sums shares its tiles; a warp has 64 x 64
// sums. Values take half the bytes of a dense tile, metadata an eighth of that.
// Requires: m a multiple of 16, n of 8, k of 64; blocks of kThreads threads, kStages
// times kBytes of shared memory; sm_80.
#include "../../common/mma.cuh"
#include "../../common/mma_sparse.cuh"
#include "format.cuh"

constexpr int kThreads = 128;
constexpr int kRows_ = 128, kCols_ = 128;
constexpr int kStages = 4;
constexpr int kDown = 4, kAcross = 8;  // products of 16 x 8 per warp

// Rows of 64 bytes and of 256, whose 16-byte pieces are permuted so that ldmatrix reads
// eight neighbours of a column from different banks.
struct alignas(128) Stage {
    Half values[kRows_ * kSlab / 2];
    Half b[kSlab * kCols_];
    unsigned metadata[kRows_ / kHigh * kWords];
};
constexpr int kBytes = sizeof(Stage);

__device__ __forceinline__ int value_at(int row, int piece)
{
    return row * 32 + (piece ^ row / 2 % 4) * 8;
}
__device__ __forceinline__ int b_at(int row, int piece)
{
    return row * kCols_ + (piece ^ row % 8) * 8;
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
    for (int i = threadIdx.x; i < kRows_ * 4; i += kThreads) {
        const bool in = row + i / 4 < m;
        const size_t at = in ? static_cast<size_t>(row + i / 4) * (k / 2) + k0 / 2 : 0;
        copy_piece(stage.values + value_at(i / 4, i % 4), values + at + i % 4 * 8, in);
    }
#pragma unroll
    for (int i = threadIdx.x; i < kSlab * 16; i += kThreads) {
        const bool in = col + i % 16 * 8 < n;
        const size_t at = static_cast<size_t>(k0 + i / 16) * n + col + i % 16 * 8;
        copy_piece(stage.b + b_at(i / 16, i % 16), B + (in ? at : 0), in);
    }
    if (threadIdx.x < kRows_ / kHigh * 8) {  // past the end, metadata of the last rows
        const int tile = min(row / kHigh + static_cast<int>(threadIdx.x) / 8,
                             m / kHigh - 1);
        copy_piece(
            stage.metadata + threadIdx.x * 4,
            metadata_of(metadata, k0 / kSlab, tile, m / kHigh) + threadIdx.x % 8 * 4,
            true);
    }
}

extern "C" __global__ void __launch_bounds__(kThreads, 2)
    sparse_pipelined(const Half* __restrict__ values,
                     const unsigned* __restrict__ metadata, const Half* __restrict__ B,
                     float* __restrict__ C, int m, int n, int k)
{
    extern __shared__ __align__(128) Stage ring[];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int row = blockIdx.y * kRows_, col = blockIdx.x * kCols_;
    const int down = warp / 2 * 64, across = warp % 2 * 64;  // the warp's sums
    for (int s = 0; s < kStages - 1; ++s) {
        if (s * kSlab < k)
            fill(ring[s], values, metadata, B, m, n, k, row, col, s * kSlab);
        close_group();
    }
    float d[kDown][kAcross][4] = {};
    for (int slab = 0; slab < k / kSlab; ++slab) {
        wait_for_groups<kStages - 2>();
        __syncthreads();  // this slab has arrived; reads of the previous one are done
        const int next = slab + kStages - 1;
        if (next * kSlab < k)
            fill(ring[next % kStages], values, metadata, B, m, n, k, row, col,
                 next * kSlab);
        close_group();
        const Stage& stage = ring[slab % kStages];
        unsigned e[kDown];
        for (int i = 0; i < kDown; ++i)
            e[i] = stage.metadata[(down / kHigh + i) * kWords + lane];
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            unsigned a[kDown][4];
#pragma unroll
            for (int i = 0; i < kDown; ++i)
                load_matrices(a[i], stage.values + value_at(down + 16 * i + lane % 16,
                                                            2 * half + lane / 16));
#pragma unroll
            for (int j = 0; j < kAcross; ++j) {
                unsigned b[4];
                load_transposed(b,
                                stage.b + b_at(32 * half + lane, across / 8 + j));
#pragma unroll
                for (int i = 0; i < kDown; ++i)
                    if (half == 0)
                        mma_sparse_f16<0>(d[i][j], a[i], b, e[i]);
                    else
                        mma_sparse_f16<1>(d[i][j], a[i], b, e[i]);
            }
        }
    }
#pragma unroll
    for (int i = 0; i < 2 * kDown; ++i) {
        const int y = row + down + 8 * i + lane / 4;
        float* const to = C + static_cast<size_t>(y) * n;
#pragma unroll
        for (int j = 0; j < kAcross; ++j) {
            const int x = col + across + 8 * j + lane % 4 * 2;
            const float* const sums = d[i / 2][j] + i % 2 * 2;
            if (y < m && x < n)
                *reinterpret_cast<float2*>(to + x) = {sums[0], sums[1]};
        }
    }
}
