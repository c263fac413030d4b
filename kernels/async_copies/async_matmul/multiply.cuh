// A thread's products of a slice of A and B in shared memory, in all rungs that copy
// asynchronously: eight rows of kAcross sums. A slice is kDepth steps of k, so that a
// row of A's slice has 128 bytes, the widest row that the copy engine swizzles.
#pragma once

constexpr int kDepth = 32;

// A tile of kRows x kCols elements of C: a thread has kAcross sums in each of 8 rows. A
// warp covers 64 rows, and its lanes form a grid of 8 x 4.
template <int kRows_, int kCols_, int kAcross_>
struct Tile {
    static constexpr int kRows = kRows_, kCols = kCols_, kAcross = kAcross_;
    static constexpr int kDown = 8, kWarpCols = 4 * kAcross;
    static constexpr int kThreads = kRows * kCols / (kDown * kAcross);
    static constexpr int kFloatsA = kRows * kDepth, kFloatsB = kDepth * kCols;
    static constexpr int kBytes = 4 * (kFloatsA + kFloatsB);  // per slice of A and B
    static_assert(kRows % 64 == 0 && kCols % kWarpCols == 0 && kAcross % 4 == 0, "");
};

// The index of float4 `quad` of row `row` of A's slice, in the copy engine's 128-byte
// swizzle.
__device__ __forceinline__ int swizzled(int row, int quad)
{
    return row * kDepth + (quad ^ row % 8) * 4;
}

template <class T>
struct Sums {
    float sum[T::kDown][T::kAcross] = {};
    int row, col;  // of the first sum, within the tile

    // `thread` is the index among the computing threads.
    __device__ explicit Sums(int thread)
    {
        constexpr int kWarpsAcross = T::kCols / T::kWarpCols;
        const int warp = thread / 32, lane = thread % 32;
        // Lanes 2i and 2i + 1 read the same quad of B, lanes i and i ^ 2 the same of A.
        row = warp / kWarpsAcross * 64 + lane % 2 + lane / 8 * 2;
        col = warp % kWarpsAcross * T::kWarpCols + lane / 2 % 4 * 4;
    }

    // Adds the products of a slice: a thread's rows are 8 apart, so that a warp's
    // lanes read 8 rows that the swizzle puts into different banks. Floats of A are
    // read one by one, so that ptxas is free to choose a register for each.
    __device__ __forceinline__ void add(const float* a, const float* b)
    {
#pragma unroll
        for (int k = 0; k < kDepth; ++k) {
            float left[T::kDown], above[T::kAcross];
#pragma unroll
            for (int i = 0; i < T::kDown; ++i) {
                left[i] = *const_cast<const volatile float*>(
                    a + swizzled(row, k / 4) + i * 8 * kDepth + k % 4);
            }
#pragma unroll
            for (int j = 0; j < T::kAcross; j += 4) {
                *reinterpret_cast<float4*>(above + j) =
                    *reinterpret_cast<const float4*>(b + k * T::kCols + col + j * 4);
            }
            // Rows in alternating directions: consecutive products share an operand.
#pragma unroll
            for (int i = 0; i < T::kDown; ++i) {
#pragma unroll
                for (int n = 0; n < T::kAcross; ++n) {
                    const int j = i % 2 ? T::kAcross - 1 - n : n;
                    sum[i][j] += left[i] * above[j];
                }
            }
        }
    }

    __device__ __forceinline__ void store(
        float* C, int first_row, int first_col, int M, int N) const
    {
#pragma unroll
        for (int i = 0; i < T::kDown; ++i) {
            const int y = first_row + row + i * 8;
#pragma unroll
            for (int j = 0; j < T::kAcross; j += 4) {
                const int x = first_col + col + j * 4;
                if (y < M && x < N) {
                    *reinterpret_cast<float4*>(C + static_cast<size_t>(y) * N + x) = {
                        sum[i][j], sum[i][j + 1], sum[i][j + 2], sum[i][j + 3]};
                }
            }
        }
    }
};
