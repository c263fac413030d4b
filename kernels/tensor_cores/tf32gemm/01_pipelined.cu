// Idea: warps multiply TF32 with mma.sync, from a ring of tiles that cp.async fills.
// From the rung before: this is the first rung.
// Requires: blocks of kThreads threads, kStages Stages of shared memory; sm_80. kWide:
// n and k are multiples of 4.
#include "../../common/async_copy.cuh"
#include "../../common/mma.cuh"
#include "../place.cuh"

constexpr int kSide = 128, kDepth = 32, kStages = 3;  // tiles of kSide x kSide sums
constexpr int kThreads = 256;
constexpr int kHigh = 4, kWideness = 4;  // products of 16 x 8 in a warp's 64 x 32 sums
constexpr int kPitch = kSide + 8;  // four rows of eight floats are in different banks

struct Stage {
    float a[kSide * kDepth];  // pieces of four floats, swizzled
    float b[kDepth * kPitch];
};

// Rounds to nearest, ties away from zero.
__device__ __forceinline__ unsigned to_tf32(float x)
{
    unsigned y;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(y) : "f"(x));
    return y;
}

__device__ __forceinline__ int place_in_a(int row, int k)
{
    return row * kDepth + ((k / 4 ^ row % 8) * 4) + k % 4;
}

// Copies four floats of a row of a matrix, with zeros for those outside.
template <bool kWide>
__device__ __forceinline__ void copy_piece(float* to, const float* __restrict__ from,
                                           int rows, int cols, int row, int col)
{
    const float* const at = from + static_cast<size_t>(row) * cols + col;
#pragma unroll
    for (int i = 0; i < 4; i += kWide ? 4 : 1) {
        const bool inside = row < rows && col + i < cols;
        copy_async<kWide ? 4 : 1>(to + i, inside ? at + i : from, inside);
    }
}

template <bool kWide>
__global__ void __launch_bounds__(kThreads, 2)
    tf32gemm_pipelined(const float* __restrict__ A, const float* __restrict__ B,
                       float* __restrict__ C, int M, int N, int K)
{
    extern __shared__ __align__(128) Stage stages[];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int2 first = place_of_tile<kSide, kSide>(blockIdx.x, M, N);
    const int row = warp / 4 * 64, col = warp % 4 * 32;
    const int slices = (K + kDepth - 1) / kDepth;
    const auto fill = [&](int slice) {
        Stage& stage = stages[slice % kStages];
        if (slice < slices)
#pragma unroll
            for (int j = 0; j < kSide * kDepth / 4 / kThreads; ++j) {
                const int i = j * kThreads + threadIdx.x, k0 = slice * kDepth;
                const int y = i / (kDepth / 4), k = i % (kDepth / 4) * 4;
                copy_piece<kWide>(stage.a + place_in_a(y, k), A, M, K, first.x + y,
                                  k0 + k);
                const int z = i / (kSide / 4), x = i % (kSide / 4) * 4;
                copy_piece<kWide>(stage.b + z * kPitch + x, B, K, N, k0 + z,
                                  first.y + x);
            }
        close_group();  // empty groups at the end keep the count right
    };
    for (int slice = 0; slice < kStages - 1; ++slice) fill(slice);
    float d[kHigh][kWideness][4] = {};
    for (int slice = 0; slice < slices; ++slice) {
        wait_for_groups<kStages - 2>();
        __syncthreads();  // this slice has arrived; reads of the previous one are done
        fill(slice + kStages - 1);
        const Stage& stage = stages[slice % kStages];
#pragma unroll
        for (int k = 0; k < kDepth; k += 8) {
            unsigned a[kHigh][4];
#pragma unroll
            for (int i = 0; i < kHigh; ++i) {
                load_matrices(a[i], stage.a + place_in_a(row + i * 16 + lane % 16,
                                                         k + lane / 16 * 4));
#pragma unroll
                for (int e = 0; e < 4; ++e) a[i][e] = to_tf32(__uint_as_float(a[i][e]));
            }
#pragma unroll
            for (int j = 0; j < kWideness; ++j) {
                const float* const b =
                    stage.b + (k + lane % 4) * kPitch + col + j * 8 + lane / 4;
                const unsigned b0 = to_tf32(b[0]), b1 = to_tf32(b[4 * kPitch]);
#pragma unroll
                for (int i = 0; i < kHigh; ++i) mma_tf32(d[i][j], a[i], b0, b1);
            }
        }
    }
#pragma unroll
    for (int i = 0; i < kHigh; ++i)
#pragma unroll
        for (int j = 0; j < kWideness; ++j)
#pragma unroll
            for (int h = 0; h < 2; ++h) {
                const int y = first.x + row + i * 16 + h * 8 + lane / 4;
                const int x = first.y + col + j * 8 + lane % 4 * 2;
                float* const to = C + static_cast<size_t>(y) * N + x;
                const float2 sums = {d[i][j][2 * h], d[i][j][2 * h + 1]};
                if (kWide && y < M && x < N) *reinterpret_cast<float2*>(to) = sums;
                if (!kWide && y < M && x < N) to[0] = sums.x;
                if (!kWide && y < M && x + 1 < N) to[1] = sums.y;
            }
}
