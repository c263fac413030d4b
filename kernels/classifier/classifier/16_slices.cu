// Idea: a warp has a tile of 64 outputs and 32 samples to itself, for its own slice of the inputs; no warp waits for another.
// From the rung before: 8 x 8 sums a lane, so that a pack from shared memory serves more products; a pitch without conflicts.
// Requires: a block of kThreads threads; a grid of tiles of outputs, of pieces of the inputs and of groups of samples;
// weights and input aligned to 16 bytes; kWidth = 4 where inputs is a multiple of 4, kWidth = 1 otherwise; shared memory for
// kStages steps of each warp, or for the warps' sums. With one piece sums is the output.
#include "classifier.cuh"
constexpr int kLaneRows = 8;  // of a lane, kRowLanes apart, so that neighbouring lanes read neighbouring lines
constexpr int kLaneSamples = 8;
constexpr int kRowLanes = 8;
constexpr int kSampleLanes = 4;
constexpr int kTileRows = kLaneRows * kRowLanes;
constexpr int kTileSamples = kLaneSamples * kSampleLanes;
constexpr int kLines = kTileRows + kTileSamples;
constexpr int kStep = 16;         // inputs of a step
constexpr int kPitch = kStep + 4;  // eight lines that begin 20 floats apart fill all banks with their float4s
constexpr int kStages = 3;
constexpr int kWarps = 4;
constexpr int kThreads = kWarps * kWarp;
constexpr int kSumPitch = kTileRows + 8;  // four samples of eight outputs fill all banks
static_assert(kRowLanes * kSampleLanes == kWarp, "a lane for each part of the tile");

// Starts to copy one pack to shared memory, or zeros where there is none. Before compute capability 8.0 the copy is done
// when this returns.
template <typename P>
__device__ __forceinline__ void copy_async(P* to, const P* from, bool inside)
{
#if __CUDA_ARCH__ >= 800
    const unsigned target = static_cast<unsigned>(__cvta_generic_to_shared(to));
    const int bytes = inside ? static_cast<int>(sizeof(P)) : 0;
    if constexpr (sizeof(P) == 16) {
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(target), "l"(from), "r"(bytes) : "memory");
    } else {
        asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(target), "l"(from), "r"(bytes) : "memory");
    }
#else
    *to = inside ? *from : P{};
#endif
}

// Closes the group of the copies that this thread has started since the group before.
__device__ __forceinline__ void commit_copies()
{
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

// Waits until at most kGroups of this thread's groups of copies are still on their way.
template <int kGroups>
__device__ __forceinline__ void wait_for_copies()
{
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_group %0;" ::"n"(kGroups) : "memory");
#endif
}

template <int kWidth>
__global__ void __launch_bounds__(kThreads, 2) classifier_slices(
    const float* __restrict__ weights, const float* __restrict__ input, float* __restrict__ sums, int inputs,
    int outputs, int batch, int steps_per_warp)
{
    using P = typename Pack<kWidth>::type;
    constexpr int kPacks = kStep / kWidth;           // of a line, in a step
    constexpr int kLinesAtOnce = kWarp / kPacks;     // that a warp copies with one instruction
    static_assert(kTileRows % kLinesAtOnce == 0, "lines copied together are all weights or all inputs");
    extern __shared__ __align__(16) float shared[];  // [kWarps][kStages][kLines][kPitch]
    const int lane = threadIdx.x % kWarp;
    const int warp = threadIdx.x / kWarp;
    const int row_lane = lane % kRowLanes;
    const int sample_lane = lane / kRowLanes;
    float* mine = shared + warp * (kStages * kLines * kPitch);
    const int packs = inputs / kWidth;
    const int first_row = blockIdx.x * kTileRows;
    const int first_sample = blockIdx.z * kTileSamples;
    const int first_step = (blockIdx.y * kWarps + warp) * steps_per_warp;
    const int steps = min(steps_per_warp, (inputs + kStep - 1) / kStep - first_step);

    const auto fetch = [&](int step) {
        if (step < steps) {
            float* to = mine + step % kStages * (kLines * kPitch);
            const int pack = lane % kPacks;
            const int i = (first_step + step) * kPacks + pack;
            const bool inside = i < packs;
#pragma unroll
            for (int n = 0; n < kLines / kLinesAtOnce; ++n) {
                // Past the last row or sample the last one is copied again, and its sum not stored.
                const int line = n * kLinesAtOnce + lane / kPacks;
                const bool is_row = n * kLinesAtOnce < kTileRows;
                const size_t at = is_row ? min(first_row + line, outputs - 1)
                                         : min(first_sample + line - kTileRows, batch - 1);
                const P* from = reinterpret_cast<const P*>(is_row ? weights : input) + at * packs;
                copy_async(reinterpret_cast<P*>(to + line * kPitch) + pack, from + (inside ? i : 0), inside);
            }
        }
        commit_copies();
    };

#pragma unroll
    for (int step = 0; step < kStages - 1; ++step) {
        fetch(step);
    }
    float sum[kLaneRows][kLaneSamples] = {};
#pragma unroll 1  // a step is a thousand multiply-adds: more of them would not fit into the instruction cache
    for (int step = 0; step < steps; ++step) {
        wait_for_copies<kStages - 2>();
        __syncwarp();  // every lane's copies of this step have landed, and the stage that is filled next has been read
        fetch(step + kStages - 1);
        const float* from = mine + step % kStages * (kLines * kPitch);
#pragma unroll
        for (int i = 0; i < kStep; i += 4) {
            float4 weight[kLaneRows];
#pragma unroll
            for (int r = 0; r < kLaneRows; ++r) {
                weight[r] = *reinterpret_cast<const float4*>(from + (row_lane + r * kRowLanes) * kPitch + i);
            }
#pragma unroll
            for (int s = 0; s < kLaneSamples; ++s) {
                const int line = kTileRows + sample_lane + s * kSampleLanes;
                const float4 value = *reinterpret_cast<const float4*>(from + line * kPitch + i);
#pragma unroll
                for (int r = 0; r < kLaneRows; ++r) {
                    sum[r][s] = multiply_add(weight[r], value, sum[r][s]);
                }
            }
        }
    }

    __syncthreads();  // every warp has read its last stage before its place is used for sums
#pragma unroll
    for (int r = 0; r < kLaneRows; ++r) {
#pragma unroll
        for (int s = 0; s < kLaneSamples; ++s) {
            const int sample = sample_lane + s * kSampleLanes;
            shared[(warp * kTileSamples + sample) * kSumPitch + row_lane + r * kRowLanes] = sum[r][s];
        }
    }
    __syncthreads();  // every warp has stored its sums before they are added up
    for (int n = threadIdx.x; n < kTileRows * kTileSamples; n += kThreads) {
        const int r = n % kTileRows;
        const int s = n / kTileRows;
        float total = 0.0f;
#pragma unroll
        for (int w = 0; w < kWarps; ++w) {
            total += shared[(w * kTileSamples + s) * kSumPitch + r];
        }
        if (first_row + r < outputs && first_sample + s < batch) {
            sums[(static_cast<size_t>(blockIdx.y) * batch + first_sample + s) * outputs + first_row + r] = total;
        }
    }
}

// A thread per output adds up its pieces.
__global__ void __launch_bounds__(kThreads) add_slices(
    const float* __restrict__ sums, float* __restrict__ output, size_t n, int pieces)
{
    const size_t at = static_cast<size_t>(blockIdx.x) * kThreads + threadIdx.x;
    if (at >= n) return;
    float sum = 0.0f;
    for (int piece = 0; piece < pieces; ++piece) {
        sum += sums[piece * n + at];
    }
    output[at] = sum;
}
