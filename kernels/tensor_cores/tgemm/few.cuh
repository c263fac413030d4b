// The product for few rows: one launch reads B once, through the copy engine.
#pragma once

#include "../../common/hopper/cluster.cuh"
#include "../../common/hopper/tma.cuh"
#include "../../common/mma.cuh"
#include "mend.cuh"

constexpr int kTileRows = 32, kTileColumns = 64, kDepth = 32;  // of k, in a stage
constexpr int kWarps = 8, kStages = 2, kThreads = 32 * kWarps;
constexpr int kSumPitch = kTileColumns + 4;

// Boxes of 32 x 32 floats, swizzled. Each warp has stages of its own.
struct alignas(1024) Stage {
    float b[kTileColumns / 32][kDepth * 32];
    float a[kTileRows * kDepth];
};
static_assert(kTileRows * kSumPitch * sizeof(float) <= kStages * sizeof(Stage),
              "a warp's ring has room for its sums");

// A matrix with rows at multiples of 16 bytes, for the copy engine.
__global__ void copy_rows(const float* __restrict__ from, int ld, int columns, int rows,
                          float* __restrict__ to, int pitch)
{
    for (int row = blockIdx.x; row < rows; row += gridDim.x) {
        for (int x = threadIdx.x; x < pitch; x += blockDim.x) {
            to[static_cast<size_t>(row) * pitch + x] =
                x < columns ? from[static_cast<size_t>(row) * ld + x] : 0.0f;
        }
    }
}

// A float as two TF32 numbers: tensor cores cut off the low 13 bits of what they get,
// so half of that is added. A NaN, 0x7fffffff, must not become -0 there.
struct Parts {
    unsigned high, low;
};
__device__ __forceinline__ Parts split(float x)
{
    const unsigned high = __float_as_uint(x) + 0x1000u;
    const int low = __float_as_int(subtract(x, __uint_as_float(high & 0xffffe000u)));
    const int rounded = static_cast<int>(static_cast<unsigned>(low) + 0x1000u);
    return {high, static_cast<unsigned>(max(rounded, low))};
}

// Whether all numbers of the warp are below 2^-95. Then they are multiplied by 2^64:
// low parts of numbers below 2^-113 are subnormal and lose bits, which does not matter
// beside larger numbers.
constexpr float kUp = 0x1p64f, kDown = 0x1p-64f;
__device__ __forceinline__ bool raise_tiny(float (&values)[4][4])
{
    unsigned any = 0;
#pragma unroll
    for (int i = 0; i < 16; ++i) any |= __float_as_uint(values[i / 4][i % 4]);
    if (!__all_sync(0xffffffffu, any << 1 < 32u << 24)) return false;
#pragma unroll
    for (int i = 0; i < 16; ++i) {
        values[i / 4][i % 4] = multiply_exactly(values[i / 4][i % 4], kUp);
    }
    return true;
}

// A warp's sums for a tile of 32 x 64, with the fragments of mma.sync: by rows of 16
// and by columns of 8.
struct Sums {
    float totals[2][8][4] = {};
    float rest[2][8][4] = {};  // of products with low parts
    float units[2] = {1.0f, 1.0f};  // that `rest` counts, by columns of 32
    const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    // Row g of fragments is this one of 8: lanes then read from different banks.
    const int own = g % 4 * 2 + g / 4;

    // Adds the products of 16 of k, from `k` on. Lane t has these of them: 2 t,
    // 2 t + 1, 2 t + 8 and 2 t + 9. Column i of product j is column 4 i + j of 32.
    __device__ __forceinline__ void add(const Stage& from, int k)
    {
        float a[4][4];  // by rows, by k
#pragma unroll
        for (int r = 0; r < 4; ++r) {
#pragma unroll
            for (int j = 0; j < 2; ++j) {
                const int quad = (k / 4 + 2 * j + t / 2) ^ own;
                const float* pair = from.a + (own + 8 * r) * kDepth + quad * 4;
                const float2 v = *reinterpret_cast<const float2*>(pair + t % 2 * 2);
                a[r][2 * j] = v.x, a[r][2 * j + 1] = v.y;
            }
        }
        const bool raised = raise_tiny(a);
        unsigned a_high[2][2][4], a_low[2][2][4];  // by rows of 16, by 8 of k
#pragma unroll
        for (int r = 0; r < 4; ++r) {
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                const Parts parts = split(a[r][j]);
                a_high[r / 2][j / 2][r % 2 + j % 2 * 2] = parts.high;
                a_low[r / 2][j / 2][r % 2 + j % 2 * 2] = parts.low;
            }
        }
#pragma unroll
        for (int c = 0; c < 2; ++c) {
            float b[4][4];  // by k, by columns
#pragma unroll
            for (int r = 0; r < 4; ++r) {
                const int row = k + 2 * t + r % 2 + r / 2 * 8, quad = g ^ row % 8;
                const float* at = from.b[c] + row * 32 + quad * 4;
                const float4 v = *reinterpret_cast<const float4*>(at);
                b[r][0] = v.x, b[r][1] = v.y, b[r][2] = v.z, b[r][3] = v.w;
            }
            const float unit = raised || raise_tiny(b) ? kDown : 1.0f;
            if (unit != units[c]) change_unit(c, unit);
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                Parts p[4];
#pragma unroll
                for (int r = 0; r < 4; ++r) p[r] = split(b[r][j]);
#pragma unroll
                for (int h = 0; h < 2; ++h) {
                    float sums[4] = {};
                    float(&low)[4] = rest[h][4 * c + j];
#pragma unroll
                    for (int s = 0; s < 2; ++s) {
                        const Parts &p0 = p[2 * s], &p1 = p[2 * s + 1];
                        mma_tf32(sums, a_high[h][s], p0.high, p1.high);
                        mma_tf32(low, a_high[h][s], p0.low, p1.low);
                        mma_tf32(low, a_low[h][s], p0.high, p1.high);
                    }
#pragma unroll
                    for (int q = 0; q < 4; ++q) {
                        float& total = totals[h][4 * c + j][q];
                        total = multiply_add(sums[q], unit, total);
                    }
                }
            }
        }
    }

    // Takes what the rest of a group of 32 columns has counted so far into the totals.
    __device__ __forceinline__ void change_unit(int group, float unit)
    {
#pragma unroll
        for (int i = 0; i < 32; ++i) {
            float& low = rest[i / 16][4 * group + i / 4 % 4][i % 4];
            float& total = totals[i / 16][4 * group + i / 4 % 4][i % 4];
            total = multiply_add(low, units[group], total);
            low = 0.0f;
        }
        units[group] = unit;
    }

    // Stores the sums row by row.
    __device__ __forceinline__ void store(float* to)
    {
#pragma unroll
        for (int c = 0; c < 2; ++c) {
            change_unit(c, 1.0f);
#pragma unroll
            for (int i = 0; i < 8; ++i) {
                const int h = i / 4, q = i % 4, row = 16 * h + own + q / 2 * 8;
                const int column = 32 * c + 8 * t + q % 2 * 4;
                const float(&sums)[8][4] = totals[h];
                *reinterpret_cast<float4*>(to + row * kSumPitch + column) =
                    make_float4(sums[4 * c][q], sums[4 * c + 1][q], sums[4 * c + 2][q],
                                sums[4 * c + 3][q]);
            }
        }
    }
};

// Tiles of 32 rows and 64 columns, for each a cluster of `kParts` blocks with a part of
// k each, of which each warp has a part.
template <int kParts>
__global__ void __cluster_dims__(kParts) __launch_bounds__(kThreads, 1)
multiply_few(const __grid_constant__ TensorMap a_boxes,
             const __grid_constant__ TensorMap b_boxes, int m, int n, int k,
             float alpha, const float* A, int lda, const float* B, int ldb, float beta,
             float* C, int ldc)
{
    extern __shared__ __align__(1024) Stage rings[];
    __shared__ Barrier barriers[kWarps][kStages];
    const int thread = threadIdx.x, lane = thread % 32, warp = thread / 32;
    const int part = blockIdx.x % kParts, tile = blockIdx.x / kParts;
    const int down = (m + kTileRows - 1) / kTileRows;
    const int y = tile % down * kTileRows, x = tile / down * kTileColumns;
    const int slices = (k + kDepth - 1) / kDepth;
    constexpr int kShares = kParts * kWarps;
    const long long share = part * kWarps + warp;
    const int first = share * slices / kShares;
    const int count = (share + 1) * slices / kShares - first;
    Stage* ring = rings + warp * kStages;
    Barrier* full = barriers[warp];
    const auto load = [&](int i) {
        const int slot = i % kStages, at = (first + i) * kDepth;
        mbarrier_arrive_expect(&full[slot], sizeof(Stage));
        tma_load(ring[slot].b[0], b_boxes, x, at, &full[slot]);
        tma_load(ring[slot].b[1], b_boxes, x + 32, at, &full[slot]);
        tma_load(ring[slot].a, a_boxes, at, y, &full[slot]);
    };
    if (lane == 0) {
        for (int s = 0; s < kStages; ++s) mbarrier_init(&full[s], 1);
        fence_mbarrier_init();
        for (int i = 0; i < min(count, kStages); ++i) load(i);
    }
    __syncwarp();

    Sums sums;
#pragma unroll 1
    for (int i = 0; i < count; ++i) {
        const Stage& from = ring[i % kStages];
        mbarrier_wait(&full[i % kStages], i / kStages % 2);
#pragma unroll 1
        for (int at = 0; at < kDepth; at += 16) sums.add(from, at);
        __syncwarp();  // all lanes have read the stage
        if (lane == 0 && i + kStages < count) load(i + kStages);
    }

    sums.store(ring[0].b[0]);
    if constexpr (kParts > 1) {
        cluster_sync();
    } else {
        __syncthreads();
    }
    // Each block adds up a share of the tile.
    const Result to{m, n, k, alpha, A, lda, B, ldb, beta, C, ldc, nullptr, nullptr};
    constexpr int kQuads = kTileRows * kTileColumns / 4 / kParts;
    const bool quads = n % 4 == 0 && ldc % 4 == 0 &&
                       reinterpret_cast<unsigned long long>(C) % 16 == 0;
    for (int q = thread; q < kQuads; q += kThreads) {
        const int at = part * kQuads + q, row = at / (kTileColumns / 4);
        const int column = at % (kTileColumns / 4) * 4;
        float values[4] = {};
#pragma unroll
        for (int i = 0; i < kParts * kWarps; ++i) {
            const float* from = rings[i % kWarps * kStages].b[0];
            if constexpr (kParts > 1) from = at_rank(from, i / kWarps);
            from += row * kSumPitch + column;
            const float4 v = *reinterpret_cast<const float4*>(from);
            values[0] += v.x, values[1] += v.y, values[2] += v.z, values[3] += v.w;
        }
        mend(to, y + row, x + column, values);
        if (quads && beta == 0.0f) {
            if (y + row < m && x + column < n) {
                float* target = C + static_cast<size_t>(y + row) * ldc + x + column;
#pragma unroll
                for (int j = 0; j < 4; ++j) {
                    values[j] = multiply_exactly(alpha, values[j]);
                }
                *reinterpret_cast<float4*>(target) =
                    make_float4(values[0], values[1], values[2], values[3]);
            }
        } else {
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                const bool inside = y + row < m && x + column + j < n;
                put(to, y + row, x + column + j, values[j], inside);
            }
        }
    }
    if constexpr (kParts > 1) cluster_sync();  // before shared memory goes away
}
