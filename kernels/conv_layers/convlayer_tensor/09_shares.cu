// Idea: one launch, whose blocks wait for each other and share the last additions.
// From the rung before: the launch before is gone. Blocks load pixels themselves and
// split them, while the copy engine brings all weights at once: a block has so few
// input maps that they fit. Three warpgroups multiply all pixels of a tile, a column of
// taps each, and exchange their sums. The blocks that have parts of a tile store their
// sums, wait for each other, and add up a share of all parts each, as in the
// classifier's rung of this name.
// Requires: sm_90a; a block of kThreads threads; a grid of parts of the input maps, at
// most kSteps steps each, of the runs of all images and of groups of output maps, which
// run at the same time; at most kMostTiles tiles; c_in a multiple of 4; a tensor map of
// the weights, boxes of kBoxOuts x kWeightPitch floats; dynamic shared memory for the
// factors of kSteps steps and for the sums that are exchanged; `sums` for all parts of
// whole tiles; one launch at a time, because launches share the counters.
#include "../../common/hopper/tma.cuh"
#include "../../common/hopper/wgmma_other_widths.cuh"
#include "shares_sums.cuh"

constexpr int kThreads = kGroups * kGroupThreads;
// The weights of 8 output maps and of 4 input maps fill all banks.
constexpr int kWeightPitch = kDepth * kTaps + 4;
constexpr int kBoxOuts = 32;  // output maps of a copy
constexpr int kRowsOfTaps = 3;
constexpr int kMostSteps = 4;  // or tensor cores would add up more than a chain of runs

#include "pairs.cuh"

struct Weights {
    float at[kOuts * kWeightPitch];
};

// Computes a warpgroup's sums: of high parts, and of high and low parts.
template <int kParts, class Run, int kSums>
__device__ __forceinline__ void multiply(float (&part)[kSums], float (&crossed)[kSums],
                                         const Weights* weights, const Eight* pixels,
                                         Barrier* full, int steps, int group,
                                         int thread)
{
#pragma unroll
    for (int j = 0; j < kSums; ++j) part[j] = crossed[j] = 0.0f;
    const int lane = thread % kWarp;
    const float* mine = weights->at +
                        (thread / kWarp * 16 + lane / 4) * kWeightPitch +
                        lane % 4 * kTaps + group;
    Descriptor run = describe_pieces(pixels + group, Run::kPieces * sizeof(Eight),
                                     8 * sizeof(Eight));
    // The halves of three taps, because products of two may be in flight.
    unsigned halves[3][kParts][4];
    Pairs pairs[3];
    mbarrier_wait(&full[0], 0);
    pairs[0].load(mine);
    pairs[1].load(mine + kRowsOfTaps);
    pairs[0].split<0, 4>(halves[0]);
    for (int step = 0; step < steps; ++step) {
        const bool more = step + 1 < steps;
#pragma unroll
        for (int k = 0; k < kRowsOfTaps; ++k) {
            const auto& here = halves[k];
            const Descriptor b = run + k * Run::kPitch;
            wgmma_fence();
            wgmma_f16(part, here[0], b, true);
            if constexpr (kParts == 2) {
                wgmma_f16(crossed, here[1], b, true);
                wgmma_f16(crossed, here[0], b + kEights * Run::kPieces, true);
            }
            wgmma_commit();
            // The next tap is split and the one after it loaded.
            if (k == 1 && more) mbarrier_wait(&full[step + 1], 0);
            if (k == 0) {
                pairs[2].load(mine + 2 * kRowsOfTaps);
            } else if (more) {
                pairs[k - 1].load(mine + sizeof(Weights) / 4 + (k - 1) * kRowsOfTaps);
            }
            pairs[(k + 1) % 3].split<0, 4>(halves[(k + 1) % 3]);
            wgmma_wait<1>();  // the products of the tap before are made
        }
        mine += sizeof(Weights) / 4;
        run += kParts * kEights * Run::kPieces;
    }
    wgmma_wait<0>();
    arrived(part);
    arrived(crossed);
}

template <int kParts, int kWide, int n, int kSteps>
__global__ void __launch_bounds__(kThreads, 1)
    convlayer_shares(const __grid_constant__ TensorMap weights,
                     const float* __restrict__ input, float4* __restrict__ sums,
                     float* __restrict__ output, int c_in, int c_out)
{
    using OwnRun = Run<kWide, n>;
    static_assert(kSteps <= kMostSteps, "tensor cores truncate their sums");
    constexpr int kChunks = kWide / 8;               // of a lane, four sums each
    constexpr int kQuads = kChunks * kGroupThreads;  // of a block
    extern __shared__ __align__(128) unsigned char shared_bytes[];
    __shared__ Barrier full[kSteps];
    const int lane = threadIdx.x % kWarp;
    const int warp = __shfl_sync(~0u, threadIdx.x / kWarp, 0);
    const int group = warp / (kGroupThreads / kWarp);
    const int thread = threadIdx.x % kGroupThreads;
    const int all = (c_in + kDepth - 1) / kDepth;
    const int part_of = blockIdx.x, parts = gridDim.x;
    const int first_step = all * part_of / parts;
    const int steps = all * (part_of + 1) / parts - first_step;
    const size_t image = blockIdx.y / OwnRun::kRuns;
    const int first = blockIdx.y % OwnRun::kRuns * OwnRun::kApart;  // piece of the run
    const int tile = blockIdx.z * gridDim.y + blockIdx.y;
    Weights* floats = reinterpret_cast<Weights*>(shared_bytes);
    Eight* pixels = reinterpret_cast<Eight*>(floats + kSteps);
    const auto copy = [&](int step) {
        mbarrier_arrive_expect(&full[step], sizeof(Weights));
        for (int out = 0; out < kOuts; out += kBoxOuts) {
            tma_load(floats[step].at + out * kWeightPitch, weights,
                     (first_step + step) * (kDepth * kTaps), blockIdx.z * kOuts + out,
                     &full[step]);
        }
    };
    if (threadIdx.x == 0) {
        for (int s = 0; s < kSteps; ++s) mbarrier_init(&full[s], 1);
        fence_mbarrier_init();
        copy(0);
    }
    const unsigned before = threadIdx.x == 0 ? look_at(&meetings[tile]) : 0;
    const float* maps = input + (image * c_in + first_step * kDepth) * OwnRun::kMap;
    split_pixels<kParts, kThreads / kWarp, OwnRun>(
        pixels, maps, first, steps * kEights, c_in - first_step * kDepth, warp, lane,
        [&]() {
            // Later steps wait for the pixels, so that these are not delayed.
            if (threadIdx.x == 0) {
                for (int s = 1; s < steps; ++s) copy(s);
            }
        });
    fence_proxy_async();
    __syncthreads();
    float part[kWide / 2], crossed[kWide / 2];
    multiply<kParts, OwnRun>(part, crossed, floats, pixels, full, steps, group, thread);
    const auto sum = [&](int chunk) {
        float four[4];
#pragma unroll
        for (int k = 0; k < 4; ++k) {
            four[k] = part[4 * chunk + k];
            if constexpr (kParts == 2) four[k] += crossed[4 * chunk + k] / kLowScale;
        }
        return make_float4(four[0], four[1], four[2], four[3]);
    };
    // A warpgroup keeps every third chunk and gives the others away. Sums replace the
    // factors.
    float4(*given)[kChunks][kGroupThreads] =
        reinterpret_cast<float4(*)[kChunks][kGroupThreads]>(shared_bytes);
    __syncthreads();  // all factors have been read
#pragma unroll
    for (int c = 0; c < kChunks; ++c) {
        const int to = (c + 2 * group) % kGroups;  // 0 for its own
        if (to != 0) given[to - 1][c][thread] = sum(c);
    }
    __syncthreads();  // all sums are stored
    const size_t apart = static_cast<size_t>(gridDim.y) * gridDim.z * kQuads;  // parts
    float4* mine = sums + static_cast<size_t>(tile) * kQuads;
#pragma unroll
    for (int c = 0; c < kChunks; ++c) {
        if (c % kGroups != group) continue;
        float4 own = sum(c);
#pragma unroll
        for (int g = 0; g < kGroups - 1; ++g) add(own, given[g][c][thread]);
        mine[part_of * apart + c * kGroupThreads + thread] = own;
    }
    // This block's share of all sums; the first place is found before the blocks meet.
    const int share = (kQuads + parts - 1) / parts;
    const int end = min(kQuads, (part_of + 1) * share);
    float* const here = output + image * c_out * OwnRun::kMap;
    const auto place_of = [&](int quad) {
        const int out = quad % kGroupThreads / kWarp * 16 + quad % kWarp / 4;
        const int piece = quad / kGroupThreads * 8 + quad % 4 * 2;
        return Place<OwnRun>(here, first, c_out, blockIdx.z * kOuts + out, piece);
    };
    int quad = part_of * share + threadIdx.x;
    Place<OwnRun> place = place_of(quad);
    __syncthreads();
    if (threadIdx.x == 0) meet_others(&meetings[tile], before, parts, part_of == 0);
    __syncthreads();
    for (; quad < end; quad += kThreads, place = place_of(quad)) {
        float4 total = {};
#pragma unroll 8
        for (int p = 0; p < parts; ++p) add(total, __ldcg(mine + p * apart + quad));
        place.store(total);
    }
}
