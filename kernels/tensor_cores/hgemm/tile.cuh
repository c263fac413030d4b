// The tile of C that a block of warps computes with mma.sync, and the tiles of A and B
// in shared memory that it comes from.
//
// A tile in shared memory has rows of 64 halves, 128 bytes. The 16-byte pieces of a row
// are swizzled: piece p of row r lies at p ^ r % 8, so that eight rows of one piece lie
// in different banks. B's tile has 64 columns in 64 rows, then the next 64 columns.
#pragma once
#include "../../common/async_copy.cuh"
#include "../../common/mma.cuh"
#include "../place.cuh"

using Half = unsigned short;  // the bits of a half are only moved

constexpr int kDepth = 64;  // steps of k in a tile
constexpr int kPiece = 8;  // halves that are copied together

// A tile of a block: its rows, columns, and warps in both directions.
template <int kRows_, int kCols_, int kDown_, int kAcross_>
struct Tile {
    static constexpr int kRows = kRows_, kCols = kCols_;
    static constexpr int kDown = kDown_, kAcross = kAcross_;
    static constexpr int kThreads = 32 * kDown * kAcross;
    // Products of 16 x 16 x 8 in a warp's part of the tile.
    static constexpr int kHigh = kRows / kDown / 16, kWide = kCols / kAcross / 8;
    static constexpr int kHalves = (kRows + kCols) * kDepth;
    static_assert(kWide % 2 == 0 && kCols % kDepth == 0, "pairs of B's matrices");
};

// The place of an element of A's tile, and of B's.
__device__ __forceinline__ int place_in_a(int row, int k)
{
    return row * kDepth + ((k / kPiece ^ row % 8) * kPiece) + k % kPiece;
}
__device__ __forceinline__ int place_in_b(int k, int col)
{
    return col / 64 * (kDepth * 64) + place_in_a(k, col % 64);
}

// Calls `copy(row, k, to)` for each piece of A's tile that this thread copies, and
// `copy(k, col, to)` for each piece of B's.
template <class T, class Copy> __device__ __forceinline__ void pieces_of_a(Copy copy)
{
#pragma unroll
    for (int j = 0; j < T::kRows * kDepth / kPiece / T::kThreads; ++j) {
        const int i = j * T::kThreads + threadIdx.x;
        const int row = i / (kDepth / kPiece), k = i % (kDepth / kPiece) * kPiece;
        copy(row, k, place_in_a(row, k));
    }
}
template <class T, class Copy> __device__ __forceinline__ void pieces_of_b(Copy copy)
{
#pragma unroll
    for (int j = 0; j < T::kCols * kDepth / kPiece / T::kThreads; ++j) {
        const int i = j * T::kThreads + threadIdx.x;
        const int k = i / (T::kCols / kPiece), col = i % (T::kCols / kPiece) * kPiece;
        copy(k, col, place_in_b(k, col));
    }
}

// Copies a piece of a row of a matrix, with zeros outside the matrix: as one copy with
// kWide, which needs rows aligned to 16 bytes, otherwise half by half.
template <bool kWide>
__device__ __forceinline__ void copy_piece(Half* to, const Half* __restrict__ from,
                                           int rows, int cols, int row, int col)
{
    const Half* at = from + static_cast<size_t>(row) * cols + col;
    if constexpr (kWide) {
        const bool inside = row < rows && col < cols;
        copy_async<4>(reinterpret_cast<float*>(to),
                      reinterpret_cast<const float*>(inside ? at : from), inside);
    } else {
        for (int i = 0; i < kPiece; ++i)
            to[i] = row < rows && col + i < cols ? at[i] : 0;
    }
}

// A warp's part of the tile: its sums, in the fragments of the instruction.
template <class T> struct Sums {
    float d[T::kHigh][T::kWide][4] = {};
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int row = warp / T::kAcross * T::kHigh * 16;
    const int col = warp % T::kAcross * T::kWide * 8;

    // Adds the product of a tile of A and one of B.
    __device__ __forceinline__ void add(const Half* a_tile, const Half* b_tile)
    {
#pragma unroll
        for (int k = 0; k < kDepth; k += 16) {
            unsigned a[T::kHigh][4];
#pragma unroll
            for (int i = 0; i < T::kHigh; ++i)
                load_matrices(a[i], a_tile + place_in_a(row + i * 16 + lane % 16,
                                                        k + lane / 16 * 8));
#pragma unroll
            for (int j = 0; j < T::kWide; j += 2) {
                unsigned b[4];  // two steps of 8 along k of two matrices along n
                load_transposed(b, b_tile + place_in_b(k + lane % 16,
                                                       col + j * 8 + lane / 16 * 8));
#pragma unroll
                for (int i = 0; i < T::kHigh; ++i) {
                    mma_f16(d[i][j], a[i], b[0], b[1]);
                    mma_f16(d[i][j + 1], a[i], b[2], b[3]);
                }
            }
        }
    }

    // Writes the sums to the tile of C that starts at `first`.
    template <bool kWide>
    __device__ __forceinline__ void store(float* __restrict__ C, int2 first, int M,
                                          int N) const
    {
#pragma unroll
        for (int i = 0; i < T::kHigh; ++i)
#pragma unroll
            for (int h = 0; h < 2; ++h) {
                const int y = first.x + row + i * 16 + h * 8 + lane / 4;
                const int x = first.y + col + lane % 4 * 2;
                float* const to = C + static_cast<size_t>(y) * N + x;
                if (y >= M) continue;
#pragma unroll
                for (int j = 0; j < T::kWide; ++j) {
                    const float low = d[i][j][2 * h], high = d[i][j][2 * h + 1];
                    if constexpr (kWide) {
                        if (x + 8 * j < N)
                            *reinterpret_cast<float2*>(to + 8 * j) = {low, high};
                    } else {
                        if (x + 8 * j < N) to[8 * j] = low;
                        if (x + 8 * j + 1 < N) to[8 * j + 1] = high;
                    }
                }
            }
    }
};
