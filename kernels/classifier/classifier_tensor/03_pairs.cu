// Idea: fewer, longer runs of DRAM, and partial sums that never leave the SMs.
// From the rung before: 64 outputs a block, not 256, of which a stage has 512
// neighbouring bytes, not 128; a warpgroup has a quarter of the inputs of each stage.
// The blocks of a cluster share a tile's inputs, and add up their sums through
// distributed shared memory. Low parts of weights meet only high parts of the input.
// Requires: sm_90a; a block of kThreads threads; a grid of kRanks blocks for each tile
// of outputs, by groups of samples; tensor maps with boxes of kTileRows or kBatch lines
// of kDepth floats, swizzled by 128 bytes; dynamic shared memory for a Ring.
#include "../../common/hopper/cluster.cuh"
#include "../../common/hopper/tma.cuh"
#include "../../common/hopper/wgmma.cuh"
#include "../../common/mma.cuh"
#include "../../common/warp.cuh"
#include "split.cuh"

constexpr int kTileRows = 64;
constexpr int kBatch = 32;
constexpr int kDepth = 32;  // inputs of a slab: rows of 128 bytes
constexpr int kSlabs = 4;   // of a stage, one for each warpgroup that multiplies
constexpr int kStages = 5;       // of weights
constexpr int kInputStages = 2;  // wait for DRAM less: the L2 cache has them
constexpr int kConsumers = 128 * kSlabs;
constexpr int kThreads = kConsumers + 128;
constexpr int kSplitters = 2;  // warps
constexpr int kChain = 2;      // stages that are summed in tensor cores
constexpr int kSumPitch = kTileRows + 4;

struct alignas(1024) Ring {
    float weights[kStages][kSlabs][kTileRows * kDepth];
    // As it is, and its low parts.
    float input[kInputStages][kSlabs][2][kBatch * kDepth];
};
static_assert(kSlabs * kBatch * kSumPitch * sizeof(float) <= sizeof(Ring),
              "the ring has room for the sums");

// A slot of a ring of kSlots, and the parity of the phase of its barriers.
template <int kSlots> struct Slot {
    int slot = 0;
    unsigned parity = 0;
    __device__ __forceinline__ void next()
    {
        if (++slot == kSlots) {
            slot = 0;
            parity ^= 1;
        }
    }
};

template <int kRanks>
__global__ void __cluster_dims__(kRanks, 1, 1) __launch_bounds__(kThreads, 1)
    classifier_pairs(const __grid_constant__ TensorMap weights,
                     const __grid_constant__ TensorMap input,
                     float* __restrict__ output, int inputs, int outputs, int batch)
{
    extern __shared__ __align__(1024) unsigned char shared_bytes[];
    Ring& ring = *reinterpret_cast<Ring*>(shared_bytes);
    __shared__ Barrier full[kStages], empty[kStages];
    // Filled by the copy engine; split; read.
    __shared__ Barrier arrived[kInputStages], split[kInputStages], used[kInputStages];
    const int lane = threadIdx.x % kWarp;
    const int warp = __shfl_sync(~0u, threadIdx.x / kWarp, 0);
    const int rank = kRanks > 1 ? cluster_rank() : 0;
    const int first_row = blockIdx.x / kRanks * kTileRows;
    const int first_sample = blockIdx.y * kBatch;
    const int all_stages = (inputs + kSlabs * kDepth - 1) / (kSlabs * kDepth);
    const int first = static_cast<long long>(all_stages) * rank / kRanks;
    const int last = static_cast<long long>(all_stages) * (rank + 1) / kRanks;
    if (threadIdx.x == 0) {
        for (int s = 0; s < kStages; ++s) {
            mbarrier_init(&full[s], 1);
            mbarrier_init(&empty[s], kConsumers / kWarp);
        }
        for (int s = 0; s < kInputStages; ++s) {
            mbarrier_init(&arrived[s], 1);
            mbarrier_init(&split[s], kSplitters);
            mbarrier_init(&used[s], kConsumers / kWarp);
        }
        fence_mbarrier_init();
    }
    __syncthreads();
    float total[kBatch / 2] = {};
    if (warp >= kConsumers / kWarp) {
        release_registers<40>();
        const int role = warp - kConsumers / kWarp;
        if (role == 0 && lane == 0) {  // copies weights
            Slot<kStages> at;
            for (int i = first; i < last; ++i, at.next()) {
                mbarrier_wait(&empty[at.slot], at.parity ^ 1);
                mbarrier_arrive_expect(&full[at.slot], sizeof(ring.weights[0]));
#pragma unroll
                for (int s = 0; s < kSlabs; ++s) {
                    tma_load(ring.weights[at.slot][s], weights,
                             (i * kSlabs + s) * kDepth, first_row, &full[at.slot]);
                }
            }
        } else if (role == 1 && lane == 0) {  // copies the input
            Slot<kInputStages> at;
            for (int i = first; i < last; ++i, at.next()) {
                mbarrier_wait(&used[at.slot], at.parity ^ 1);
                mbarrier_arrive_expect(&arrived[at.slot], sizeof(ring.input[0]) / 2);
#pragma unroll
                for (int s = 0; s < kSlabs; ++s) {
                    tma_load(ring.input[at.slot][s][0], input,
                             (i * kSlabs + s) * kDepth, first_sample,
                             &arrived[at.slot]);
                }
            }
        } else if (role >= 2) {  // splits the input
            Slot<kInputStages> at;
            constexpr int kQuads = kBatch * kDepth / 4;
            const int thread = threadIdx.x - kConsumers - 2 * kWarp;
            for (int i = first; i < last; ++i, at.next()) {
                mbarrier_wait(&arrived[at.slot], at.parity);
#pragma unroll 2
                for (int j = thread; j < kSlabs * kQuads; j += kSplitters * kWarp) {
                    float4* from =
                        reinterpret_cast<float4*>(ring.input[at.slot][j / kQuads][0]) +
                        j % kQuads;
                    const float4 value = *from;
                    from[kQuads] =
                        make_float4(low_part(value.x), low_part(value.y),
                                    low_part(value.z), low_part(value.w));
                }
                fence_proxy_async();
                __syncwarp();
                if (lane == 0) mbarrier_arrive(&split[at.slot]);
            }
        }
        __syncwarp();
    } else {
        claim_registers<104>();
        // Of a lane, for ldmatrix: its row, and the first or the second quad of eight.
        const int slab = warp / 4;
        const int row = warp % 4 * 16 + lane % 16;
        const int quad = lane / 16;
        Slot<kStages> at;
        Slot<kInputStages> given;
        float part[kBatch / 2];
        for (int i = first; i < last; ++i, at.next(), given.next()) {
            mbarrier_wait(&full[at.slot], at.parity);
            const float* line = ring.weights[at.slot][slab] + row * kDepth;
            unsigned high[kDepth / 8][4], low[kDepth / 8][4];
#pragma unroll
            for (int s = 0; s < kDepth / 8; ++s) {
                load_matrices(high[s], line + ((2 * s + quad) ^ row % 8) * 4);
            }
#pragma unroll
            for (int s = 0; s < kDepth / 8; ++s) {
#pragma unroll
                for (int j = 0; j < 4; ++j) {
                    low[s][j] = __float_as_uint(low_part(__uint_as_float(high[s][j])));
                    asm volatile("" : "+r"(low[s][j]));  // before wgmma_fence
                }
            }
            // The weights are in registers: their slot can be filled again.
            __syncwarp();
            if (lane == 0) mbarrier_arrive(&empty[at.slot]);
            mbarrier_wait(&split[given.slot], given.parity);
            const float(&both)[2][kBatch * kDepth] = ring.input[given.slot][slab];
            const Descriptor tall = describe_rows_of_k(both[0]);
            const Descriptor small = describe_rows_of_k(both[1]);
            wgmma_fence();
#pragma unroll
            for (int s = 0; s < kDepth / 8; ++s) {
                const bool more = (i - first) % kChain + s > 0;
                wgmma_tf32(part, low[s], tall + 2 * s, more);
                wgmma_tf32(part, high[s], small + 2 * s, true);
                wgmma_tf32(part, high[s], tall + 2 * s, true);
            }
            wgmma_commit();
            wgmma_wait<0>();
            __syncwarp();
            if (lane == 0) mbarrier_arrive(&used[given.slot]);
            if ((i - first) % kChain == kChain - 1 || i == last - 1) {
#pragma unroll
                for (int j = 0; j < kBatch / 2; ++j) {
                    total[j] += part[j];
                }
            }
        }
    }
    __syncthreads();  // all reads of the ring are done before sums replace the stages
    using Sums = float[kBatch][kSumPitch];
    Sums* sums = reinterpret_cast<Sums*>(shared_bytes);
    if (warp < kConsumers / kWarp) {
        float* mine = &sums[warp / 4][0][warp % 4 * 16 + lane / 4];
#pragma unroll
        for (int j = 0; j < kBatch / 2; ++j) {
            const int sample = j / 4 * 8 + lane % 4 * 2 + j % 2;
            mine[sample * kSumPitch + j / 2 % 2 * 8] = total[j];
        }
    }
    cluster_sync();  // all sums of the cluster are stored before they are added up
    for (int n = rank * kThreads + threadIdx.x; n < kTileRows * kBatch;
         n += kRanks * kThreads) {
        const int r = n % kTileRows;
        const int s = n / kTileRows;
        float sum = 0.0f;
#pragma unroll
        for (int q = 0; q < kRanks; ++q) {
            const Sums* there = at_rank(sums, q);
#pragma unroll
            for (int j = 0; j < kSlabs; ++j) sum += there[j][s][r];
        }
        if (first_row + r < outputs && first_sample + s < batch) {
            output[static_cast<size_t>(first_sample + s) * outputs + first_row + r] =
                sum;
        }
    }
    cluster_sync();  // no block ends before its sums have been read
}
