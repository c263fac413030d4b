// The product of one tile of C, through a ring of stages in shared memory that
// asynchronous copies fill ahead of use. A Tile defines all sizes; a rung chooses a
// Tile and whether to prefetch operands. A slice is kDepth steps of k.
#pragma once
#include "../../common/async_copy.cuh"
#include "quads.cuh"

// A block has kRows x kCols elements of C and kStages stages of kDepth steps of k. Its
// warps form a grid, and so do the lanes of a warp.
template <int kRows_, int kCols_, int kDepth_, int kStages_, int kWarpsDown_,
          int kWarpsAcross_, int kLanesDown_>
struct Tile {
    static constexpr int kRows = kRows_, kCols = kCols_, kDepth = kDepth_,
                         kStages = kStages_;
    static constexpr int kWarpsDown = kWarpsDown_, kWarpsAcross = kWarpsAcross_;
    static constexpr int kLanesDown = kLanesDown_, kLanesAcross = 32 / kLanesDown;
    static constexpr int kThreads = 32 * kWarpsDown * kWarpsAcross;
    // The sums of a thread.
    static constexpr int kDown = kRows / (kWarpsDown * kLanesDown),
                         kAcross = kCols / (kWarpsAcross * kLanesAcross);
    // A's tile is transposed: eight lanes store eight steps of k, and four floats of
    // padding per row put these into different groups of four banks.
    static constexpr int kPitch = kRows + 4;
    static constexpr int kFloatsA = kDepth * kPitch, kFloatsB = kDepth * kCols;
    static constexpr int kBytes = 4 * kStages * (kFloatsA + kFloatsB);
    // Blocks per SM whose registers fit: up to 128 per thread for 64 sums, 255 for
    // more.
    static constexpr int kBlocks = (kDown * kAcross > 64 ? 256 : 512) / kThreads;
    static_assert(kBlocks >= 1, "registers for one block at least");
    static_assert(kLanesDown == 4 || kLanesDown == 8,
                  "neighbouring lanes share quads in these two");
    static_assert(kDown % 4 == 0 && kAcross % 4 == 0,
                  "a thread's sums are made of 4 x 4 squares");
    static_assert(kRows == kWarpsDown * kLanesDown * kDown &&
                      kCols == kWarpsAcross * kLanesAcross * kAcross,
                  "");
    static_assert(kDepth % 8 == 0 && kRows % (kThreads / 8) == 0,
                  "copies of A: eight steps of k at once, whole rounds");
    static_assert(kDepth * kCols % (4 * kThreads) == 0 && 4 * kThreads % kCols == 0,
                  "copies of B: whole rows and rounds");
    static_assert(kStages >= 2, "one stage is used while another fills");
};

// The number of tiles that cover C, and of slices that cover k: at least one slice, so
// that C is written even if k is 0.
template <class T>
__device__ int tiles_of(int M, int N)
{
    return (M + T::kRows - 1) / T::kRows * ((N + T::kCols - 1) / T::kCols);
}

template <class T>
__device__ int slices_of(int K)
{
    return max(1, (K + T::kDepth - 1) / T::kDepth);
}

// Row and column of a tile. Tiles are numbered down through kGroup rows of tiles before
// the next column begins, so that blocks that run together share rows of A and columns
// of B in the L2 cache.
template <class T>
__device__ int2 place_of_tile(int index, int M, int N)
{
    constexpr int kGroup = 8;
    const int across = (N + T::kCols - 1) / T::kCols,
              down = (M + T::kRows - 1) / T::kRows;
    const int group = index / (kGroup * across), within = index % (kGroup * across);
    const int high = min(kGroup, down - group * kGroup);
    return {(group * kGroup + within % high) * T::kRows, within / high * T::kCols};
}

// A block's product: rows from `row`, columns from `col`, steps of k from `first_k` to
// `last_k`.
template <class T, int kWidth, bool kWhole, bool kAhead>
struct Multiplication {
    int M, N, row, col, last_k;
    const float* from_a;  // the sources of this thread's next copies
    const float* from_b;
    size_t next_a, next_b;  // floats from one round of a slice's copies to the next
    int ldb, k;
    int to_a, to_b;  // offsets in a stage to which it copies
    int a_row, b_col, a_k, b_k;
    int read_a, read_b;  // offsets in a stage from which it reads
    float* a;
    float* b;
    __align__(16) float sum[T::kDown][T::kAcross];

    __device__ Multiplication(int M, int N, const float* A, int lda, const float* B,
                              int ldb, int2 place, int first_k, int last_k,
                              float* shared)
        : M(M),
          N(N),
          row(place.x),
          col(place.y),
          last_k(last_k),
          ldb(ldb),
          k(first_k),
          a(shared),
          b(shared + T::kStages * T::kFloatsA),
          sum{}
    {
        const int t = threadIdx.x, warp = t / 32, lane = t % 32;
        a_row = row + t / 8;
        a_k = t % 8;
        b_k = t / (T::kCols / 4);
        b_col = col + t % (T::kCols / 4) * 4;
        from_a = A + static_cast<size_t>(a_row) * lda + first_k + a_k;
        from_b = B + static_cast<size_t>(first_k + b_k) * ldb + b_col;
        next_a = static_cast<size_t>(kCopyRowsA) * lda;
        next_b = static_cast<size_t>(kCopyRowsB) * ldb;
        to_a = a_k * T::kPitch + t / 8;
        to_b = b_k * T::kCols + t % (T::kCols / 4) * 4;
        // Lanes 2i and 2i + 1 read the same quad of B, lanes i and i ^ 2 the same quad
        // of A.
        const int down = lane % 2 + (T::kLanesDown == 8 ? lane / 8 : lane / 16) * 2;
        const int across = lane / 2 % T::kLanesAcross;
        read_a = warp / T::kWarpsAcross * (T::kRows / T::kWarpsDown) + down * 4;
        read_b = warp % T::kWarpsAcross * (T::kCols / T::kWarpsAcross) + across * 4;
    }

    // Copies start at this step of a slice, after the loads on which the first steps
    // wait.
    static constexpr int kCopyStep = 2;
    static constexpr int kCopyRowsA = T::kThreads / 8,
                         kCopyRowsB = T::kThreads / (T::kCols / 4);

    // Starts this thread's copies of the next slice into a stage.
    __device__ __forceinline__ void start_copies(int stage)
    {
        float* into_a = a + stage * T::kFloatsA + to_a;
        float* into_b = b + stage * T::kFloatsB + to_b;
#pragma unroll
        for (int r = 0; r < T::kDepth / kCopyRowsB; ++r) {
            const float* from = from_b + r * next_b;
            float* into = into_b + r * kCopyRowsB * T::kCols;
            const bool in_k = kWhole || k + b_k + r * kCopyRowsB < last_k;
            if constexpr (kWidth == 4) {
                copy_async<4>(into, from, kWhole || (in_k && b_col < N));
            } else {
#pragma unroll
                for (int i = 0; i < 4; ++i)
                    copy_async<1>(into + i, from + i, in_k && b_col + i < N);
            }
        }
#pragma unroll
        for (int eight = 0; eight < T::kDepth; eight += 8) {
#pragma unroll
            for (int r = 0; r < T::kRows / kCopyRowsA; ++r) {
                const bool inside =
                    kWhole || (a_row + r * kCopyRowsA < M && k + a_k + eight < last_k);
                copy_async<1>(into_a + eight * T::kPitch + r * kCopyRowsA,
                              from_a + r * next_a + eight, inside);
            }
        }
        from_a += T::kDepth;
        from_b += static_cast<size_t>(T::kDepth) * ldb;
        k += T::kDepth;
    }

    // Reads this thread's operands of one step of k.
    __device__ __forceinline__ void read(float (&left)[T::kDown],
                                         float (&above)[T::kAcross], int stage,
                                         int step)
    {
        const float* down = a + stage * T::kFloatsA + read_a + step * T::kPitch;
        const float* across = b + stage * T::kFloatsB + read_b + step * T::kCols;
#pragma unroll
        for (int q = 0; q < T::kDown; q += 4) {
            *reinterpret_cast<float4*>(left + q) =
                *reinterpret_cast<const float4*>(down + q * T::kLanesDown);
        }
#pragma unroll
        for (int q = 0; q < T::kAcross; q += 4) {
            *reinterpret_cast<float4*>(above + q) =
                *reinterpret_cast<const float4*>(across + q * T::kLanesAcross);
        }
    }

    // Columns in alternating directions: consecutive products share an operand, which
    // need not be read again.
    __device__ __forceinline__ void add(const float (&left)[T::kDown],
                                        const float (&above)[T::kAcross])
    {
#pragma unroll
        for (int j = 0; j < T::kAcross; ++j) {
#pragma unroll
            for (int i = 0; i < T::kDown; ++i) {
                const int turned = j % 2 ? T::kDown - 1 - i : i;
                sum[turned][j] += left[turned] * above[j];
            }
        }
    }

    static __device__ int after(int stage)
    {
        return stage + 1 == T::kStages ? 0 : stage + 1;
    }

    __device__ __forceinline__ void run(int slices)
    {
        for (int s = 0; s < T::kStages - 1; ++s) {
            if (s < slices) start_copies(s);
            close_group();
        }
        if constexpr (kAhead) {
            run_ahead(slices);
        } else {
            run_in_step(slices);
        }
    }

    __device__ __forceinline__ void run_in_step(int slices)
    {
        int stage = 0, free = T::kStages - 1;
#pragma unroll 1
        for (int slice = 0; slice < slices; ++slice) {
            wait_for_groups<T::kStages - 2>();
            // This slice has arrived, and all reads of the previous one are done.
            __syncthreads();
            if (slice + T::kStages - 1 < slices) start_copies(free);
            close_group();
#pragma unroll
            for (int step = 0; step < T::kDepth; ++step) {
                float left[T::kDown], above[T::kAcross];
                read(left, above, stage, step);
                add(left, above);
            }
            free = stage;
            stage = after(stage);
        }
    }

    // Reads the operands of the next step into a second set of registers before using
    // those of this step.
    __device__ __forceinline__ void run_ahead(int slices)
    {
        float left[2][T::kDown], above[2][T::kAcross];
        int stage = 0, free = T::kStages - 1;
        wait_for_groups<T::kStages - 2>();
        __syncthreads();  // the first slice has arrived for all threads
        read(left[0], above[0], stage, 0);
#pragma unroll 1
        for (int slice = 0; slice < slices; ++slice) {
#pragma unroll
            for (int step = 0; step < T::kDepth; ++step) {
                const int now = step % 2, next = 1 - now;
                if (step + 1 < T::kDepth) {
                    read(left[next], above[next], stage, step + 1);
                } else if (slice + 1 < slices) {
                    free = stage;
                    stage = after(stage);
                    wait_for_groups<T::kStages - 2>();
                    // The next slice has arrived, and all reads of this one are done.
                    __syncthreads();
                    read(left[next], above[next], stage, 0);
                }
                if (step == kCopyStep) {
                    if (slice + T::kStages - 1 < slices) start_copies(free);
                    close_group();
                }
                add(left[now], above[now]);
            }
        }
    }

    // Stores the unscaled sums to a separate tile.
    __device__ void keep(float* part)
    {
#pragma unroll
        for (int i = 0; i < T::kDown; ++i) {
            float* to =
                part + (read_a + i / 4 * 4 * T::kLanesDown + i % 4) * T::kCols + read_b;
#pragma unroll
            for (int q = 0; q < T::kAcross; q += 4) {
                *reinterpret_cast<float4*>(to + q * T::kLanesAcross) =
                    *reinterpret_cast<const float4*>(sum[i] + q);
            }
        }
    }

    __device__ void store(float* C, int ldc, float alpha, float beta)
    {
#pragma unroll
        for (int i = 0; i < T::kDown; ++i) {
            const int at = row + read_a + i / 4 * 4 * T::kLanesDown + i % 4;
#pragma unroll
            for (int q = 0; q < T::kAcross; q += 4) {
                const int left = col + read_b + q * T::kLanesAcross;
                if (kWhole || at < M) {
                    blend_quad<kWidth>(C + static_cast<size_t>(at) * ldc + left,
                                       sum[i] + q, alpha, beta, kWhole ? 4 : N - left);
                }
            }
        }
    }
};
