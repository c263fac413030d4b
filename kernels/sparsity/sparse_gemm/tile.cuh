// Shared by the rungs with wgmma.sp: loads, products and stores of a block's tile of
// 128 x 256 sums, which two consumers of 64 x 256 compute.
#pragma once

#include "../../common/hopper/tma.cuh"
#include "../../common/hopper/wgmma_sparse.cuh"
#include "format.cuh"

constexpr int kThreads = 384;  // a producer warpgroup and two consumer warpgroups
constexpr int kReaders = 8;  // warps that read a stage, each its own metadata
constexpr int kHeight = 128, kWidth = 256;
constexpr int kBox = 64;  // columns of B per copy
constexpr int kBoxBytes = kSlab * 2 * kBox;

struct alignas(1024) Stage {
    Half values[kHeight * kSlab / 2];
    Half b[kSlab * kWidth];
    unsigned metadata[kHeight / kHigh * kWords];
};
constexpr int kTileBytes = sizeof(Stage::values) + sizeof(Stage::b);

// The number of a block's groups of 16 rows that are inside the matrix.
__device__ __forceinline__ int sixteens(int y, int m)
{
    return min(kHeight / kHigh, (m - y) / kHigh);
}

// Starts the copies of a slab's values and metadata. `full` also expects B's bytes.
__device__ __forceinline__ void load_sparse(
    Stage& stage, const TensorMap& values, const unsigned* metadata, int slab, int y,
    int m, Barrier* full)
{
    const int held = sixteens(y, m), bytes = held > 0 ? held * kWords * 4 : 0;
    mbarrier_arrive_expect(full, kTileBytes + bytes);
    tma_load(stage.values, values, slab * (kSlab / 2), y, full);
    if (held > 0)
        bulk_load(stage.metadata,
                  metadata_of(metadata, slab, y / kHigh, m / kHigh), bytes, full);
}

// Adds the products of a slab to a consumer's sums. The tensor core reads the metadata
// register while it multiplies, so the register must not change until the products are
// done: otherwise they would use the next slab's metadata.
__device__ __forceinline__ void add_slab(float (&d)[kWidth / 2], const Stage& stage,
                                         int consumer, int held, bool more)
{
    const int lane = threadIdx.x % 32, tile = consumer * 4 + threadIdx.x % 128 / 32;
    const unsigned e =
        tile < held ? stage.metadata[tile * kWords + lane] : kAnyMetadata;
    const Descriptor a = describe_stored_rows(stage.values + consumer * 64 * kSlab / 2);
    const Descriptor b = describe_rows_of_n(stage.b, kBoxBytes);
    wgmma_fence();
    wgmma_sparse_f16_rows_of_n<0>(d, a, b, e, more);
    wgmma_sparse_f16_rows_of_n<1>(d, a + 2, b + 256, e, true);  // the next 32 of k
    wgmma_commit();
    wgmma_wait<0>();
}

// Writes a consumer's 64 x 256 sums, from row `y` and column `x` of C.
__device__ __forceinline__ void store_sums(float* __restrict__ C,
                                           const float (&d)[kWidth / 2], int y, int x,
                                           int m, int n)
{
    const int lane = threadIdx.x % 32, warp = threadIdx.x % 128 / 32;
    y += warp * 16 + lane / 4;
    x += lane % 4 * 2;
#pragma unroll
    for (int h = 0; h < 2; ++h, y += 8) {
        float* const to = C + static_cast<size_t>(y) * n + x;
        if (y < m)
#pragma unroll
            for (int j = 0; j < kWidth; j += 8)
                if (x + j < n)
                    *reinterpret_cast<float2*>(to + j) = {d[j / 2 + 2 * h],
                                                          d[j / 2 + 2 * h + 1]};
    }
}
